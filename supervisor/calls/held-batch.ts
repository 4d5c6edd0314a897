/**
 * A batch of calls that were sent together and begin together; each has its own ending. One clock runs for all of them: it
 * stands still only while every one of them waits for its client, and no other call waits for the worker.
 */
import type { ServeError } from '../../protocol/errors.js';
import type { Channel } from '../../protocol/wire/channel.js';
import { STREAM_WINDOW_BYTES } from '../../protocol/wire/limits.js';
import type { Call, ReadyWorker } from '../dispatch/call.js';

/**
 * A call that a worker holds, running or sent ahead. `Call.checkBegun` looks up in the worker's note whether it has begun.
 *
 * A streaming call or a WebSocket may wait for its client, which has to read or send something. An app that waits for its
 * client while it works counts as waiting: only it knows the difference.
 */
export class HeldCall {
  readonly id: number;
  readonly call: Call;
  /** The batch that it belongs to. */
  readonly batch: HeldBatch;
  /** Whether it is known to have begun: once true it stays true; if false, it may have begun since the last look. */
  knownBegun = false;
  /** Bytes that the worker has sent and the client has not read. */
  #unreadBytes = 0;
  /** Number of `data` frames sent to the worker. */
  #sentParts = 0;
  #appWaits = false;
  #hasClient = true;

  constructor(id: number, call: Call, batch: HeldBatch) {
    this.id = id;
    this.call = call;
    this.batch = batch;
  }

  /** Whether the call waits for its client: then the clock of its batch may stand still. */
  get waitsForClient(): boolean {
    return this.#hasClient && (this.#appWaits || this.#unreadBytes >= STREAM_WINDOW_BYTES);
  }

  /** The worker has sent bytes to the client, or the client has read some (a negative number). */
  countUnread(bytes: number): void {
    this.#unreadBytes += bytes;
    this.batch.setClock();
  }

