/**
 * Events for Multi Model Server's metrics: each answer, each successful batch, each worker's start, and the machine's use at
 * intervals. They come from calls, workers and a timer, and go to lines of the log (`mms-lines.ts`) or to TorchServe's
 * metrics (`torchserve-text.ts`).
 */
import { seenStatus, type ServeError } from '../../protocol/errors.js';
import type { BatchRun } from '../dispatch/service-time.js';
import type { Call } from '../dispatch/call.js';
import type { LoggedRequest, CountedRequest, RequestObserver } from '../http/request/backend.js';
import type { HostFigures, HostReader } from '../machine/host-figures.js';
import { ProbeAnswers } from '../observe/line-limit.js';
import type { Model } from '../models/model.js';
import type { ModelEvent } from '../models/model-resources.js';

export type AnswerClass = '2XX' | '4XX' | '5XX';

/** Times of an accepted call. */
export interface CallTimes {
  readonly queueMs: number;
  readonly runMs: number;
  readonly totalMs: number;
}

export interface AnsweredCall {
  readonly model: Model;
  readonly times: CallTimes;
}

/**
 * The line of an answer in a log. `own`: it has one. `limited`: it was given to a client without a key and cost no run.
 * `none`: a probe that is answered as before.
 */
export type AnswerLine = 'own' | 'limited' | 'none';

export interface MmsListener {
  /** A request was answered. `call` is null if it was refused, or is not a call, such as a page or a probe. */
  answered(status: AnswerClass, call: AnsweredCall | null, line: AnswerLine): void;
  /** A batch ended in which at least one call succeeded. */
  predicted(model: Model, ms: number, requestIds: readonly string[]): void;
  loaded(model: Model, worker: number, ms: number): void;
  hostRead(host: HostFigures): void;
  /** The server ends. */
  stop?(): void;
}

/** The calls of a batch that have ended. */
interface EndedCalls {
  count: number;
  runMs: number;
  readonly requestIds: string[];
}

export interface MmsEventsOptions {
  readonly intervalMs: number;
  readonly host: HostReader;
  /** Called once if metrics of the machine cannot be read. */
  onProblem(problem: string): void;
}

export class MmsEvents implements Partial<RequestObserver> {
  readonly #listeners: readonly MmsListener[];
  readonly #options: MmsEventsOptions;
  readonly #batches = new WeakMap<BatchRun, EndedCalls>();
  readonly #probes = new ProbeAnswers();
  #timer: NodeJS.Timeout | null = null;
  #hasProblem = false;

  constructor(listeners: readonly MmsListener[], options: MmsEventsOptions) {
    this.#listeners = listeners;
    this.#options = options;
  }

  /** Reads the machine's figures now and after each interval. */
  start(): void {
    void this.#readHost();
    this.#timer = setInterval(() => void this.#readHost(), this.#options.intervalMs);
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    for (const listener of this.#listeners) listener.stop?.();
  }

  settled({ model, hasKey }: CountedRequest, call: Call, status: number, error: ServeError | null): void {
    const nowMs = performance.now();
    const answer = seenStatus(status, error) === null ? null : classOf(status);
    const times = { queueMs: call.queueMs(nowMs), runMs: call.runMs, totalMs: nowMs - call.acceptedAtMs };
    const line = hasKey || call.hasBegun ? 'own' : 'limited';
    if (answer !== null) this.#answered(answer, model === null ? null : { model, times }, line);
    if (model !== null && call.hasBegun) this.#endOf(model, call, error === null);
  }

  refused({ hasKey }: CountedRequest, _error: ServeError, status: number): void {
    this.#count(status, hasKey ? 'own' : 'limited');
  }

  answered({ hasKey, isProbe, path }: LoggedRequest, status: number): void {
    if (isProbe && this.#probes.take(path, status) === 'same') this.#count(status, 'none');
    else this.#count(status, hasKey ? 'own' : 'limited');
  }

  broken(status: number): void {
    this.#count(status, 'limited');
  }

  told(model: Model, event: ModelEvent): void {
    if (event.type !== 'ready') return;
    for (const listener of this.#listeners) listener.loaded(model, event.worker, event.startMs);
  }

  #count(status: number, line: AnswerLine): void {
    const answer = classOf(status);
    if (answer !== null) this.#answered(answer, null, line);
  }

  #answered(answer: AnswerClass, call: AnsweredCall | null, line: AnswerLine): void {
    for (const listener of this.#listeners) listener.answered(answer, call, line);
  }

  #predicted(model: Model, { runMs, requestIds }: EndedCalls): void {
    for (const listener of this.#listeners) listener.predicted(model, runMs, requestIds);
  }

  #endOf(model: Model, { batch, runMs, message }: Call, wentWell: boolean): void {
    const ended = (batch === null ? undefined : this.#batches.get(batch)) ?? {
      count: 0,
      runMs: 0,
      requestIds: [],
    };
    ended.count += 1;
    ended.runMs = Math.max(ended.runMs, runMs);
    if (wentWell) ended.requestIds.push(message.requestId);
    if (batch !== null && ended.count < batch.calls) this.#batches.set(batch, ended);
    else if (ended.requestIds.length > 0) this.#predicted(model, ended);
  }

  async #readHost(): Promise<void> {
    try {
      const host = await this.#options.host.read();
      for (const listener of this.#listeners) listener.hostRead(host);
    } catch (error) {
      if (!this.#hasProblem)
        this.#options.onProblem(`metrics of the machine cannot be read: ${(error as Error).message}`);
      this.#hasProblem = true;
    }
  }
}

/** Null for 1xx and 3xx, which are neither success nor failure; Multi Model Server counted them as its own failures. */
function classOf(status: number): AnswerClass | null {
  if (status >= 200 && status < 300) return '2XX';
  if (status >= 400 && status < 500) return '4XX';
  return status >= 500 ? '5XX' : null;
}

/** Multi Model Server's name of a worker, with the port that it would have had. */
export function workerName({ spec: { name } }: Model, worker: number): string {
  return `W-${9000 + worker}-${name}`;
}
