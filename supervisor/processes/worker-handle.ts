/**
 * One worker process seen from the front: its channel, its state, its limits.
 *
 * 1. Spawned by its slot; `hello` -> `start` -> `loaded` -> `ready` walk the lifecycle (`worker-lifecycle.ts`).
 * 2. Calls are the business of `held-calls.ts`.
 * 3. It goes because it is asked to, killed, or dies: `worker-end.ts` tells when it is dead, then what it held is
 *    handed over, and gone, then its death is reported.
 */
import { performance } from 'node:perf_hooks';
import { Channel } from '../../protocol/channel.js';
import { ServeError, protocolError } from '../../protocol/errors.js';
import {
  PROTOCOL_VERSION,
  type DataPart,
  type LoadedInfo,
  type Message,
  type StartSpec,
} from '../../protocol/messages.js';
import type { ReadyWorker } from '../dispatch/dispatcher.js';
import { formatMs } from '../options/units.js';
import type { Job } from '../dispatch/job.js';
import { DeathNotes } from './death-notes.js';
import type { Exit, KillCause } from './exit-report.js';
import type { LimitTimer } from '../machine/limit-timer.js';
import { HeldCalls } from '../calls/held-calls.js';
import { spawnWorker, type SpawnOptions, type WorkerProcess } from './spawn-worker.js';
import { Timers } from './timers.js';
import type { WorkerDeath } from './worker-death.js';
import { WorkerEnd } from './worker-end.js';
import { nextState, startPhase, type WorkerEvent, type WorkerState } from './worker-lifecycle.js';
import type { RetireLimits, WorkerLimits, WorkerListener } from './worker-listener.js';
import { WorkerWebhooks } from './worker-webhooks.js';

/** Between SIGTERM and SIGKILL, and for a worker that said it is finished. */
export const TERM_GRACE_MS = 1000;

type Moment = Pick<WorkerDeath, 'during' | 'call'>;

export class WorkerHandle implements ReadyWorker {
  readonly pid: number;
  readonly #process: WorkerProcess;
  readonly #channel: Channel;
  readonly #listener: WorkerListener;
  readonly #spec: StartSpec;
  readonly #calls: HeldCalls;
  readonly #webhooks: WorkerWebhooks;
  readonly #end: WorkerEnd;
  readonly #notes = new DeathNotes();
  readonly #timers = new Timers();
  readonly #spawnedAtMs = performance.now();
  #state: WorkerState = 'spawning';
  #stateSinceMs = performance.now();
  #maxBatches: ReadonlyMap<string, number> = new Map();
  #initTimeoutMs: number;
  #readyAtMs = 0;
  #initMs = 0;
  #wanted = false;
  #retireGraceMs = 0;
  /** The phase of its start that it was in when it fell silent. */
  #lastMoment: Moment = { during: 'start', call: null };
  #initTimer: LimitTimer;

