/** A model that waits for something else: 10 ms, the thread free. */
import { setTimeout as sleep } from 'node:timers/promises';

export async function inference() {
  await sleep(10);
  return { slept: true };
}
