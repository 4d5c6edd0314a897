/** One connection whose client has not taken all of its answers: the bytes held for it, and the bytes its side took. */
import type { Socket } from 'node:net';
import { ServeError } from '../../../protocol/errors.js';
import { inodeOf, type KernelQueues } from './kernel-queues.js';
import { encryptedBytes, handleOf, resetConnection } from './node-internals.js';
import { passTime, type Reader } from './slow-readers.js';

/** An answer that was written to a connection, and is lost if that is cut. */
export interface Answer {
  /** Bytes that wait for their turn on the connection, behind the answer to an earlier request. */
  readonly queuedBytes: number;
  /** None of its bytes are held any more. */
  readonly isOut: boolean;
  /** Called when the connection is cut because its client reads too slowly, before any other event of its end. */
  onCut(error: ServeError): void;
}

export class UnsentConnection implements Reader {
  readonly socket: Socket;
  unsentBytes = 0;
  takenBytes = 0;
  waitedMs = 0;
  patienceMs: number;
  readonly #stallTimeoutMs: number;
  readonly #answers = new Set<Answer>();
  /** Bytes of the answers that wait for their turn; as of the last check, plus what was added since. */
  #queuedBytes = 0;
  #lookedAtMs = performance.now();
  #handedBytes: number;
  #inode: string | null | undefined;
  /** Bytes that the other side had acknowledged at the last query of the kernel; null before the first. */
  #acknowledgedBytes: number | null = null;

  constructor(socket: Socket, stallTimeoutMs: number) {
    this.socket = socket;
    this.patienceMs = stallTimeoutMs;
    this.#stallTimeoutMs = stallTimeoutMs;
    this.#handedBytes = handedBytes(socket);
  }

  /** Whether its client recently took less than it should have, as far as is known. */
  get isSuspect(): boolean {
    return this.patienceMs < this.#stallTimeoutMs;
  }

  /** More of `answer` was written. */
  add(answer: Answer): void {
    if (this.#answers.has(answer)) this.#countQueued();
    else {
      this.#answers.add(answer);
      this.#queuedBytes += answer.queuedBytes;
    }
    this.unsentBytes = this.#heldBytes();
  }

  /** Updates what was taken. If more than `maxElapsedMs` has passed, this process was suspended for the rest. */
  look(nowMs: number, maxElapsedMs: number, queues: KernelQueues | null): void {
    if (this.socket.destroyed) {
      this.unsentBytes = 0;
      return;
    }
    const hadMore = this.socket.writableLength > 0; // otherwise it waits for us, not we for it
    const elapsedMs = hadMore ? Math.min(nowMs - this.#lookedAtMs, maxElapsedMs) : 0;
    passTime(this, elapsedMs, this.#measureTaken(queues), this.#stallTimeoutMs);
    this.#lookedAtMs = nowMs;
    this.#countQueued();
    this.unsentBytes = this.#heldBytes();
  }

  /** Ends the connection at once; what was held for it is free. */
  cut(): void {
    resetConnection(this.socket);
    for (const answer of this.#answers) answer.onCut(new ServeError('SERVE_SLOW_READER'));
  }

  #heldBytes(): number {
    return this.socket.writableLength + encryptedBytes(this.socket) + this.#queuedBytes;
  }

  /**
   * Returns the bytes taken since the last check: those that the kernel took from us or those that the other side
   * acknowledged, whichever are more.
   */
  #measureTaken(queues: KernelQueues | null): number {
    const handed = handedBytes(this.socket);
    const tookBytes = handed - this.#handedBytes;
    this.#handedBytes = handed;
    const waits = this.#kernelQueue(queues);
    if (waits === null) return tookBytes;
    const before = this.#acknowledgedBytes ?? Infinity;
    this.#acknowledgedBytes = handed - waits;
    return Math.max(tookBytes, this.#acknowledgedBytes - before);
  }

  #kernelQueue(queues: KernelQueues | null): number | null {
    if (queues === null) return null;
    if (this.#inode === undefined) this.#inode = inodeOf(handleOf(this.socket)?.fd ?? -1);
    return this.#inode === null ? null : (queues.get(this.#inode) ?? 0);
  }

  #countQueued(): void {
    this.#queuedBytes = 0;
    for (const answer of this.#answers) {
      if (answer.isOut) this.#answers.delete(answer);
      else this.#queuedBytes += answer.queuedBytes;
    }
  }
}

/**
 * Total bytes that the kernel took from us; encrypted ones for TLS. Counts whole writes if Node does not provide these
 * numbers.
 */
function handedBytes(socket: Socket): number {
  const handle = handleOf(socket);
  if (handle?.bytesWritten === undefined || handle.writeQueueSize === undefined)
    return socket.bytesWritten - socket.writableLength;
  return handle.bytesWritten - handle.writeQueueSize;
}
