/**
 * Bounds the answers that clients have not read yet: how many bytes they hold, and which connections are cut for them.
 *
 * 1. A write that the kernel does not take completely is passed to `watch` (watched-response.ts, websocket-call.ts).
 *    Most writes are taken at once, and cost nothing here: no timer, no listener.
 * 2. Above `maxBytes` the slowest readers are cut, one at a time, until the rest fits.
 * 3. Bytes that several answers share, the result of a job, count once, as long as any of these needs them.
 * 4. A timer checks how much each client has taken since; a client that takes too little for too long is cut.
 *
 * `slow-readers.ts` decides which clients are slow. Time in which this process did not run does not count.
 */
import type { Socket } from 'node:net';
import { collectNow } from '../../memory/gc.js';
import { readKernelQueues, type KernelQueues } from './kernel-queues.js';
import { slowest } from './slow-readers.js';
import { UnsentConnection, type Answer } from './unsent-connection.js';

export interface UnsentLimits {
  readonly maxBytes: number;
  readonly stallTimeoutMs: number;
}

/** Checks within one stall timeout. */
const CHECKS_PER_TIMEOUT = 8;
const MAX_CHECK_MS = 5000;

/** Garbage is collected after cuts that freed this many bytes, with a delay, as more cuts may follow. */
const COLLECT_BYTES = 32 * 1024 * 1024;
const COLLECT_DELAY_MS = 500;

export class UnsentAnswers {
  readonly #limits: UnsentLimits;
  readonly #checkMs: number;
  readonly #connections = new Map<Socket, UnsentConnection>();
  /** As of the last check, plus what was written since. */
  #bytes = 0;
  #sharedBytes = 0;
  #timer: NodeJS.Timeout | null = null;
  #makesRoom = false;
  /** Bytes freed by cuts since the last collection. */
  #freedBytes = 0;
  readonly #onClose: (this: Socket) => void;

  constructor(limits: UnsentLimits) {
    this.#limits = limits;
    this.#checkMs = Math.min(MAX_CHECK_MS, Math.ceil(limits.stallTimeoutMs / CHECKS_PER_TIMEOUT));
    const forget = (socket: Socket): void => this.#forget(socket);
    this.#onClose = function () {
      forget(this);
    };
  }

  /** Describes what is held now, for /status. */
  describe(): { clients: number; bytes: number; maxBytes: number } {
    this.#update(null);
    return { clients: this.#connections.size, bytes: this.#heldBytes, maxBytes: this.#limits.maxBytes };
  }

  /** Call this after a write that left bytes in `socket`, or in `answer` if that waits for its turn. */
  watch(socket: Socket, answer: Answer): void {
    if (socket.destroyed) return;
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = new UnsentConnection(socket, this.#limits.stallTimeoutMs);
      this.#connections.set(socket, connection);
      // Otherwise a closed connection and its calls would stay in memory until the next check.
      socket.once('close', this.#onClose);
    }
    this.#bytes -= connection.unsentBytes;
    connection.add(answer);
    this.#bytes += connection.unsentBytes;
    this.#timer ??= this.#scheduleCheck();
    this.#bound();
  }

  /** Answers share so many more bytes; fewer, if negative. */
  share(bytes: number): void {
    this.#sharedBytes += bytes;
    this.#bound();
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#connections.clear();
  }

  get #heldBytes(): number {
    return this.#bytes + this.#sharedBytes;
  }

  #bound(): void {
    if (this.#heldBytes <= this.#limits.maxBytes || this.#makesRoom) return;
    this.#makesRoom = true;
    process.nextTick(() => this.#makeRoom()); // a caller in the middle of writing an answer must not be cut there
  }

  #makeRoom(): void {
    this.#makesRoom = false;
    this.#update(null);
    while (this.#heldBytes > this.#limits.maxBytes) {
      const connection = slowest(this.#connections.values());
      if (connection === null) return;
      this.#cut(connection);
    }
  }

  #scheduleCheck(): NodeJS.Timeout {
    return setTimeout(() => void this.#checkAll(), this.#checkMs).unref();
  }

  async #checkAll(): Promise<void> {
    const hasSuspects = [...this.#connections.values()].some((connection) => connection.isSuspect);
    this.#update(hasSuspects ? await readKernelQueues() : null);
    for (const connection of this.#connections.values())
      if (connection.patienceMs <= 0) this.#cut(connection);
    this.#timer = this.#connections.size === 0 ? null : this.#scheduleCheck();
  }

  /** Updates what each client has taken; forgets clients that took everything. */
  #update(queues: KernelQueues | null): void {
    const nowMs = performance.now();
    this.#bytes = 0;
    for (const [socket, connection] of this.#connections) {
      connection.look(nowMs, 2 * this.#checkMs, queues);
      this.#bytes += connection.unsentBytes;
      if (connection.unsentBytes === 0) this.#forget(socket);
    }
  }

  #forget(socket: Socket): void {
    socket.off('close', this.#onClose);
    this.#bytes -= this.#connections.get(socket)?.unsentBytes ?? 0;
    this.#connections.delete(socket);
  }

  #cut(connection: UnsentConnection): void {
    const { unsentBytes } = connection;
    const sharedBytes = this.#sharedBytes;
    this.#forget(connection.socket);
    connection.cut();
    this.#freedBytes += unsentBytes + sharedBytes - this.#sharedBytes;
    if (this.#freedBytes < COLLECT_BYTES) return;
    this.#freedBytes = -Infinity; // a collection is scheduled
    setTimeout(() => {
      this.#freedBytes = 0;
      collectNow();
    }, COLLECT_DELAY_MS).unref();
  }
}