  /** @throws Error if the program cannot be started */
  constructor(spawn: SpawnOptions, spec: StartSpec, limits: WorkerLimits, listener: WorkerListener) {
    this.#spec = spec;
    this.#listener = listener;
    this.#process = spawnWorker(spawn);
    this.pid = this.#process.pid;
    this.#process.stderr.on('data', (chunk: Buffer) => this.#notes.printed(chunk));
    this.#channel = new Channel(this.#process.framesIn, this.#process.framesOut, {
      onMessage: (message, pieces) => this.#onMessage(message, pieces),
      onEnd: (error) => this.#onStreamEnd(error),
      onWriteError: () => {}, // it is dying; its stream still brings what it had to say
    });
    const { begun } = this.#process;
    this.#calls = new HeldCalls(this.#channel, () => begun.read(), limits, {
      onFinished: (job, runMs) => {
        listener.onFinished(job, runMs);
        this.#stopIfFinished();
      },
      onCallError: listener.onCallError,
      onHopeless: (cause) => this.kill(cause),
    });
    this.#webhooks = new WorkerWebhooks(this.#channel, listener.onWebhook);
    this.#end = new WorkerEnd(this.#process, this.#timers, {
      onSign: () => this.#onEndSign(),
      onUnreachable: () => this.kill('it closed its connection'), // others get its calls once it is dead
      onDead: (exit) => this.#loseCalls(exit),
      onGone: (exit) => this.#becomeGone(exit),
    });
    this.#initTimeoutMs = limits.initTimeoutMs;
    this.#initTimer = this.#timers.start(limits.initTimeoutMs, () => this.#onInitTimeout());
  }

  get state(): WorkerState {
    return this.#state;
  }

  /** Time in the present state. */
  get stateMs(): number {
    return performance.now() - this.#stateSinceMs;
  }

  /** Calls it holds, running or sent ahead, abandoned ones included: they keep the worker busy until they end. */
  get load(): number {
    return this.#calls.count;
  }

  get heldBatches(): number {
    return this.#calls.batchCount;
  }

  maxBatch(route: string): number {
    return this.#maxBatches.get(route) ?? 1;
  }

  get isEngaged(): boolean {
    const first = this.#calls.first?.calls[0];
    return first !== undefined && first.job.conversation !== null;
  }

  get finishedCalls(): number {
    return this.#calls.finished;
  }

  get initMs(): number {
    return this.#initMs;
  }

  get uptimeMs(): number {
    return performance.now() - this.#spawnedAtMs;
  }

  get stdout(): WorkerProcess['stdout'] {
    return this.#process.stdout;
  }

  get stderr(): WorkerProcess['stderr'] {
    return this.#process.stderr;
  }

  /** Id of the call running now, for prints that do not say whose they are. */
  get runningRequestId(): string {
    return this.#calls.running?.calls[0]?.job.call.requestId ?? '';
  }

  /** When the call running now began, on the monotonic clock; null if none is. */
  get callBeganAtMs(): number | null {
    return this.#calls.running?.beganAtMs ?? null;
  }

  get runningMs(): number {
    const { first } = this.#calls;
    return first === null ? 0 : performance.now() - first.beganAtMs;
  }

  /** The limits that hold from now on, for calls that begin and for a start that is under way. */
  set limits(limits: WorkerLimits) {
    this.#calls.limits = limits;
    if (startPhase(this.#state) === null) return;
    this.#timers.stop(this.#initTimer);
    const leftMs = limits.initTimeoutMs - this.uptimeMs;
    this.#initTimeoutMs = limits.initTimeoutMs;
    this.#initTimer = this.#timers.start(Math.max(0, leftMs), () => this.#onInitTimeout());
  }

  learnBegun(): void {
    this.#calls.learnBegun();
  }

  heldJobs(): Job[] {
    return this.#calls.jobs();
  }

  /** Sends a batch. The worker must be `ready`. */
  assign(jobs: readonly Job[]): void {
    this.#calls.assign(jobs);
  }

  abandon(job: Job, reason: string): void {
    this.#calls.abandon(job, reason);
  }

  sendData(job: Job, part: Omit<DataPart, 'id'>, bytes: Uint8Array): void {
    this.#calls.sendData(job, part, bytes);
  }

  /** Ends each conversation as soon as its app waits for the client. */
  endConversations(why: ServeError): void {
    for (const { conversation } of this.heldJobs()) conversation?.goAway(why);
  }

  /** Gives it no more calls, and asks it to stop once those it holds have ended, or have had their time. */
  retire({ finishMs, graceMs }: RetireLimits): void {
    this.#enter('retireRequested');
    if (this.#state !== 'finishing') return; // it is on its way out
    this.#retireGraceMs = graceMs;
    this.endConversations(
      new ServeError('SERVE_SHUTTING_DOWN', 'The worker of this connection is replaced.'),
    );
    this.#timers.start(finishMs, () => this.#state === 'finishing' && this.stop(graceMs));
    this.#stopIfFinished();
  }

  #stopIfFinished(): void {
    if (this.#state === 'finishing' && this.load === 0) this.stop(this.#retireGraceMs);
  }

  /**
   * Asks it to stop: a message, SIGTERM after `limitMs`, SIGKILL after another second. One that was never ready has
   * nothing to end, and may be in an `init` that hears no message: it gets SIGTERM at once.
   */
  stop(limitMs: number): void {
    if (this.#state === 'gone') return;
    const graceMs = this.#readyAtMs === 0 ? 0 : limitMs;
    this.#wanted = true;
    this.#enter('stopRequested');
    this.#channel.send({ type: 'stop', graceMs });
    this.#channel.flush();
    this.#timers.start(graceMs, () => this.#process.kill('SIGTERM'));
    this.#timers.start(graceMs + TERM_GRACE_MS, () => this.kill('did not stop in time'));
  }

  /** SIGKILL to the whole group, at once. The first cause is the one reported. */
  kill(cause: KillCause): void {
    if (this.#state === 'gone') return;
    if (cause === 'stop') this.#wanted = true;
    this.#notes.killedFor(cause);
    this.#enter('killRequested');
    this.#process.kill('SIGKILL');
  }

  #onMessage(message: Message, pieces: Buffer[]): void {
    if (this.#webhooks.take(message, pieces) || this.#calls.take(message, pieces)) return;
    switch (message.type) {
      case 'log':
        return this.#listener.onAppLog(message.level, message.message, message.fields, message.requestId);
      case 'hello':
        return this.#onHello(message.protocol);
      case 'loaded':
        return this.#onLoaded(message.info);
      case 'ready':
        return this.#onReady(message.initMs);
      case 'fatal':
        this.#notes.said(message);
        this.#enter('fatal');
        this.#timers.start(TERM_GRACE_MS, () => this.kill('did not stop in time'));
        return;
      default:
        throw protocolError(`a worker cannot send ${message.type}`);
    }
  }

  #onHello(protocol: number): void {
    if (protocol !== PROTOCOL_VERSION) {
      throw protocolError(`the worker speaks protocol ${protocol}, this server ${PROTOCOL_VERSION}`);
    }
    this.#enter('hello');
    this.#channel.send({ type: 'start', spec: this.#spec });
    this.#channel.flush();
  }

  #onLoaded(info: LoadedInfo): void {
    this.#enter('loaded');
    if (this.#state !== 'initializing') return; // asked to stop meanwhile: what it has loaded may be out of date
    try {
      this.limits = this.#listener.onLoaded(info);
      this.#maxBatches = new Map(info.routes.map(({ path, maxBatch }) => [path, maxBatch]));
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      this.#notes.said({
        code: thrown.code,
        message: thrown.message,
        detail: '',
        permanent: true,
        transient: false,
      });
      this.kill('stop');
      this.#wanted = false;
    }
  }

  #onInitTimeout(): void {
    const phase = `${startPhase(this.#state) ?? this.#state} (${formatMs(this.stateMs)} so far)`;
    const message = `not ready within ${formatMs(this.#initTimeoutMs)} (--init-timeout), still ${phase}`;
    const cure = 'Load less, or raise the limit.';
    const text = { message: `${message}. ${cure}`, detail: '' };
    this.#notes.said({ code: 'SERVE_INIT_TIMEOUT', ...text, permanent: false, transient: false });
    this.kill('init timeout');
  }

  #onReady(initMs: number): void {
    this.#timers.stop(this.#initTimer);
    this.#enter('ready');
    if (this.#state !== 'ready') return;
    this.#initMs = initMs;
    this.#readyAtMs = performance.now();
    this.#listener.onReady();
  }

  #onStreamEnd(error: ServeError | null): void {
    // A frame that is cut by the worker's death breaks no rule.
    const wasCut = this.#process.framesIn.readableEnded;
    if (error !== null && !wasCut) this.#onBrokenFrames(error);
    this.#lastMoment = this.#describeMoment();
    this.#end.onStreamEnd();
  }

  #onBrokenFrames({ code, message, detail }: ServeError): void {
    this.#notes.said({ code, message, detail, permanent: false, transient: false });
    this.kill('protocol error');
  }

  /** No call may go to it from now on. */
  #onEndSign(): void {
    if (this.#state !== 'gone') this.#enter('killRequested');
  }

  /** The calls that it held and did not answer are lost. */
  #loseCalls(exit: Exit): void {
    const jobs = this.#calls.lose();
    if (jobs.length === 0) return;
    const message = `The worker died while running this call (${this.#notes.how(exit)}).`;
    this.#listener.onLost(jobs, new ServeError('SERVE_WORKER_LOST', message));
  }

  #becomeGone(exit: Exit): void {
    this.#enter('ended');
    this.#timers.stopAll();
    this.#calls.close();
    this.#webhooks.close();
    this.#process.begun.close();
    this.#listener.onGone(this.#describeDeath(exit));
  }

  #describeDeath(exit: Exit): WorkerDeath {
    return this.#notes.describe(exit, {
      pid: this.pid,
      ...this.#lastMoment,
      uptimeMs: this.uptimeMs,
      finishedCalls: this.#calls.finished,
      wanted: this.#wanted,
    });
  }

  #describeMoment(): Moment {
    const running = this.#calls.running?.calls[0];
    if (running !== undefined) {
      const { requestId, route } = running.job.call; // without the rest, which would stay as long as the report
      return { during: 'call', call: { requestId, route } };
    }
    // A call that it was reading may have killed it as well, though no code of the app ran for it.
    if (this.#calls.first !== null) return { during: 'call', call: null };
    return { during: this.#readyAtMs === 0 ? 'start' : 'idle', call: null };
  }

  /** The one place where the state changes. */
  #enter(event: WorkerEvent): void {
    const from = this.#state;
    const to = nextState(from, event);
    this.#state = to;
    if (from === to) return;
    this.#stateSinceMs = performance.now();
    this.#listener.onTransition(from, to, event);
  }
}
