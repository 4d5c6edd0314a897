/**
 * The front's handle of one worker process.
 *
 * 1. A slot gets its process; `worker-start.ts` takes it from `hello` to `ready`.
 * 2. `held-calls.ts` handles its calls.
 * 3. It ends because it is asked to or killed (`worker-stop.ts`), or dies. `worker-end.ts` reports when it is dead: then its
 *    calls are handed back; and when it is gone: then its death is reported.
 */
import { Channel } from '../../protocol/wire/channel.js';
import { ServeError, protocolError } from '../../protocol/errors.js';
import type { DataPart, Message, Metric, StartSpec } from '../../protocol/wire/messages.js';
import { HeldCalls } from '../calls/held-calls.js';
import type { ReadyWorker } from '../dispatch/dispatcher.js';
import { callFacts, type Call } from '../dispatch/call.js';
import { DeathNotes } from './death-notes.js';
import type { Exit, KillCause } from './exit-report.js';
import { FrozenWatch } from './frozen-watch.js';
import type { WorkerProcess } from './spawn-worker.js';
import { Timers } from './timers.js';
import { CurrentState, type WorkerCore } from './worker-core.js';
import type { WorkerDeath } from './worker-death.js';
import { WorkerEnd } from './worker-end.js';
import type { WorkerState } from './worker-lifecycle.js';
import type { RetireLimits, WorkerLimits, WorkerListener } from './worker-listener.js';
import { WorkerStart } from './worker-start.js';
import { WorkerStop } from './worker-stop.js';
import { WorkerWebhooks } from './worker-webhooks.js';

type Moment = Pick<WorkerDeath, 'during' | 'inWarmUp' | 'call'>;

export class WorkerHandle implements ReadyWorker {
  readonly index: number;
  readonly #core: WorkerCore;
  readonly #listener: WorkerListener;
  readonly #start: WorkerStart;
  readonly #stop: WorkerStop;
  readonly #end: WorkerEnd;
  readonly #frozen: FrozenWatch;
  readonly #calls: HeldCalls;
  readonly #webhooks: WorkerWebhooks;
  /** Calendar time. */
  readonly startedAt = new Date();
  /** Its activity when its stream ended. */
  #lastMoment: Moment = { during: 'start', call: null };

