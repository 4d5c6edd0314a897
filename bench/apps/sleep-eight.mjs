/** As sleep.mjs, eight calls at the same time. */
export { inference } from './sleep.mjs';

export const config = { concurrency: 8 };