  /** The client has sent a message: its answer has the whole run timeout. */
  onClientMessage(): void {
    this.#sentParts += 1;
    if (!this.#appWaits) return;
    this.#appWaits = false;
    this.batch.restartClock();
    this.batch.setClock();
  }

  /** The app has received so many parts and waits for the next one. Returns false if one is on its way. */
  onAppWaits(receivedParts: number): boolean {
    if (receivedParts !== this.#sentParts) return false;
    this.#appWaits = true;
    this.batch.setClock();
    return true;
  }

  /** It waits for no client any more: its clock runs. */
  onClientLeft(): void {
    this.#hasClient = false;
    this.batch.setClock();
  }
}

export class HeldBatch {
  /** The calls without an ending yet, in the order sent. */
  readonly calls: HeldCall[] = [];
  /** When it began; before that, when it should have begun. */
  beganAtMs = 0;
  /** Time added to its limit: the time it may take to begin. */
  #graceMs: number;
  /** Only its own methods change it. */
  hasBegun = false;
  readonly #onHoldUp: (batch: HeldBatch) => void;
  #othersWait = false;
  /** Time spent waiting for clients, and since when it waits now; null if it does not. */
  #pausedMs = 0;
  #pausedSinceMs: number | null = null;
  /** The same for the part of it in which other calls waited for its worker. */
  #heldUpMs = 0;
  #heldUpSinceMs: number | null = null;

  /** `graceMs`: time that it may take to begin, in addition to the limit. `onHoldUp`: its clients begin to hold up other calls. */
  constructor(graceMs: number, onHoldUp: (batch: HeldBatch) => void = () => {}) {
    this.#graceMs = graceMs;
    this.#onHoldUp = onHoldUp;
  }

  /** Whether its clients hold up other calls, which wait for its worker. */
  get holdsUp(): boolean {
    return this.#heldUpSinceMs !== null;
  }

  /** Whether other calls wait for its worker. */
  set othersWait(areWaiting: boolean) {
    if (areWaiting === this.#othersWait) return;
    this.#othersWait = areWaiting;
    this.setClock();
  }

  /** The time that counts towards its limit: waits for clients count only while other calls wait. */
  usedMs(nowMs: number): number {
    const pausedMs = this.#pausedMs + (this.#pausedSinceMs === null ? 0 : nowMs - this.#pausedSinceMs);
    const heldUpMs = this.#heldUpSinceMs === null ? 0 : this.#heldUpMs + nowMs - this.#heldUpSinceMs;
    return nowMs - this.beganAtMs - this.#graceMs - pausedMs + heldUpMs;
  }

  /** Marks its calls up to `last` as begun at `atMs` on the monotonic clock. */
  begin(last: HeldCall, atMs: number): void {
    const nowMs = performance.now();
    for (const held of this.calls) {
      if (!held.knownBegun) {
        // A time out of range comes from another clock.
        const beganAtMs = atMs >= held.call.acceptedAtMs && atMs <= nowMs ? atMs : nowMs;
        held.knownBegun = true;
        held.call.begin(beganAtMs);
        if (!this.hasBegun) this.beganAtMs = beganAtMs;
        this.hasBegun = true;
        this.#graceMs = 0;
      }
      if (held === last) return;
    }
  }

  /** Removes a call that has ended. */
  remove(held: HeldCall): void {
    if (this.calls.length === 1) {
      this.calls.pop(); // cheaper than a search, for nearly every call
      return;
    }
    this.calls.splice(this.calls.indexOf(held), 1);
    this.setClock();
  }

  /** Called when a call may have begun or ended to wait for its client. */
  setClock(): void {
    const nowMs = performance.now();
    const waits = this.calls.every(({ waitsForClient }) => waitsForClient);
    if (waits) this.#pausedSinceMs ??= nowMs;
    else if (this.#pausedSinceMs !== null) {
      this.#pausedMs += nowMs - this.#pausedSinceMs;
      this.#pausedSinceMs = null;
    }
    const holdsUp = waits && this.#othersWait;
    if (holdsUp === this.holdsUp) return;
    if (this.#heldUpSinceMs !== null) this.#heldUpMs += nowMs - this.#heldUpSinceMs;
    this.#heldUpSinceMs = holdsUp ? nowMs : null;
    if (holdsUp) this.#onHoldUp(this);
  }

  /** A call has something new to do, with the whole limit; the time in which it held up other calls stays counted. */
  restartClock(): void {
    this.#pausedSinceMs = null;
    this.#pausedMs = performance.now() - this.beganAtMs - this.#graceMs;
  }
}

/** The reason why the process of a call has to be killed. */
export type StuckCause = 'run timeout' | 'it did not begin its call';

/** A worker that holds calls, as those parts of it see it that handle its messages and the limits of its calls. */
export interface CallHolder extends Pick<ReadyWorker, 'learnBegun' | 'abandon'> {
  readonly channel: Channel;
  /** Calls that began and ended in the worker. */
  readonly finishedCalls: number;
  /** The batches that run or should begin now. */
  readonly active: readonly HeldBatch[];
  /** As `active`; looks up which of them have begun. */
  lookUpActive(): readonly HeldBatch[];
  /** @throws SERVE_PROTOCOL if the worker does not hold it */
  find(id: number): HeldCall;
  /** @throws SERVE_PROTOCOL unless the call is one of those that run, or should begin now */
  checkActive(held: HeldCall): void;
  /** The call has ended in the worker: its place is free. `runMs` is null if it does not predict the time of later calls. */
  release(held: HeldCall, runMs: number | null): void;
  /** Flushes the channel, at the latest at the end of this turn of the event loop. */
  flushSoon(): void;
  /** The call failed; the log may need the error. */
  onCallError(call: Call, error: ServeError): void;
  /** It gets no more calls, and ends once those that it holds have ended. */
  leave(why: string): void;
  /** Ends its process at once. */
  kill(cause: StuckCause): void;
}
