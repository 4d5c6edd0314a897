/** `ctx` of one call. Expensive parts are created when the app first uses them. */
import { joinPieces } from '../../protocol/wire/body-assembler.js';
import { splitHeaderLines, validTraceparent } from '../../protocol/text/headers.js';
import type { Channel } from '../../protocol/wire/channel.js';
import type { Call } from '../../protocol/wire/messages.js';
import type { AppLog, AppMetrics, CallParams, JobInfo, WorkerInfo, CallInfo } from '../api/types.js';
import { appLog } from '../report/app-log.js';
import { Progress, reportOf } from '../report/progress.js';

const NO_PARAMS: CallParams = Object.freeze({});

export interface CallSurroundings {
  readonly worker: WorkerInfo;
  readonly metrics: AppMetrics;
  readonly channel: Channel;
}

export class CallContext implements CallInfo {
  readonly worker: WorkerInfo;
  readonly metrics: AppMetrics;
  params: CallParams = NO_PARAMS;
  /** The caller is a program, which learns of progress as a job does. */
  isOfProgram = false;
  #pieces: readonly Buffer[];
  readonly #call: Call;
  readonly #channel: Channel;
  #progress: Progress | undefined;
  #headers: Record<string, string> | undefined;
  #query: URLSearchParams | undefined;
  #log: AppLog | undefined;
  #controller: AbortController | undefined;
  #abortReason: Error | undefined;
  #hasEnded = false;

  #body: Buffer | undefined;

  constructor(call: Call, pieces: readonly Buffer[], { worker, metrics, channel }: CallSurroundings) {
    this.worker = worker;
    this.metrics = metrics;
    this.#call = call;
    this.#pieces = pieces;
    this.#channel = channel;
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
    return (this.#log ??= appLog(this.#channel, this.#call.requestId, this.traceparent));
  }

  get job(): JobInfo | null {
    return this.#call.job ?? null;
  }

  progress(fraction: number, text?: string): void {
    const report = reportOf(fraction, text);
    if ((this.#call.job === undefined && !this.isOfProgram) || this.#hasEnded) return;
    this.#progress ??= new Progress(this.#channel, this.callId);
    this.#progress.report(report);
  }

  /** Called before the call's ending is sent: nothing more may be reported of it. */
  end(): void {
    this.#hasEnded = true;
    this.#progress?.end();
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
