/**
 * Runs the calls of a batch, from their common beginning to the end of the last one.
 *
 * 1. A note with the last id records that all of them begin.
 * 2. Each body is read; a malformed one fails its own call, and the others run.
 * 3. The app's batch function gets all inputs and returns one entry for each; `running-call.ts` answers each call.
 * 4. If it throws and the app set `repeatable`, the inputs run again in halves, so that only the guilty one fails.
 * 5. When the last ending is in the channel, `run-loop.ts` is called back.
 *
 * One object runs all batches of a worker, one after the other.
 */
import { AsyncResource } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ServeError } from '../../protocol/errors.js';
import { appLog } from '../report/app-log.js';
import { entriesOf, halvesOf } from '../adapters/batch-entries.js';
import { lossOfGpu } from '../failures/outlook.js';
import { isPotassiumResponse, mayAnswerSeveral } from '../reply/potassium-response.js';
import { isResponse } from '../reply/web-response.js';
import { RunningCall, type CallHost } from './running-call.js';
import type { OnEnded, Runner, RunnerOptions, WaitingCall } from './runner.js';
import { isThenable } from '../values/thenable.js';

/** A call whose body was read successfully. */
interface Item {
  readonly running: RunningCall;
  readonly input: unknown;
}

export class BatchRunner implements Runner {
  readonly #options: RunnerOptions;
  readonly #host: CallHost;
  readonly #onEnded: OnEnded;
  /** The calls of the batch that have no ending yet, by id, in their order. */
  readonly #open = new Map<number, RunningCall>();
  #isRunning = false;
  #beganAtMs = 0;
  /** The app will not be called again for this batch. */
  #hasRun = false;
  /** True while endings are put into the channel one after the other, so that they leave together. */
  #isDelivering = false;
  #hasHintedRepeatable = false;
  /** The error of the last call that ended; an error that shows a broken process takes precedence. */
  #thrown: unknown = undefined;

  /** `onEnded` is called once per batch, when all its endings are in the channel and the next call may begin. */
  constructor(options: RunnerOptions, onEnded: OnEnded) {
    this.#options = options;
    this.#host = { ...options, answersTogether: true, onEnded: (running) => this.#onCallEnded(running) };
    this.#onEnded = onEnded;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  get requestId(): string {
    const [first] = this.#open.values();
    return first?.call.requestId ?? '';
  }

  runs(id: number): boolean {
    return this.#open.has(id);
  }

  /** Runs calls of one route together. No other call may be running. */
  begin(batch: readonly WaitingCall[]): void {
    this.#beganAtMs = performance.now();
    this.#options.noteBegun((batch.at(-1) as WaitingCall).call.id);
    this.#isRunning = true;
    this.#hasRun = false;
    this.#thrown = undefined;
    for (const waiting of batch) {
      this.#open.set(waiting.call.id, new RunningCall(this.#host, waiting, this.#beganAtMs));
    }
    void this.#run([...this.#open.values()]);
  }

  cancel(id: number, reason: string): void {
    this.#open.get(id)?.cancel(reason);
  }

  abort(reason: string): void {
    for (const { ctx } of this.#open.values()) ctx.abort(reason);
  }

  grantCredit(id: number, bytes: number): void {
    this.#open.get(id)?.grantCredit(bytes);
  }

  /** Does nothing, because a WebSocket runs alone. */
  takeData(): void {}

  /** Never rejects. */
  async #run(calls: readonly RunningCall[]): Promise<void> {
    await this.#runItems(await this.#readInputs(calls));
    this.#hasRun = true;
    this.#endIfDone();
  }

  async #readInputs(calls: readonly RunningCall[]): Promise<Item[]> {
    const { app } = this.#options;
    const items: Item[] = [];
    for (const running of calls) {
      try {
        const input = running.readInput(app.wishes(running.call.route));
        items.push({ running, input: isThenable(input) ? await input : input });
      } catch (thrown) {
        running.fail(thrown);
      }
    }
    return items;
  }

  /** Runs the items whose clients still wait, and answers them. */
  async #runItems(items: readonly Item[]): Promise<void> {
    const waited = items.filter(({ running }) => !running.cancelled);
    for (const { running } of items) if (running.cancelled) running.fail(new ServeError('SERVE_CANCELLED'));
    if (waited.length === 0) return;
    let returned: unknown;
    try {
      returned = await this.#askApp(waited);
    } catch (thrown) {
      await this.#onThrown(waited, thrown);
      return;
    }
    this.#answerAll(waited, returned);
  }

  /** Returns the result of the batch function. A single remaining call runs as it would without batching. */
  #askApp(items: readonly Item[]): unknown {
    const { app, prints } = this.#options;
    const [{ running, input }] = items as [Item];
    const { call, ctx } = running;
    return prints.run(call.requestId, async () => {
      if (items.length === 1) return [await app.handle(call.route, input, ctx)];
      return app.handleBatch?.(
        call.route,
        items.map((item) => item.input),
        items.map((item) => item.running.ctx),
      );
    });
  }

  /** Called when none of these items has been answered. */
  async #onThrown(items: readonly Item[], thrown: unknown): Promise<void> {
    if (items.length > 1 && this.#options.app.repeatable) {
      for (const half of halvesOf(items)) {
        await nextTurn(); // reads the cancels of clients that have left in the meantime
        await new AsyncResource('banana-serve half').runInAsyncScope(() => this.#runItems(half));
      }
      return;
    }
    if (items.length > 1) this.#hintRepeatable(items.length);
    const failure = items.length > 1 && isForOneCall(thrown) ? batchResponseError(items.length) : thrown;
    this.#together(() => {
      for (const { running } of items) running.fail(failure);
    });
  }

  #answerAll(items: readonly Item[], returned: unknown): void {
    let entries: readonly unknown[];
    try {
      entries = entriesOf(returned, items.length);
    } catch (wrong) {
      entries = items.map(() => wrong);
    }
    this.#together(() => items.forEach(({ running }, i) => running.answer(entries[i])));
  }

  #together(deliver: () => void): void {
    this.#isDelivering = true;
    deliver();
    this.#isDelivering = false;
    this.#options.channel.flush();
  }

  #onCallEnded({ call, thrown }: RunningCall): void {
    if (this.#thrown === undefined || lossOfGpu(this.#thrown) === undefined) this.#thrown = thrown;
    this.#open.delete(call.id);
    if (!this.#isDelivering) this.#options.channel.flush();
    this.#endIfDone();
  }

  #endIfDone(): void {
    if (!this.#hasRun || this.#open.size > 0) return;
    this.#isRunning = false;
    this.#onEnded(performance.now() - this.#beganAtMs, this.#thrown);
  }

  #hintRepeatable(count: number): void {
    if (this.#hasHintedRepeatable) return;
    this.#hasHintedRepeatable = true;
    appLog(this.#options.channel, '').warn(
      `The batch function threw, and all ${count} calls of its batch fail. If inputs may safely run twice, set \`export const config = { repeatable: true }\`: then such a batch runs again in halves, and only the call that makes it throw fails.`,
    );
  }
}

/** Whether it is a Response with which only one call can be answered. */
function isForOneCall(thrown: unknown): boolean {
  return isResponse(thrown) || (isPotassiumResponse(thrown) && !mayAnswerSeveral(thrown));
}

/** The error of a batch function that throws such a Response: it could answer only one call, and nothing shows which. */
function batchResponseError(calls: number): Error {
  return new TypeError(
    `a Response was thrown for ${calls} calls at once; return it as the entry of its call`,
  );
}
