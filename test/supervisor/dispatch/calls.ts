/** Calls and workers for tests of the dispatcher, which record what happens to them. */
import type { ServeError } from '../../../protocol/errors.js';
import { Call, type ReadyWorker, type Sink } from '../../../supervisor/dispatch/call.js';

export interface CallOptions {
  readonly bytes?: number;
  /** The body itself, for tests that send it. */
  readonly body?: Buffer;
  readonly headers?: string;
  readonly route?: string;
  readonly acceptedAtMs?: number;
  readonly deadlineAtMs?: number | null;
  /** `ok`, `end` or the error's code, once settled. */
  readonly onSettled?: (outcome: string) => void;
}

export function newCall(id: string, options: CallOptions = {}): Call {
  const {
    body = null,
    bytes = body?.length ?? 0,
    headers = '',
    route = '/',
    acceptedAtMs = performance.now(),
    deadlineAtMs = null,
    onSettled = () => {},
  } = options;
  const sink: Sink = {
    reply: () => onSettled('ok'),
    head: () => {},
    chunk: (_call, _pieces, taken) => taken(),
    end: () => onSettled('end'),
    fail: (_call, error: ServeError) => onSettled(error.code),
  };
  const call = {
    id: 0,
    model: 'model',
    version: '1',
    client: '127.0.0.1',
    statusOf: () => 500,
    bodyBytes: bytes,
    requestId: id,
    route,
    path: '/',
    query: '',
    format: 'auto',
    contentType: '',
    accept: '',
    deadlineMs: null,
    headers,
    method: 'POST',
    params: '',
    asciiJson: false,
    answer: 'auto',
    dialectParams: '',
  } as const;
  return new Call({ ...call }, body === null ? [] : [body], { acceptedAtMs, deadlineAtMs }, sink);
}

export const OK = { status: 200, contentType: '', headers: '', phrase: '' };

/** A worker that holds its calls until the test ends them. */
export class FakeWorker implements ReadyWorker {
  readonly index = 0;
  readonly held: Call[] = [];
  readonly abandoned: string[] = [];
  /** Its first call has begun, which was not looked up yet. */
  beganUnseen = false;
  callersWait = false;
  isFrozen = false;
  runningMs = 0;
  places = 1;
  /** Most calls that its routes take together. */
  largestBatch = 1;
  readonly said: Buffer[] = [];

  get isEngaged(): boolean {
    return this.held.some(({ conversation }) => conversation !== null);
  }

  get load(): number {
    return this.held.length;
  }

  /** Calls in each batch that it holds, those that have ended not counted. */
  readonly batches: number[] = [];

  get heldBatches(): number {
    return this.batches.length;
  }

  maxBatch(): number {
    return this.largestBatch;
  }

  get ids(): string[] {
    return this.held.map(({ message }) => message.requestId);
  }

  heldCalls(): Call[] {
    return [...this.held];
  }

  assign(calls: readonly Call[]): void {
    this.held.push(...calls);
    this.batches.push(calls.length);
  }

  /** As in a real worker, calls are marked as begun only when that is looked up. */
  learnBegun(): void {
    if (this.beganUnseen) this.begin();
    this.beganUnseen = false;
  }

  signal(): void {}

  abandon(call: Call, reason: string): void {
    this.abandoned.push(`${call.message.requestId}: ${reason}`);
  }

  sendData(_call: Call, _part: unknown, bytes: Uint8Array): void {
    this.said.push(Buffer.from(bytes));
  }

  begin(): Call {
    const [call] = this.held as [Call];
    call.begin(performance.now());
    return call;
  }

  /** The first call it holds has ended. */
  release(): Call {
    this.batches[0] = (this.batches[0] as number) - 1;
    if (this.batches[0] === 0) this.batches.shift();
    return this.held.shift() as Call;
  }
}
