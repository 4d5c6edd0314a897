/**
 * Bounds the answers that clients have not read yet: how many bytes they hold, and which connections are cut for them.
 *
 * 1. A write that the kernel does not take completely is passed to `watch` (`WatchedResponse` below, websocket-call.ts).
 *    Most writes are taken at once, and cost nothing here: no timer, no listener.
 * 2. Above `maxBytes` the slowest readers are cut, one at a time, until the rest fits.
 * 3. Bytes that several answers share, the result of a job, count once, as long as any of these needs them.
 * 4. A timer checks how much each client has taken since; a client that takes too little for too long is cut.
 *
 * `unsent-connection.ts` measures which clients are slow. Time in which this process did not run does not count.
 */
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ServeError } from '../../../protocol/errors.js';
import { collectNow } from '../../memory/gc.js';
import { onceClosed } from './request-facts.js';
import { UnsentConnection, readKernelQueues, slowest, type Answer } from './unsent-connection.js';

/** Checks within one stall timeout. */
const CHECKS_PER_TIMEOUT = 8;
const MAX_CHECK_MS = 5000;

/** Garbage is collected after cuts that freed this many bytes, with a delay, as more cuts may follow. */
const COLLECT_BYTES = 32 * 1024 * 1024;
const COLLECT_DELAY_MS = 500;

export class UnsentAnswers {
  readonly #maxBytes: number;
  readonly #stallTimeoutMs: number;
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

  constructor(maxBytes: number, stallTimeoutMs: number) {
    this.#maxBytes = maxBytes;
    this.#stallTimeoutMs = stallTimeoutMs;
    this.#checkMs = Math.min(MAX_CHECK_MS, Math.ceil(stallTimeoutMs / CHECKS_PER_TIMEOUT));
    const forget = (socket: Socket): void => this.#forget(socket);
    this.#onClose = function () {
      forget(this);
    };
  }

  /** Describes what is held now, for /status. */
  describe(): { clients: number; bytes: number; maxBytes: number } {
    this.#update(null);
    return { clients: this.#connections.size, bytes: this.#heldBytes, maxBytes: this.#maxBytes };
  }

  /** Call this after a write that left bytes in `socket`, or in `answer` if that waits for its turn. */
  watch(socket: Socket, answer: Answer): void {
    if (socket.destroyed) return;
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = new UnsentConnection(socket, this.#stallTimeoutMs);
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
    if (this.#heldBytes <= this.#maxBytes || this.#makesRoom) return;
    this.#makesRoom = true;
    process.nextTick(() => this.#makeRoom()); // a caller in the middle of writing an answer must not be cut there
  }

  #makeRoom(): void {
    this.#makesRoom = false;
    this.#update(null);
    while (this.#heldBytes > this.#maxBytes) {
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
  #update(queues: ReadonlyMap<string, number> | null): void {
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

const CUT = Symbol('cut');

/** Calls back if the connection is cut because its client reads too slowly, before the response closes. */
export function onceCut(response: ServerResponse, callback: (error: ServeError) => void): void {
  response.once(CUT, callback);
}

const OVER = Symbol('over');

/** Calls back once nothing of the answer is needed any more: it was sent, was cut, or has no client. Perhaps more than once. */
export function onceOver(request: IncomingMessage, response: ServerResponse, callback: () => void): void {
  if (request.socket.destroyed) {
    callback();
    return;
  }
  response.once(OVER, callback);
  onceClosed(request, response, callback);
}

/** Gives an answer the id of its request, for the log if it is cut. */
export function nameAnswer(response: ServerResponse, requestId: string): void {
  (response as Partial<WatchedResponse>).requestId = requestId;
}

/** A response that is watched when the kernel does not take a write at once; this server creates no others. */
export class WatchedResponse<R extends IncomingMessage = IncomingMessage>
  extends ServerResponse<R>
  implements Answer
{
  declare requestId?: string;

  /** See `responsesOf`. */
  get unsent(): UnsentAnswers | null {
    return null;
  }

  reportCut(_error: ServeError): void {}

  get queuedBytes(): number {
    return this.socket === null ? this.writableLength : 0;
  }

  get isOut(): boolean {
    return this.writableFinished;
  }

  onCut(error: ServeError): void {
    this.emit(OVER);
    if (!this.emit(CUT, error)) this.reportCut(error);
  }

  override write(...args: unknown[]): boolean {
    const hasRoom = super.write(...(args as Parameters<ServerResponse['write']>));
    if (!hasRoom) this.unsent?.watch(this.req.socket, this);
    return hasRoom;
  }

  override end(...args: unknown[]): this {
    super.end(...(args as Parameters<ServerResponse['end']>));
    if (this.writableLength > 0) this.unsent?.watch(this.req.socket, this);
    return this;
  }
}

/** The responses of one server. `onCut` gets those that are cut and have no `onceCut` listener, with their ids. */
export function responsesOf(
  Response: typeof WatchedResponse,
  unsent: UnsentAnswers,
  onCut: (request: IncomingMessage, requestId: string, error: ServeError) => void,
): typeof ServerResponse {
  return class<R extends IncomingMessage = IncomingMessage> extends Response<R> {
    override get unsent(): UnsentAnswers {
      return unsent;
    }

    override reportCut(error: ServeError): void {
      onCut(this.req, this.requestId ?? '', error);
    }
  };
}
