/** A model that takes as long as it is told: seconds, the thread free. */
import { setTimeout as sleep } from 'node:timers/promises';

export async function inference({ seconds }) {
  await sleep(seconds * 1000);
  return { waited: seconds };
}