  /** `process` has sent at most `hello`; from now on it is this worker's. */
  constructor(process: WorkerProcess, spec: StartSpec, limits: WorkerLimits, listener: WorkerListener) {
    this.index = spec.worker;
    this.#listener = listener;
    const core = this.#follow(process);
    this.#core = core;
    const { begun } = process;
    this.#calls = new HeldCalls(core.channel, () => begun.read(), limits, {
      onFinished: (call, runMs) => this.#onFinished(call, runMs),
      onCallError: (call, error) => listener.told({ type: 'callError', call, error }),
      onStuck: (cause) => this.kill(cause),
      onOutlasted: () => this.#leave('a call goes on after its time'),
    });
    this.#webhooks = new WorkerWebhooks(core.channel, (sent) => listener.told({ type: 'webhook', ...sent }));
    this.#stop = new WorkerStop(core);
    this.#start = new WorkerStart(core, this.#stop, spec, limits.initTimeout, {
      onLoaded: (info) => {
        const limits = listener.loaded(info);
        this.limits = limits;
        const { concurrency = 1 } = info;
        this.#calls.places = concurrency;
        begun.concurrency = concurrency;
        return limits.startBatchSize;
      },
      onSlowWarmUp: (advice) => listener.told({ type: 'slowWarmUp', advice }),
      onReady: () => {
        this.#frozen.start();
        listener.told({ type: 'ready' });
      },
    });
    this.#frozen = new FrozenWatch(core.timers, {
      isFrozen: () => core.process.isFrozen(),
      isIdle: () => this.state === 'ready' && this.load === 0,
      onChange: (isFrozen) => listener.told({ type: 'frozen', isFrozen }),
    });
    this.#end = new WorkerEnd(core.process, core.timers, {
      onSign: () => this.#onSign(),
      onUnreachable: () => this.kill('it closed its connection to the server'), // its calls go back once it is dead
      onDead: (exit) => this.#onDead(exit),
      onGone: (exit) => this.#onGone(exit),
    });
  }

  #follow(process: WorkerProcess): WorkerCore {
    const notes = new DeathNotes();
    process.stderr.on('data', (chunk: Buffer) => notes.noteStderr(chunk));
    const channel = new Channel(process.framesIn, process.framesOut, {
      onMessage: (message, pieces) => this.#onMessage(message, pieces),
      room: (message, bytes) => this.#calls.room(message, bytes),
      onEnd: (error) => this.#onStreamEnd(error),
      onWriteError: () => {}, // it is dying; its stream still delivers its last messages
    });
    process.framesIn.resume();
    const state = new CurrentState((from, to, event) =>
      this.#listener.told({ type: 'state', from, to, event }),
    );
    return { process, channel, state, timers: new Timers(), notes };
  }

  get pid(): number {
    return this.#core.process.pid;
  }

  get state(): WorkerState {
    return this.#core.state.name;
  }

  /** Time in the present state. */
  get stateMs(): number {
    return this.#core.state.ms;
  }

  /** Number of calls that it holds, running or sent ahead, including abandoned ones: they keep the worker busy until they end. */
  get load(): number {
    return this.#calls.count;
  }

  get places(): number {
    return this.#calls.places;
  }

  get heldBatches(): number {
    return this.#calls.batchCount;
  }

  /** Whether a signal has frozen it (SIGSTOP), as of the last look. */
  get isFrozen(): boolean {
    return this.#frozen.isFrozen;
  }

  maxBatch(route: string): number {
    return this.#start.maxBatch(route);
  }

  get isEngaged(): boolean {
    const first = this.#calls.first?.calls[0];
    return first !== undefined && first.call.conversation !== null;
  }

  get finishedCalls(): number {
    return this.#calls.finished;
  }

  get initMs(): number {
    return this.#start.initMs;
  }

  get uptimeMs(): number {
    return this.#start.uptimeMs;
  }

  get stdout(): WorkerProcess['stdout'] {
    return this.#core.process.stdout;
  }

  get stderr(): WorkerProcess['stderr'] {
    return this.#core.process.stderr;
  }

  /** Looks up the request id of the running call, for output that does not name its call; empty if none or several run. */
  lookUpRunningRequestId(): string {
    const [running, another] = this.#calls.lookUpRunning();
    return another === undefined ? (running?.calls[0]?.call.message.requestId ?? '') : '';
  }

  /** Looks up the same; if none runs, the call that has just ended: its output may arrive after its answer. */
  lookUpLastRequestId(): string {
    return this.#calls.lookUpRunning().length === 0 ? this.#calls.justEnded : this.lookUpRunningRequestId();
  }

  /** Looks up when the oldest running call began, on the monotonic clock; null if none runs. */
  lookUpCallBegan(): number | null {
    return this.#calls.lookUpRunning()[0]?.beganAtMs ?? null;
  }

  get runningMs(): number {
    const { first } = this.#calls;
    return first === null ? 0 : performance.now() - first.beganAtMs;
  }

  set callersWait(areWaiting: boolean) {
    this.#calls.callersWait = areWaiting;
  }

  /** Applies to calls that begin from now on and to a start that is under way. */
  set limits(limits: WorkerLimits) {
    this.#calls.limits = limits;
    this.#start.initTimeout = limits.initTimeout;
  }

  learnBegun(): void {
    this.#calls.learnBegun();
  }

  heldCalls(): Call[] {
    return this.#calls.calls();
  }

  /** Sends a batch. The worker must be `ready`. */
  assign(calls: readonly Call[]): void {
    this.#calls.assign(calls);
  }

  abandon(call: Call, reason: string): void {
    this.#calls.abandon(call, reason);
  }

  signal(call: Call, reason: string): void {
    this.#calls.signal(call, reason);
  }

  sendData(call: Call, part: Omit<DataPart, 'id'>, bytes: Uint8Array): void {
    this.#calls.sendData(call, part, bytes);
  }

  /** Ends each conversation as soon as its app waits for the client. */
  endConversations(why: ServeError): void {
    for (const { conversation } of this.heldCalls()) conversation?.goAway(why);
  }

  /** Gives it no more calls, and asks it to stop once the calls that it holds have ended, or their time is over. */
  retire(limits: RetireLimits): void {
    if (!this.#stop.retire(limits)) return;
    this.endConversations(
      new ServeError('SERVE_SHUTTING_DOWN', 'The worker of this connection is replaced.'),
    );
    if (this.load === 0) this.#stop.onFinished();
  }

  /** It gets no more calls, and stops once those that it holds have ended. Another worker takes its place. */
  #leave(why: string): void {
    if (!this.#stop.leave()) return;
    this.#calls.callersWait = true; // their clients may not keep it for ever
    this.endConversations(
      new ServeError('SERVE_SHUTTING_DOWN', 'The worker of this connection is replaced.'),
    );
    this.#listener.told({ type: 'leaving', why });
  }

  /** Asks it to stop; SIGTERM after `limitMs`, SIGKILL a second later. */
  stop(limitMs: number): void {
    this.#stop.stop(limitMs);
  }

  /** Ends it because of an error that the next worker would have too. */
  refuse({ code, message, detail }: ServeError): void {
    this.#core.notes.noteFatal({
      code,
      message: detail || message,
      detail,
      permanent: true,
      transient: false,
    });
    this.kill('over the memory budget');
  }

  /** Sends SIGKILL to the whole group, at once. The first cause is reported. */
  kill(cause: KillCause): void {
    this.#stop.kill(cause);
  }

  #onFinished(call: Call, runMs: number | null): void {
    this.#listener.finished(call, runMs);
    if (this.load === 0) this.#stop.onFinished();
  }

  #onMessage(message: Message, pieces: Buffer[]): void {
    if (this.#webhooks.take(message, pieces) || this.#calls.take(message, pieces)) return;
    switch (message.type) {
      case 'log':
        return this.#listener.told(message);
      case 'metrics':
        return this.#onMetrics(message.metrics);
      case 'hello':
        return this.#start.onHello(message.protocol);
      case 'loaded':
        return this.#start.onLoaded(message.info);
      case 'warmUp':
        return this.#start.onWarmUp(message.advice);
      case 'ready':
        return this.#start.onReady(message.initMs);
      case 'pong':
        return this.#calls.onPong(message.ref);
      case 'retiring':
        return this.#onRetiring(message.reason);
      case 'fatal':
        return this.#stop.onFatal(message);
      default:
        throw protocolError(`a worker cannot send ${message.type}`);
    }
  }

  /** It begins no call any more: those that have not begun go to other workers. */
  #onRetiring(reason: string): void {
    this.#leave(reason);
    const calls = this.#calls.takeUnbegun();
    if (calls.length > 0)
      this.#listener.told({ type: 'lost', calls, error: new ServeError('SERVE_WORKER_LOST') });
  }

  #onMetrics(sent: readonly Metric[]): void {
    const metrics = sent.map(({ callIds, ...metric }) => ({
      ...metric,
      requestIds: this.#calls.requestIds(callIds),
    }));
    this.#listener.told({ type: 'metrics', metrics });
  }

  #onStreamEnd(error: ServeError | null): void {
    // A frame that was cut by the worker's death is no protocol error.
    const wasCut = this.#core.process.framesIn.readableEnded;
    if (error !== null && !wasCut) this.#onBrokenFrames(error);
    this.#lastMoment = this.#describeMoment();
    this.#end.onStreamEnd();
  }

  #onBrokenFrames({ code, message, detail }: ServeError): void {
    this.#core.notes.noteFatal({ code, message, detail, permanent: false, transient: false });
    this.kill('protocol error');
  }

  /** First moment of its death: from now on it gets no calls. */
  #onSign(): void {
    const { state } = this.#core;
    if (state.name !== 'gone') state.enter('killRequested');
  }

  /** Second moment: hands back the calls that it held and did not answer. */
  #onDead(exit: Exit): void {
    const calls = this.#calls.lose();
    if (calls.length === 0) return;
    const { notes } = this.#core;
    const message = `The worker died while running this call (${notes.how(exit)}).`;
    const kind = notes.ranOutOfMemory(exit) ? 'out-of-memory' : '';
    const error = new ServeError('SERVE_WORKER_LOST', message, { kind });
    this.#listener.told({ type: 'lost', calls, error });
  }

  /** Third moment: reports its death. */
  #onGone(exit: Exit): void {
    const { state, timers, process } = this.#core;
    state.enter('ended');
    timers.stopAll();
    this.#calls.close();
    this.#webhooks.close();
    process.begun.close();
    this.#listener.told({ type: 'gone', death: this.#describeDeath(exit) });
  }

  #describeDeath(exit: Exit): WorkerDeath {
    return this.#core.notes.describe(exit, {
      pid: this.pid,
      ...this.#lastMoment,
      uptimeMs: this.uptimeMs,
      finishedCalls: this.#calls.finished,
      wanted: this.#stop.wanted,
    });
  }

  #describeMoment(): Moment {
    const [first, ...others] = this.#calls.lookUpRunning().flatMap(({ calls }) => calls);
    if (first !== undefined)
      return { during: 'call', call: { facts: callFacts(first.call.message), others: others.length } };
    // A call that it was reading may have killed it as well, though no code of the app ran for it.
    if (this.#calls.first !== null) return { during: 'call', call: null };
    const during = this.#core.state.wasReady ? 'idle' : 'start';
    return { during, inWarmUp: this.#start.isWarming, call: null };
  }
}
