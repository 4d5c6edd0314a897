/**
 * The front's handle of one worker process.
 *
 * 1. A slot gets its process; `worker-start.ts` times its way from `hello` to `ready`.
 * 2. It takes calls and ends them: that half of it is `CallWorker`.
 * 3. It ends because it is asked to or killed (`worker-stop.ts`), or dies. `worker-end.ts` reports when it is dead: then its
 *    calls are handed back; and when it is gone: then its death is reported.
 */
import { ServeError, protocolError } from '../../protocol/errors.js';
import type { Hello, LoadedInfo, Message, StartSpec } from '../../protocol/wire/messages.js';
import { CallWorker } from '../calls/call-worker.js';
import { callFacts, type Call } from '../dispatch/call.js';
import { Timers } from '../machine/limit-timer.js';
import type { WorkerProcess } from './spawn-worker.js';
import { DeathNotes, type Exit, type KillCause, type WorkerDeath } from './worker-death.js';
import { WorkerEnd } from './worker-end.js';
import { CurrentState, type WorkerCore, type WorkerState } from './worker-lifecycle.js';
import type { RetireLimits, WorkerLimits, WorkerListener } from './worker-listener.js';
import { WorkerStart } from './worker-start.js';
import { WorkerStop } from './worker-stop.js';
import { WorkerWebhooks } from './worker-webhooks.js';

/** Time between two looks whether a signal has frozen the worker. */
export const FROZEN_LOOK_MS = 5000;

const REPLACED = 'The worker of this connection is replaced.';

export class WorkerHandle extends CallWorker {
  readonly pid: number;
  readonly stdout: WorkerProcess['stdout'];
  readonly stderr: WorkerProcess['stderr'];
  /** Calendar time. */
  readonly startedAt = new Date();
  /** Time that the app took to get ready, as the worker reports it; 0 before. */
  initMs = 0;
  readonly #core: WorkerCore;
  readonly #listener: WorkerListener;
  readonly #start: WorkerStart;
  readonly #stop: WorkerStop;
  readonly #end: WorkerEnd;
  readonly #webhooks: WorkerWebhooks;
  /** Comes before all else. */
  #hello: Hello | undefined;
  /** Its activity when its stream ended. */
  #lastMoment: Pick<WorkerDeath, 'during' | 'inWarmUp' | 'call'> = { during: 'start', call: null };

