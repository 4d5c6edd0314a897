/** `ctx` of one call. Expensive parts are created when the app first uses them. */
import { joinPieces } from '../../protocol/wire/body-assembler.js';
import { splitHeaderLines } from '../../protocol/text/header-lines.js';
import type { Call } from '../../protocol/wire/messages.js';
import { validTraceparent } from '../../protocol/text/traceparent.js';
import type { AppLog, AppMetrics, CallParams, WorkerInfo } from '../api/types.js';
import type { CallInfo } from '../api/call-info.js';

const NO_PARAMS: CallParams = Object.freeze({});

export class CallContext implements CallInfo {
  readonly worker: WorkerInfo;
  readonly metrics: AppMetrics;
  params: CallParams = NO_PARAMS;
  #pieces: readonly Buffer[];
  readonly #call: Call;
  readonly #makeLog: (requestId: string, traceparent: string | null) => AppLog;
  #headers: Record<string, string> | undefined;
  #query: URLSearchParams | undefined;
  #log: AppLog | undefined;
  #controller: AbortController | undefined;
  #abortReason: Error | undefined;

  #body: Buffer | undefined;

  constructor(
    call: Call,
    pieces: readonly Buffer[],
    { worker, metrics }: { readonly worker: WorkerInfo; readonly metrics: AppMetrics },
    makeLog: (requestId: string, traceparent: string | null) => AppLog,
  ) {
    this.worker = worker;
    this.metrics = metrics;
    this.#call = call;
    this.#pieces = pieces;
    this.#makeLog = makeLog;
  }

  get callId(): number {
    return this.#call.id;
  }

  get requestId(): string {
    return this.#call.requestId;
  }

  get body(): Buffer {
    return (this.#body ??= joinPieces(this.#pieces));
  }

  forgetBody(): void {
    this.#pieces = [];
    this.#body = undefined;
  }

  get path(): string {
    return this.#call.path;
  }

  get contentType(): string {
    return this.#call.contentType;
  }

  get deadline(): number | null {
    return this.#call.deadlineMs;
  }

  get headers(): Readonly<Record<string, string>> {
    return (this.#headers ??= headerRecord(this.#call.headers));
  }

  get query(): URLSearchParams {
    return (this.#query ??= new URLSearchParams(this.#call.query));
  }

  get traceparent(): string | null {
    return validTraceparent(this.headers['traceparent']);
  }

  get log(): AppLog {
    return (this.#log ??= this.#makeLog(this.#call.requestId, this.traceparent));
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  get aborted(): boolean {
    return this.#abortReason !== undefined;
  }

  /** Aborts the app's signal, because no client waits any more; the first reason stays. */
  abort(reason: string): void {
    if (this.#abortReason !== undefined) return;
    this.#abortReason = new DOMException(reason, 'AbortError');
    this.#controller?.abort(this.#abortReason);
  }
}

function headerRecord(lines: string): Record<string, string> {
  const record = Object.create(null) as Record<string, string>;
  for (const [name, value] of splitHeaderLines(lines)) {
    const key = name.toLowerCase();
    const before = record[key];
    record[key] = before === undefined ? value : `${before}, ${value}`;
  }
  return record;
}
