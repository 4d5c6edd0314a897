/** A model that waits for the seconds in its input, without blocking the thread. */
import { setTimeout as sleep } from 'node:timers/promises';

export async function inference({ seconds }) {
  await sleep(seconds * 1000);
  return { waited: seconds };
}
