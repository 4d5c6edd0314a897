/**
 * Runs the calls of a worker in order, in as many places as the app has: one, or several if its functions wait for something
 * else meanwhile.
 *
 * 1. `accept` puts calls into the inbox once their bodies are complete: one, or a batch, whose calls begin together.
 * 2. `pump` begins the next ones in a free place, behind a note that they begin; so after a death the front knows exactly
 *    which calls may have run. With one place it waits until the answers before are in the kernel. With several they may
 *    never all be, while other calls stream: they die with the worker, as the calls that run do.
 * 3. `run-calls.ts` runs the app, `running-call.ts` answers each call and calls back at its end.
 *
 * `main.ts` delivers the messages; the channel sends the answers.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import type { Channel } from '../../protocol/wire/channel.js';
import { ServeError, protocolError } from '../../protocol/errors.js';
import { maxBatchOf } from '../adapters/loaded-app.js';
import { lossOfGpu } from '../failures/outlook.js';
import { Retirement } from '../failures/retirement.js';
import type { BegunNote } from '../process/begun-note.js';
import type { ActivityListener } from '../process/stay-awake.js';
import { RunningCall, sendError, type CallHost, type Run, type WaitingCall } from './running-call.js';
import { runCalls } from './run-calls.js';

export interface RunLoopOptions extends Omit<CallHost, 'onEnded'> {
  readonly note: BegunNote;
  readonly activity: ActivityListener;
  /** Called when no call runs and none will begin, after `retire`. */
  onIdleAfterRetire(): void;
  /** Called when the error of a call shows that a new process would do better. */
  onDoubt(why: ServeError): void;
}

/** Calls that begin together. */
interface Waiting {
  readonly calls: readonly WaitingCall[];
  /**
   * The async context they run in, so that no later call sees what their app enters with `AsyncLocalStorage.enterWith`.
   */
  readonly asyncContext: AsyncResource;
}

/** After a call that blocked the thread this long, pending cancels are read before the next call begins. */
const YIELD_AFTER_MS = 1;

const NONE: readonly RunningCall[] = [];

export class RunLoop {
  readonly #channel: Channel;
  readonly #host: RunLoopOptions & CallHost;
  readonly #retirement = new Retirement();
  /** The request id of the call whose code runs; null with one place, where it is that of the call that runs. */
  readonly #current: AsyncLocalStorage<string> | null;
  /** A list, which is replaced and never changed: for one call it costs nothing, and several are few. */
  #running: readonly RunningCall[] = NONE;
  #inbox: Waiting[] = [];
  #freePlaces: number;
  #pumping = false;
  /** True while the loop waits for the kernel to take an answer, or for pending cancels to be read. */
  #resting = false;
  #retired = false;

  constructor(options: RunLoopOptions) {
    this.#channel = options.channel;
    this.#host = { ...options, onEnded: (running) => this.#onEnded(running) };
    this.#current = options.concurrency > 1 ? new AsyncLocalStorage() : null;
    this.#freePlaces = options.concurrency;
  }

