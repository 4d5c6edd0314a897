/**
 * Answers that their clients have not taken: how many bytes they hold, and who is cut off for them.
 *
 * 1. A write that the kernel does not take whole is told to `watch` (watched-response.ts, websocket-call.ts). Most
 *    are taken at once, and cost nothing here: no timer, no listener.
 * 2. Over `maxBytes` the slowest readers are cut off, one at a time, until the rest fits.
 * 3. Every now and then it is looked at what each client took since; who takes too little for too long is cut off.
 *
 * Who is slow is decided in slow-readers.ts. Time in which this process did not run counts against nobody.
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

/** Looks within one stall timeout. */
const LOOKS = 8;
const MAX_LOOK_MS = 5000;

/** After cuts that freed so much, memory is given back; a moment later, as more of them may follow. */
const COLLECT_BYTES = 32 * 1024 * 1024;
const COLLECT_DELAY_MS = 500;

export class UnsentAnswers {
  readonly #limits: UnsentLimits;
  readonly #lookMs: number;
  readonly #connections = new Map<Socket, UnsentConnection>();
  /** As of the last look, and what was written since. */
  #bytes = 0;
  #timer: NodeJS.Timeout | null = null;
  #makesRoom = false;
  /** Bytes freed by cuts since memory was given back. */
  #freedBytes = 0;

  constructor(limits: UnsentLimits) {
    this.#limits = limits;
    this.#lookMs = Math.min(MAX_LOOK_MS, Math.ceil(limits.stallTimeoutMs / LOOKS));
  }

  /** What is held now, for a status. */
  describe(): { clients: number; bytes: number; maxBytes: number } {
    this.#look(null);
    return { clients: this.#connections.size, bytes: this.#bytes, maxBytes: this.#limits.maxBytes };
  }

  /** To be told after a write that left bytes in `socket`, or in `answer` if that waits for its turn. */
  watch(socket: Socket, answer: Answer): void {
    if (socket.destroyed) return;
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = new UnsentConnection(socket, this.#limits.stallTimeoutMs);
      this.#connections.set(socket, connection);
    }
    this.#bytes -= connection.unsentBytes;
    connection.add(answer);
    this.#bytes += connection.unsentBytes;
    this.#timer ??= this.#nextLook();
    if (this.#bytes > this.#limits.maxBytes && !this.#makesRoom) {
      this.#makesRoom = true;
      process.nextTick(() => this.#makeRoom()); // whoever is in the middle of writing an answer is not cut there
    }
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#connections.clear();
  }

  #makeRoom(): void {
    this.#makesRoom = false;
    this.#look(null);
    while (this.#bytes > this.#limits.maxBytes) {
      const connection = slowest(this.#connections.values());
      if (connection === null) return;
      this.#cut(connection);
    }
  }

  #nextLook(): NodeJS.Timeout {
    return setTimeout(() => void this.#judge(), this.#lookMs).unref();
  }

  async #judge(): Promise<void> {
    const isDoubtful = [...this.#connections.values()].some((connection) => connection.isSuspect);
    this.#look(isDoubtful ? await readKernelQueues() : null);
    for (const connection of this.#connections.values())
      if (connection.patienceMs <= 0) this.#cut(connection);
    this.#timer = this.#connections.size === 0 ? null : this.#nextLook();
  }

  /** Learns what was taken since; lets go of those who took everything. */
  #look(queues: KernelQueues | null): void {
    const nowMs = performance.now();
    this.#bytes = 0;
    for (const [socket, connection] of this.#connections) {
      connection.look(nowMs, 2 * this.#lookMs, queues);
      if (connection.unsentBytes === 0) this.#connections.delete(socket);
      this.#bytes += connection.unsentBytes;
    }
  }

  #cut(connection: UnsentConnection): void {
    this.#connections.delete(connection.socket);
    this.#bytes -= connection.unsentBytes;
    connection.cut();
    this.#freedBytes += connection.unsentBytes;
    if (this.#freedBytes < COLLECT_BYTES) return;
    this.#freedBytes = -Infinity; // one is coming
    setTimeout(() => {
      this.#freedBytes = 0;
      collectNow();
    }, COLLECT_DELAY_MS).unref();
  }
}
