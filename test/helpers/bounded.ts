/** Runs what would take hours if it went wrong, as a regular expression may over a long text: then it throws. */
import { runInNewContext } from 'node:vm';

const LIMIT_MS = 90_000;

export function bounded<T>(run: () => T): T {
  return runInNewContext('run()', { run }, { timeout: LIMIT_MS }) as T;
}
