/** `ctx` of one call. Everything that costs something is made when the app first asks for it. */
import { splitHeaderLines } from '../protocol/header-lines.js';
import type { Call } from '../protocol/messages.js';
import type { AppLog, InferenceContext, WorkerInfo } from './api/types.js';

/**
 * W3C Trace Context 2.2: version, non-zero trace id, non-zero parent id, flags; `ff` is no version, and only a
 * version after `00` may add fields.
 */
const TRACEPARENT =
  /^(?!ff)(?!00.{54})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/;

export class CallContext implements InferenceContext {
  readonly worker: WorkerInfo;
  readonly #call: Call;
  readonly #makeLog: (requestId: string) => AppLog;
  #headers: Record<string, string> | undefined;
  #query: URLSearchParams | undefined;
  #log: AppLog | undefined;
  #controller: AbortController | undefined;
  #abortReason: Error | undefined;

  constructor(call: Call, worker: WorkerInfo, makeLog: (requestId: string) => AppLog) {
    this.worker = worker;
    this.#call = call;
    this.#makeLog = makeLog;
  }

  get requestId(): string {
    return this.#call.requestId;
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
    const value = this.headers['traceparent'];
    return value !== undefined && TRACEPARENT.test(value) ? value : null;
  }

  get log(): AppLog {
    return (this.#log ??= this.#makeLog(this.#call.requestId));
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

  /** Tells the app that nobody waits any more; the first reason stays. */
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
