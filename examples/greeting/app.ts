/** The smallest app: `init` loads something slow once, `inference` uses it for every call. */
import { setTimeout as sleep } from 'node:timers/promises';

// `init` sets this once; it lives as long as the worker.
let a: string;

/** Runs once in each worker. Calls that arrive in the meantime wait; they are not refused. */
export async function init() {
  await sleep(Number(process.env.GREETING_INIT_MS ?? 10_000)); // stands for loading a model
  a = 'hello';
  console.log(a);
}

/** Runs for every call, one at a time in a worker. */
export function inference() {
  const greeting = a + ' world';
  console.log(greeting);
  return { greeting };
}