  /** Request id of the call whose code runs; empty outside of calls. */
  get runningRequestId(): string {
    if (this.#current !== null) return this.#current.getStore() ?? '';
    return this.#running[0]?.call.requestId ?? '';
  }

  /**
   * Takes calls whose bodies are complete: one, or a batch, which `pump` begins together.
   * @throws SERVE_PROTOCOL if that many may not begin
   */
  accept(calls: readonly WaitingCall[]): void {
    this.#assertAllowed(calls);
    if (this.#retired) return; // the front has sent it before it knew
    this.#inbox.push({ calls, asyncContext: new AsyncResource('banana-serve call') });
    this.#host.activity.onCall();
  }

  /** The call of this id, if it has begun and not ended. */
  running(id: number): RunningCall | undefined {
    return this.#running.find(({ call }) => call.id === id);
  }

  /** Cancels a call whose client does not wait any more: drops it if it has not begun, otherwise aborts its signal. */
  cancel(id: number, reason: string): void {
    const running = this.running(id);
    if (running !== undefined) {
      running.cancel(reason);
      return;
    }
    const index = this.#inbox.findIndex(({ calls }) => calls.some(({ call }) => call.id === id));
    if (index < 0) return; // it was answered while the cancel was on its way
    const { calls, asyncContext } = this.#inbox[index] as Waiting;
    const others = calls.filter(({ call }) => call.id !== id);
    this.#inbox.splice(index, 1, ...(others.length === 0 ? [] : [{ calls: others, asyncContext }]));
    this.sendCancelled(id);
  }

  /** Sends the ending of a call that never began. */
  sendCancelled(id: number): void {
    if (this.#retired) return; // the front has taken it back, and knows its id no more
    sendError(this.#channel, id, new ServeError('SERVE_CANCELLED'), 0);
    this.#channel.flush();
  }

  /**
   * Begins no further call, and aborts those that run if `abortReason` is given. `doubt`: why the worker will end itself;
   * null if it was asked to.
   */
  retire(abortReason: string | null, doubt: string | null): void {
    this.#retired = true;
    this.#inbox = [];
    if (abortReason !== null) for (const { ctx } of this.#running) ctx.abort(abortReason);
    if (this.#running.length === 0) {
      this.#host.onIdleAfterRetire();
      return;
    }
    // The front must know that what it has sent meanwhile does not begin here: several running calls may take long. One call
    // is the last of its worker, whose death then gives back what was sent ahead.
    if (doubt !== null && this.#host.concurrency > 1) this.#channel.send({ type: 'retiring', reason: doubt });
    this.#channel.flush();
  }

  /** Begins the next calls that may begin. Called once per read, so that a cancel after a call is seen before it begins. */
  pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    while (this.#freePlaces > 0 && !this.#resting && !this.#retired && this.#inbox.length > 0) {
      this.#channel.flush();
      // An answer that is not in the kernel would die with the process, so its call does not count as ended yet.
      if (this.#host.concurrency > 1 || this.#channel.flushed) this.#beginNext();
      else this.#rest((goOn) => this.#channel.onceFlushed(goOn));
    }
    this.#pumping = false;
    this.#channel.flush();
    if (this.#running.length === 0 && this.#inbox.length === 0) this.#host.activity.onIdle();
  }

  #beginNext(): void {
    const { calls, asyncContext } = this.#inbox.shift() as Waiting;
    const answersTogether = calls.length > 1 || this.#current !== null;
    const beganAtMs = performance.now();
    const run: Run = {
      beganAtMs,
      answersTogether,
      open: calls.length,
      isDelivering: false,
      thrown: undefined,
    };
    const { id, requestId } = (calls.at(-1) as WaitingCall).call;
    this.#host.note.begin(id); // those of its batch before it begin too
    const begun = calls.map((waiting) => new RunningCall(this.#host, waiting, run));
    this.#running = this.#running.length === 0 ? begun : [...this.#running, ...begun];
    this.#freePlaces -= 1;
    if (this.#current === null) asyncContext.runInAsyncScope(runCalls, null, begun, run, this.#host);
    else asyncContext.runInAsyncScope(() => this.#current?.run(requestId, runCalls, begun, run, this.#host));
  }

  /** @throws SERVE_PROTOCOL */
  #assertAllowed(calls: readonly WaitingCall[]): void {
    const { concurrency, app } = this.#host;
    if (concurrency > 1) {
      const held = this.#running.length + this.#inbox.length + calls.length;
      if (calls.length === 1 && held <= concurrency) return;
      throw protocolError(`${held} calls, ${calls.length} of them at once; ${concurrency} may run`);
    }
    if (calls.length === 1) return;
    const { route } = (calls[0] as WaitingCall).call;
    const isOneRoute = calls.every(({ call }) => call.route === route);
    const maxBatch = maxBatchOf(app, route);
    if (isOneRoute && calls.length <= maxBatch) return;
    throw protocolError(`a batch of ${calls.length} calls; the route ${route} takes at most ${maxBatch}`);
  }

  /** Begins nothing until the callback that it hands out is called. */
  #rest(until: (goOn: () => void) => void): void {
    this.#resting = true;
    until(() => {
      this.#resting = false;
      this.pump();
    });
  }

  /** The ending of a call is in the channel. */
  #onEnded(ended: RunningCall): void {
    const { call, socket, run, thrown } = ended;
    socket?.end();
    this.#running = this.#running.length === 1 ? NONE : this.#running.filter((other) => other !== ended);
    run.open -= 1;
    // The last error counts for the worker, unless one before shows that its process is broken.
    if (run.thrown === undefined || lossOfGpu(run.thrown) === undefined) run.thrown = thrown;
    if (run.open === 0) this.#onRunEnded(run, call.id);
    else if (!run.isDelivering) this.#channel.flush();
  }

  /** `id`: that of the last call to end. */
  #onRunEnded(run: Run, id: number): void {
    this.#freePlaces += 1;
    this.#host.note.end(id);
    const doubt = this.#retirement.afterCall(run.thrown);
    if (doubt !== null && !this.#retired) {
      this.#channel.flush();
      this.#host.onDoubt(doubt);
    } else if (this.#retired) {
      this.#channel.flush();
      if (this.#running.length === 0) this.#host.onIdleAfterRetire();
    } else if (performance.now() - run.beganAtMs > YIELD_AFTER_MS && this.#inbox.length > 0) {
      this.#channel.flush();
      this.#rest(setImmediate);
    } else {
      this.pump();
    }
  }
}
