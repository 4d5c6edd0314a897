/** The model of small.mjs as a custom service of Multi Model Server. */
import { inference } from './small.mjs';

export function handle(data) {
  return data === null ? null : data.map(({ body }) => inference(body));
}
