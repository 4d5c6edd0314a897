/** One connection whose client has not taken all of its answers: what is held for it, what its side took. */
import type { Socket } from 'node:net';
import { ServeError } from '../../../protocol/errors.js';
import { inodeOf, type KernelQueues } from './kernel-queues.js';
import { encryptedBytes, handleOf, resetConnection } from './tcp-socket.js';
import { passTime, type Reader } from './slow-readers.js';

/** Something that was written to a connection, and is lost when that is cut off. */
export interface Answer {
  /** Bytes that wait for their turn on the connection, behind the answer to an earlier request. */
  readonly queuedBytes: number;
  /** Nothing of it is held any more. */
  readonly isOut: boolean;
  /** The connection was cut off because its client reads too slowly. Comes before any other news of its end. */
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
  /** Bytes of the answers that wait for their turn; as of the last look, and what was added since. */
  #queuedBytes = 0;
  #lookedAtMs = performance.now();
  #handedBytes: number;
  #inode: string | null | undefined;
  /** Bytes that the other side had acknowledged when the kernel was last asked; null before. */
  #acknowledgedBytes: number | null = null;

  constructor(socket: Socket, stallTimeoutMs: number) {
    this.socket = socket;
    this.patienceMs = stallTimeoutMs;
    this.#stallTimeoutMs = stallTimeoutMs;
    this.#handedBytes = handedBytes(socket);
  }

  /** Its client took less than it should have of late, as far as is known. */
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

  /** Learns what was taken. Of a longer time than `maxElapsedMs` this process slept through the rest. */
  look(nowMs: number, maxElapsedMs: number, queues: KernelQueues | null): void {
    if (this.socket.destroyed) {
      this.unsentBytes = 0;
      return;
    }
    const hadMore = this.socket.writableLength > 0; // else it waits for us, not we for it
    const elapsedMs = hadMore ? Math.min(nowMs - this.#lookedAtMs, maxElapsedMs) : 0;
    passTime(this, elapsedMs, this.#learnTaken(queues), this.#stallTimeoutMs);
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

  /** By what the kernel took from us, or by what the other side acknowledged, whichever tells more. */
  #learnTaken(queues: KernelQueues | null): number {
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

/** Bytes that the kernel took from us, ever; of TLS, in their encrypted form. By whole writes, should Node not tell. */
function handedBytes(socket: Socket): number {
  const handle = handleOf(socket);
  if (handle?.bytesWritten === undefined || handle.writeQueueSize === undefined)
    return socket.bytesWritten - socket.writableLength;
  return handle.bytesWritten - handle.writeQueueSize;
}
