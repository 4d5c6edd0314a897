/**
 * The results that clients read: one copy of each, however many they are, for as long as anybody needs it; most stores would
 * give each of them a copy of its own. Two are read from the store at a time. The others wait, which is no failure of the
 * store.
 */
import { deferred, type Deferred } from '../machine/deferred.js';

const READS_AT_ONCE = 2;

export interface HeldResult {
  /** Null if it is not kept any more. Rejects if the store fails. */
  readonly body: Promise<Buffer | null>;
  /** Its reader does not need it any more; may be called again. */
  release(): void;
}

interface SharedResult {
  readonly id: string;
  readonly bytes: number;
  readonly body: Deferred<Buffer | null>;
  readers: number;
  state: 'waiting' | 'reading' | 'read';
}

export class SharedResults {
  readonly #readResult: (id: string) => Promise<Buffer | null>;
  readonly #onBytes: (bytes: number) => void;
  readonly #byId = new Map<string, SharedResult>();
  #waiting: SharedResult[] = [];
  #reading = 0;

  /** `onBytes`: so many more bytes are in memory; fewer, if negative. */
  constructor(read: (id: string) => Promise<Buffer | null>, onBytes: (bytes: number) => void) {
    this.#readResult = read;
    this.#onBytes = onBytes;
  }

  /** `bytes`: the size of the result. */
  hold(id: string, bytes: number): HeldResult {
    const shared = this.#byId.get(id) ?? this.#add(id, bytes);
    shared.readers += 1;
    this.#readNext();
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      shared.readers -= 1;
      if (shared.readers === 0) this.#leave(shared);
    };
    return { body: shared.body.promise, release };
  }

  #add(id: string, bytes: number): SharedResult {
    const shared: SharedResult = { id, bytes, body: deferred(), readers: 0, state: 'waiting' };
    shared.body.promise.catch(() => {}); // its readers may have left
    this.#byId.set(id, shared);
    this.#waiting.push(shared);
    return shared;
  }

  #readNext(): void {
    while (this.#reading < READS_AT_ONCE) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      void this.#read(next);
    }
  }

  async #read(shared: SharedResult): Promise<void> {
    this.#reading += 1;
    shared.state = 'reading';
    this.#onBytes(shared.bytes);
    try {
      shared.body.resolve(await this.#readResult(shared.id));
      shared.state = 'read';
      if (shared.readers === 0) this.#forget(shared);
    } catch (error) {
      // Those that wait would only wait for the same failure.
      this.#forget(shared);
      for (const failed of [shared, ...this.#waiting.splice(0)]) {
        this.#byId.delete(failed.id);
        failed.body.reject(error);
      }
    }
    this.#reading -= 1;
    this.#readNext();
  }

  #leave(shared: SharedResult): void {
    if (this.#byId.get(shared.id) !== shared) return; // the store has failed
    if (shared.state === 'read') this.#forget(shared);
    if (shared.state !== 'waiting') return; // a reader may come before it is read
    this.#waiting = this.#waiting.filter((one) => one !== shared);
    this.#byId.delete(shared.id);
    shared.body.resolve(null);
  }

  #forget({ id, bytes }: SharedResult): void {
    this.#byId.delete(id);
    this.#onBytes(-bytes);
  }
}
