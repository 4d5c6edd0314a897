/** The choice of tests for a Python that is newer than the oldest, with which every test of the worker runs. */

/** Set: only tests that a version of Python may break, run. They need asyncio, signals, threads, forks or tracebacks. */
const VARIABLE = 'BANANA_TEST_VERSION_SENSITIVE';

export const ONLY_VERSION_SENSITIVE: Readonly<Record<string, string>> = { [VARIABLE]: '1' };

interface TestOptions {
  readonly timeout: number;
  readonly skip: string | false;
}

/** These options, for a test of what our own code does, in whichever Python. */
export function ownCode(options: TestOptions): TestOptions {
  if (process.env[VARIABLE] === undefined) return options;
  return { ...options, skip: 'the oldest Python is enough for this' };
}
