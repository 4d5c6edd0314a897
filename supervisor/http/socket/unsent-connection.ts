/**
 * One connection whose client has not taken all of its answers: the bytes held for it, the bytes its side took, and the rate
 * that this makes. Clients that read too slowly are found by these bytes and by nothing else.
 */
import { readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { ServeError } from '../../../protocol/errors.js';
import { encryptedBytes, handleOf, resetConnection } from './node-internals.js';

/** An answer that was written to a connection, and is lost if that is cut. */
export interface Answer {
  /** Bytes that wait for their turn on the connection, behind the answer to an earlier request. */
  readonly queuedBytes: number;
  /** None of its bytes are held any more. */
  readonly isOut: boolean;
  /** Called when the connection is cut because its client reads too slowly, before any other event of its end. */
  onCut(error: ServeError): void;
}

export class UnsentConnection {
  readonly socket: Socket;
  /** Answer bytes that are held for it. */
  unsentBytes = 0;
  /** Bytes that its client took since its answers began to wait for it. */
  takenBytes = 0;
  /** Time in which it could have taken more bytes. */
  waitedMs = 0;
  /** The remaining time for which it may take nothing at all. */
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
  look(nowMs: number, maxElapsedMs: number, queues: ReadonlyMap<string, number> | null): void {
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
  #measureTaken(queues: ReadonlyMap<string, number> | null): number {
    const handed = handedBytes(this.socket);
    const tookBytes = handed - this.#handedBytes;
    this.#handedBytes = handed;
    const waits = this.#kernelQueue(queues);
    if (waits === null) return tookBytes;
    const before = this.#acknowledgedBytes ?? Infinity;
    this.#acknowledgedBytes = handed - waits;
    return Math.max(tookBytes, this.#acknowledgedBytes - before);
  }

  #kernelQueue(queues: ReadonlyMap<string, number> | null): number | null {
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

/**
 * The minimum average rate of a reader, the same as for a request body. A client on the slowest line in use takes ten
 * times as much; one that takes less holds megabytes for hours.
 */
const LEAST_BYTES_PER_S = 1000;

/** Bytes that a new reader is credited with before its rate can be measured: 1 MB within a second. */
const HEAD_START_BYTES = 1_000_000;
const HEAD_START_MS = 1000;

/**
 * Time uses up a reader's patience, and bytes restore it at the minimum rate, up to the stall timeout. So a client that
 * keeps to that rate never runs out of patience, although a kernel takes bytes in lumps; a client that stops runs out
 * after that time.
 */
export function passTime(
  reader: Pick<UnsentConnection, 'takenBytes' | 'waitedMs' | 'patienceMs'>,
  elapsedMs: number,
  tookBytes: number,
  stallTimeoutMs: number,
): void {
  reader.takenBytes += tookBytes;
  reader.waitedMs += elapsedMs;
  const earnedMs = (tookBytes / LEAST_BYTES_PER_S) * 1000;
  reader.patienceMs = Math.min(stallTimeoutMs, reader.patienceMs - elapsedMs + earnedMs);
}

/** Returns the reader with the lowest rate; a new one counts as a fair one. Null if there are no readers. */
export function slowest<R extends Pick<UnsentConnection, 'takenBytes' | 'waitedMs'>>(
  readers: Iterable<R>,
): R | null {
  let found: R | null = null;
  for (const reader of readers) if (found === null || rateOf(reader) < rateOf(found)) found = reader;
  return found;
}

function rateOf({ takenBytes, waitedMs }: Pick<UnsentConnection, 'takenBytes' | 'waitedMs'>): number {
  return (takenBytes + HEAD_START_BYTES) / (waitedMs + HEAD_START_MS);
}

/**
 * Reads from the kernel the bytes that the other sides of all TCP connections have not acknowledged yet, by the inode of the
 * connection's socket; a socket with none is missing. Only the kernel knows: it takes megabytes from us at once and then
 * nothing for as long as a slow reader needs for them (1.5 MB at a time over loopback, Linux 6), so the pace of our writes says
 * little about the reader. Takes 10 us per connection of the machine, on another thread. Null where the system is not Linux.
 */
export async function readKernelQueues(): Promise<ReadonlyMap<string, number> | null> {
  if (process.platform !== 'linux') return null;
  const queues = new Map<string, number>();
  for (const table of ['tcp', 'tcp6']) {
    const text = await readFile(`/proc/self/net/${table}`, 'latin1').catch(() => null);
    if (text === null && table === 'tcp') return null;
    addQueues(queues, text ?? '');
  }
  return queues;
}

/** Returns the inode of an open socket; null where the system does not provide it. */
export function inodeOf(fd: number): string | null {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1] ?? null;
  } catch {
    return null; // another system, or a sandbox without /proc
  }
}

/**
 * Adds the queues of a table to `queues`. A line is `sl local remote state tx_queue:rx_queue timer:when retransmits uid
 * timeout inode …`, with sizes in hexadecimal.
 */
export function addQueues(queues: Map<string, number>, table: string): void {
  for (const [, queued = '', inode = ''] of table.matchAll(LINE))
    if (queued !== '00000000') queues.set(inode, parseInt(queued, 16));
}

const LINE =
  /^ *\d+: [\dA-F]+:[\dA-F]{4} [\dA-F]+:[\dA-F]{4} [\dA-F]{2} ([\dA-F]{8}):[\dA-F]{8} \S+ \S+ +\d+ +\d+ (\d+)/gm;
