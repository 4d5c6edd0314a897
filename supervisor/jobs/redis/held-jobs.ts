/** The jobs that this front has begun: renews their locks, and hears when one was cancelled or is not this front's any more. */
import type { BullLines, Entry } from './bull-lines.js';
import { lockOf } from './line.js';
import type { RedisLink } from './redis-link.js';

interface Held {
  readonly entry: Entry;
  /** The mark of its attempt. */
  readonly token: string;
  isCancelled: boolean;
}

export class HeldJobs {
  readonly #link: RedisLink;
  readonly #lines: BullLines;
  readonly #lockMs: number;
  readonly #onCancelled: (id: string) => void;
  readonly #byToken = new Map<string, Held>();

  constructor(link: RedisLink, lines: BullLines, lockMs: number, onCancelled: (id: string) => void) {
    this.#link = link;
    this.#lines = lines;
    this.#lockMs = lockMs;
    this.#onCancelled = onCancelled;
  }

  add(entry: Entry, token: string): void {
    this.#byToken.set(keyOf(entry.id, token), { entry, token, isCancelled: false });
  }

  /** The entry of an attempt, which is not held any more; null if it was not. */
  take(id: string, token: string): Entry | null {
    const held = this.#byToken.get(keyOf(id, token));
    this.#byToken.delete(keyOf(id, token));
    return held?.entry ?? null;
  }

  /** Renews all locks, each for its full time. */
  async renew(): Promise<void> {
    const all = [...this.#byToken.values()];
    if (all.length === 0) return;
    const renewed = this.#lines.renew(all.map(({ entry }) => entry));
    renewed.catch(() => {}); // a full Redis refuses it, but sets a lock again that has expired
    const args = all.flatMap(({ entry: { id, line, lockToken }, token }) => [
      id,
      token,
      lockOf(line, id),
      lockToken,
    ]);
    const said = (await this.#link.run('held', [String(this.#lockMs), ...args])) as string[];
    for (const [i, held] of all.entries()) this.#onSaid(held, said[i]);
    await renewed;
  }

  #onSaid(held: Held, said: string | undefined): void {
    if (said === 'gone') this.take(held.entry.id, held.token);
    if (said !== 'cancelled' || held.isCancelled) return;
    held.isCancelled = true;
    this.#onCancelled(held.entry.id);
  }
}

function keyOf(id: string, token: string): string {
  return `${token} ${id}`;
}