  /** `process` has sent at most `hello`; from now on it is this worker's. */
  constructor(process: WorkerProcess, spec: StartSpec, limits: WorkerLimits, listener: WorkerListener) {
    const { pid, stdout, stderr, framesIn, framesOut, begun } = process;
    super(spec.worker, framesIn, framesOut, () => begun.read(), limits);
    this.pid = pid;
    this.stdout = stdout;
    this.stderr = stderr;
    this.#listener = listener;
    const notes = new DeathNotes();
    stderr.on('data', (chunk: Buffer) => notes.noteStderr(chunk));
    const state = new CurrentState((from, to, event) => listener.told({ type: 'state', from, to, event }));
    const timers = new Timers();
    this.#core = { process, channel: this.channel, state, timers, notes };
    this.#webhooks = new WorkerWebhooks(this.channel, (sent) => listener.told(sent));
    this.#stop = new WorkerStop(this.#core);
    this.#start = new WorkerStart(this.#core, this.#stop, spec, limits.initTimeout, (advice) =>
      listener.told({ type: 'slowWarmUp', advice }),
    );
    this.#end = new WorkerEnd(process, timers, {
      onSign: () => this.#onSign(),
      onUnreachable: () => this.kill('it closed its connection to the server'), // its calls go back once it is dead
      onDead: (exit) => this.#onDead(exit),
      onGone: (exit) => this.#onGone(exit),
    });
    framesIn.resume();
  }

  get state(): WorkerState {
    return this.#core.state.name;
  }

  /** Time in the present state. */
  get stateMs(): number {
    return this.#core.state.ms;
  }

  get uptimeMs(): number {
    return this.#core.state.uptimeMs;
  }

  /** Applies to calls that begin from now on and to a start that is under way. */
  override set limits(limits: WorkerLimits) {
    super.limits = limits;
    this.#start.initTimeout = limits.initTimeout;
  }

  /** Gives it no more calls, and asks it to stop once the calls that it holds have ended, or their time is over. */
  retire(limits: RetireLimits): void {
    if (!this.#stop.retire(limits)) return;
    this.endConversations(new ServeError('SERVE_SHUTTING_DOWN', REPLACED));
    if (this.load === 0) this.#stop.onFinished();
  }

  /** It gets no more calls, and stops once those that it holds have ended. Another worker takes its place. */
  leave(why: string): void {
    if (!this.#stop.leave()) return;
    this.callersWait = true; // their clients may not keep it for ever
    this.endConversations(new ServeError('SERVE_SHUTTING_DOWN', REPLACED));
    this.#listener.told({ type: 'leaving', why });
  }

  /** Asks it to stop; SIGTERM after `limitMs`, SIGKILL a second later. */
  stop(limitMs: number): void {
    this.#stop.stop(limitMs);
  }

  /** Ends it because of an error that the next worker would have too. */
  refuse({ code, message, detail }: ServeError): void {
    this.#core.notes.noteFatal({ code, message: detail || message, detail, permanent: true });
    this.kill('over the memory budget');
  }

  /** Sends SIGKILL to the whole group, at once. The first cause is reported. */
  kill(cause: KillCause): void {
    this.#stop.kill(cause);
  }

  onCallError(call: Call, error: ServeError): void {
    this.#listener.told({ type: 'callError', call, error });
  }

  protected onFinished(call: Call, runMs: number | null): void {
    this.#listener.finished(call, runMs);
    if (this.load === 0 && this.#core.state.name === 'finishing') this.#stop.onFinished();
  }

  onMessage(message: Message, pieces: Buffer[]): void {
    if (this.answers.take(message, pieces)) return;
    switch (message.type) {
      case 'log':
        return this.#listener.told(message);
      case 'metrics': {
        const metrics = message.metrics.map(({ callIds, ...metric }) => ({
          ...metric,
          requestIds: this.requestIds(callIds),
        }));
        return this.#listener.told({ type: 'metrics', metrics });
      }
      case 'webhook':
      case 'body':
        return this.#webhooks.take(message, pieces);
      case 'hello':
        this.#hello = message;
        return this.#start.onHello(message.protocol);
      case 'loaded':
        return this.#onLoaded(message.info);
      case 'warmUp':
        return this.#start.onWarmUp(message.advice);
      case 'ready':
        return this.#onReady(message.initMs);
      case 'pong':
        return this.timeout.onPong(message.ref);
      case 'retiring':
        return this.#onRetiring(message.reason);
      case 'fatal':
        return this.#stop.onFatal(message);
      default:
        throw protocolError(`a worker cannot send ${message.type}`);
    }
  }

  #onLoaded(info: LoadedInfo): void {
    const { state, notes, process } = this.#core;
    state.enter('loaded');
    if (state.name !== 'initializing') return; // asked to stop meanwhile: the code that it has loaded may be out of date
    try {
      const limits = this.#listener.loaded(info, this.#hello as Hello);
      this.limits = limits;
      this.places = info.concurrency ?? 1;
      process.begun.concurrency = this.places;
      const most = limits.startBatchSize;
      this.maxBatches = new Map(info.routes.map(({ path, maxBatch }) => [path, Math.min(maxBatch, most)]));
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      notes.noteFatal({ code: thrown.code, message: thrown.message, permanent: true });
      this.kill('its options are wrong');
    }
  }

  #onReady(initMs: number): void {
    this.#start.onReady();
    if (this.state !== 'ready') return;
    this.initMs = initMs;
    this.#watchFrozen();
    this.#listener.told({ type: 'ready' });
  }

  /**
   * Looks again and again whether a signal has frozen it while it is idle: the kernel reports it, and nothing else would before
   * the next call. A ping would not tell it apart from an app that computes between calls.
   */
  #watchFrozen(): void {
    const { process, timers } = this.#core;
    timers.start(FROZEN_LOOK_MS, () => {
      const isIdle = this.state === 'ready' && this.load === 0;
      // A frozen worker may have been given a call since, for want of others.
      const isFrozen = (this.isFrozen || isIdle) && process.isFrozen();
      if (isFrozen !== this.isFrozen) {
        this.isFrozen = isFrozen;
        this.#listener.told({ type: 'frozen', isFrozen });
      }
      this.#watchFrozen();
    });
  }

  /** It begins no call any more: those that have not begun go to other workers. */
  #onRetiring(reason: string): void {
    this.leave(reason);
    const calls = this.takeUnbegun();
    if (calls.length > 0)
      this.#listener.told({ type: 'lost', calls, error: new ServeError('SERVE_WORKER_LOST') });
  }

  onEnd(error: ServeError | null): void {
    const { process, notes } = this.#core;
    // A frame that was cut by the worker's death is no protocol error.
    if (error !== null && !process.framesIn.readableEnded) {
      notes.noteFatal({ code: error.code, message: error.message, detail: error.detail });
      this.kill('protocol error');
    }
    this.#lastMoment = this.#describeMoment();
    this.#end.onStreamEnd();
  }

  /** First moment of its death: from now on it gets no calls. */
  #onSign(): void {
    const { state } = this.#core;
    if (state.name !== 'gone') state.enter('killRequested');
  }

  /** Second moment: hands back the calls that it held and did not answer. */
  #onDead(exit: Exit): void {
    const calls = this.lose();
    if (calls.length === 0) return;
    const { notes } = this.#core;
    const message = `The worker died while running this call (${notes.how(exit)}).`;
    const kind = notes.ranOutOfMemory(exit) ? 'out-of-memory' : '';
    const error = new ServeError('SERVE_WORKER_LOST', message, { kind });
    this.#listener.told({ type: 'lost', calls, error });
  }

  /** Third moment: reports its death. */
  #onGone(exit: Exit): void {
    const { state, timers, process, notes } = this.#core;
    state.enter('ended');
    timers.stopAll();
    this.#webhooks.close();
    process.begun.close();
    const death = notes.describe(exit, {
      pid: this.pid,
      ...this.#lastMoment,
      uptimeMs: this.uptimeMs,
      finishedCalls: this.finishedCalls,
      wanted: this.#stop.wanted,
    });
    this.#listener.told({ type: 'gone', death });
  }

  #describeMoment(): Pick<WorkerDeath, 'during' | 'inWarmUp' | 'call'> {
    const [first, ...others] = this.lookUpRunning().flatMap(({ calls }) => calls);
    if (first !== undefined)
      return { during: 'call', call: { facts: callFacts(first.call.message), others: others.length } };
    // A call that it was reading may have killed it as well, though no code of the app ran for it.
    if (this.load > 0) return { during: 'call', call: null };
    const during = this.#core.state.wasReady ? 'idle' : 'start';
    return { during, inWarmUp: this.#start.isWarming, call: null };
  }
}
