/**
 * Multi Model Server's metrics: each answer, each successful batch, each worker's start, and the machine's use at intervals.
 * They come from calls, workers and a timer, and go to lines of the log (`mms-lines.ts`), to TorchServe's metrics
 * (`torchserve-text.ts`), or to both.
 */
import { seenStatus, type ServeError } from '../../protocol/errors.js';
import type { BatchRun } from '../dispatch/service-time.js';
import type { Call } from '../dispatch/call.js';
import type { RequestContext, CountedRequest, RequestObserver } from '../http/request/request-context.js';
import type { hostReader } from '../machine/host-figures.js';
import type { Model } from '../models/model.js';
import type { ModelEvent } from '../models/model-resources.js';
import { probeAnswers } from '../observe/line-limit.js';
import type { AnswerClass, AnswerLine, MmsLines } from './mms-lines.js';
import type { TorchServeText } from './torchserve-text.js';

/** The calls of a batch that have ended. */
interface EndedCalls {
  count: number;
  runMs: number;
  readonly requestIds: string[];
}

export class MmsEvents implements Partial<RequestObserver> {
  readonly #lines: MmsLines | null;
  readonly #torchServe: TorchServeText | null;
  readonly #readFigures: ReturnType<typeof hostReader>;
  readonly #intervalMs: number;
  readonly #onProblem: (problem: string) => void;
  readonly #batches = new WeakMap<BatchRun, EndedCalls>();
  readonly #probes = probeAnswers();
  #timer: NodeJS.Timeout | null = null;
  #hasProblem = false;

  /** `onProblem` is called once if metrics of the machine cannot be read. */
  constructor(
    lines: MmsLines | null,
    torchServe: TorchServeText | null,
    readFigures: ReturnType<typeof hostReader>,
    intervalMs: number,
    onProblem: (problem: string) => void,
  ) {
    this.#lines = lines;
    this.#torchServe = torchServe;
    this.#readFigures = readFigures;
    this.#intervalMs = intervalMs;
    this.#onProblem = onProblem;
  }

  /** Reads the machine's figures now and after each interval. */
  start(): void {
    void this.#readHost();
    this.#timer = setInterval(() => void this.#readHost(), this.#intervalMs).unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#lines?.stop();
  }

  settled({ model, hasKey }: CountedRequest, call: Call, status: number, error: ServeError | null): void {
    const nowMs = performance.now();
    const answer = error !== null && seenStatus(status, error) === null ? null : classOf(status);
    this.#count(answer, hasKey || call.hasBegun ? 'own' : 'limited');
    if (model === null) return;
    const times = { queueMs: call.queueMs(nowMs), runMs: call.runMs, totalMs: nowMs - call.acceptedAtMs };
    if (answer !== null) this.#torchServe?.called(model, times);
    if (call.hasBegun) this.#endOf(model, call, error === null);
  }

  refused({ hasKey }: CountedRequest, _error: ServeError, status: number): void {
    this.#count(classOf(status), hasKey ? 'own' : 'limited');
  }

  answered({ hasKey, isProbe, path }: RequestContext, status: number): void {
    const isRepeated = isProbe && this.#probes(path, status) === 'same';
    const line = hasKey ? 'own' : 'limited';
    this.#count(classOf(status), isRepeated ? 'none' : line);
  }

  broken(status: number): void {
    this.#count(classOf(status), 'limited');
  }

  told(model: Model, event: ModelEvent): void {
    if (event.type !== 'ready') return;
    this.#lines?.loaded(model, event.worker, event.startMs);
    this.#torchServe?.loaded(model, event.worker, event.startMs);
  }

  #count(answer: AnswerClass | null, line: AnswerLine): void {
    if (answer === null) return;
    this.#lines?.answered(answer, line);
    this.#torchServe?.answered(answer);
  }

  #endOf(model: Model, { batch, runMs, message }: Call, wentWell: boolean): void {
    const none: EndedCalls = { count: 0, runMs: 0, requestIds: [] };
    const ended = (batch && this.#batches.get(batch)) ?? none;
    ended.count += 1;
    ended.runMs = Math.max(ended.runMs, runMs);
    if (wentWell) ended.requestIds.push(message.requestId);
    if (batch !== null && ended.count < batch.calls) this.#batches.set(batch, ended);
    else if (ended.requestIds.length > 0) {
      this.#lines?.predicted(model, ended.runMs, ended.requestIds);
      this.#torchServe?.predicted(model, ended.runMs);
    }
  }

  async #readHost(): Promise<void> {
    try {
      const host = await this.#readFigures();
      this.#lines?.hostRead(host);
      if (this.#torchServe !== null) this.#torchServe.host = host;
    } catch (error) {
      if (!this.#hasProblem)
        this.#onProblem(`metrics of the machine cannot be read: ${(error as Error).message}`);
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
