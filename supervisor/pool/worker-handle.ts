/**
 * One worker process seen from the front: its channel, its state, its timers, its death.
 *
 * 1. Spawned by its slot; `hello` -> `start` -> `loaded` -> `ready` walk the lifecycle (`worker-lifecycle.ts`).
 * 2. Calls are the business of `held-calls.ts`.
 * 3. Death is visible with the end of its stream or its exit, whichever is first; the calls it held are settled
 *    at once, and it is gone when both are known.
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
import type { Job } from '../dispatch/job.js';
import { describeExit, exitHint, readOomKills, type Exit, type KillCause } from './exit-report.js';
import { HeldCalls, type CallLimits } from './held-calls.js';
import { spawnWorker, type SpawnOptions, type WorkerProcess } from './spawn-worker.js';
import { Tail } from './tail.js';
import { Timers } from './timers.js';
import type { Fatal, WorkerDeath } from './worker-death.js';
import { WorkerWebhooks, type WebhookTaker } from './worker-webhooks.js';
import { nextState, type WorkerEvent, type WorkerState } from './worker-lifecycle.js';

/** Between SIGTERM and SIGKILL, and for a worker that said it is finished. */
export const TERM_GRACE_MS = 1000;

/** The second sign of a death (stream end, exit) follows the first within a few ms; callers do not wait longer. */
const SECOND_SIGN_MS = 25;

/** A stream can outlive its process only if somebody else holds the other end. */
const STREAM_LINGER_MS = 500;

/** Longest wait for the rest of what a dead worker printed. */
const LAST_WORDS_MS = 50;

const STDERR_TAIL_BYTES = 64 * 1024;
const REPORTED_LINES = 20;

export interface WorkerLimits extends CallLimits {
  readonly initTimeoutMs: number;
}

/** How long a worker that goes may take. */
export interface RetireLimits {
  /** For the calls it holds. */
  readonly finishMs: number;
  /** Between the message that asks it to stop and SIGTERM. */
  readonly graceMs: number;
}

/** News for the slot and the dispatcher above. */
export interface WorkerListener {
  /** The app is imported. Returns the limits that hold from now on. @throws SERVE_CONFIG if its options are wrong */
  onLoaded(info: LoadedInfo): WorkerLimits;
  onReady(): void;
  onFinished(job: Job, runMs: number | null): void;
  /** Calls it held when it died, in order. */
  onLost(jobs: Job[], error: ServeError): void;
  onGone(death: WorkerDeath): void;
  onAppLog(level: string, message: string, fields: string, requestId: string): void;
  onWebhook: WebhookTaker;
  onCallError(job: Job, error: ServeError): void;
  onTransition(from: WorkerState, to: WorkerState, event: WorkerEvent): void;
}

export class WorkerHandle implements ReadyWorker {
  readonly pid: number;
  readonly #process: WorkerProcess;
  readonly #channel: Channel;
  readonly #listener: WorkerListener;
  readonly #spec: StartSpec;
  readonly #calls: HeldCalls;
  readonly #webhooks: WorkerWebhooks;
  readonly #stderrTail = new Tail(STDERR_TAIL_BYTES);
  readonly #spawnedAtMs = performance.now();
  readonly #oomKillsBefore = readOomKills();
  #limits: WorkerLimits;
  #state: WorkerState = 'spawning';
  #readyAtMs = 0;
  #initMs = 0;
  #fatal: Fatal | null = null;
  #killCause: KillCause | null = null;
  #wanted = false;
  #retireGraceMs = 0;
  #streamEnded = false;
  #exit: Exit | null = null;
  #dyingDuring: { during: WorkerDeath['during']; requestId: string | null } | null = null;
  readonly #timers = new Timers();
  #initTimer: NodeJS.Timeout;

  /** @throws Error if the program cannot be started */
  constructor(spawn: SpawnOptions, spec: StartSpec, limits: WorkerLimits, listener: WorkerListener) {
    this.#spec = spec;
    this.#limits = limits;
    this.#listener = listener;
    this.#process = spawnWorker(spawn);
    this.pid = this.#process.pid;
    this.#process.stderr.on('data', (chunk: Buffer) => this.#stderrTail.push(chunk));
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
    this.#process.onExit((exit) => this.#onExit(exit));
    this.#initTimer = this.#timers.start(limits.initTimeoutMs, () => this.kill('init timeout'));
  }

  get state(): WorkerState {
    return this.#state;
  }

  /** Calls it holds, running or sent ahead, abandoned ones included: the seat is taken until they end. */
  get load(): number {
    return this.#calls.count;
  }

  get isEngaged(): boolean {
    return this.#calls.first !== null && this.#calls.first.job.conversation !== null;
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
    return this.#calls.running?.job.call.requestId ?? '';
  }

  /** When the call running now began, on the monotonic clock; null if none is. */
  get callBeganAtMs(): number | null {
    return this.#calls.running?.beganAtMs ?? null;
  }

  get runningMs(): number {
    const { first } = this.#calls;
    return first === null ? 0 : performance.now() - first.beganAtMs;
  }

  learnBegun(): void {
    this.#calls.learnBegun();
  }

  heldJobs(): Job[] {
    return this.#calls.jobs();
  }

  /** Only for a worker that is `ready`. */
  assign(job: Job): void {
    this.#calls.assign(job);
  }

  abandon(job: Job, reason: string): void {
    this.#calls.abandon(job, reason);
  }

  sendData(job: Job, part: Omit<DataPart, 'id'>, bytes: Uint8Array): void {
    this.#calls.sendData(job, part, bytes);
  }

  /** Each as soon as its app waits for the client. */
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

  /** Asks it to stop: a message, SIGTERM after `graceMs`, SIGKILL after another second. */
  stop(graceMs: number): void {
    if (this.#state === 'gone') return;
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
    this.#killCause ??= cause;
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
        this.#fatal ??= message;
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
      this.#limits = this.#listener.onLoaded(info);
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      this.#fatal ??= { code: thrown.code, message: thrown.message, detail: '', permanent: true };
      this.kill('stop');
      this.#wanted = false;
      return;
    }
    this.#calls.limits = this.#limits;
    this.#timers.stop(this.#initTimer);
    const leftMs = this.#limits.initTimeoutMs - this.uptimeMs;
    this.#initTimer = this.#timers.start(Math.max(0, leftMs), () => this.kill('init timeout'));
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
    this.#streamEnded = true;
    // A frame that is cut by the worker's death breaks no rule.
    const wasCut = this.#process.framesIn.readableEnded;
    if (error !== null && !wasCut) this.#onBrokenFrames(error);
    this.#noteDeath();
  }

  #onBrokenFrames({ code, message, detail }: ServeError): void {
    this.#fatal ??= { code, message, detail, permanent: false };
    this.kill('protocol error');
  }

  #onExit(exit: Exit): void {
    this.#exit = exit;
    this.#noteDeath();
    if (!this.#streamEnded) this.#timers.start(STREAM_LINGER_MS, () => this.#cutStream());
  }

  #cutStream(): void {
    if (!this.#streamEnded) this.#process.framesIn.destroy();
  }

  #noteDeath(): void {
    if (this.#state !== 'gone') this.#enter('killRequested'); // no call may go to it from now on
    if (!this.#streamEnded) return; // what it said last is still to be read
    this.#dyingDuring ??= this.#describeMoment();
    const exit = this.#exit;
    if (exit === null) {
      this.#timers.start(SECOND_SIGN_MS, () => this.#killUnreachable());
      return;
    }
    this.#loseCalls(exit);
    this.#process.kill('SIGKILL'); // its children, if it left any
    this.#afterLastWords(() => this.#becomeGone(exit));
  }

  /** What it printed last arrives with its exit, unless a stranger holds the pipes or nobody takes our own output. */
  #afterLastWords(callback: () => void): void {
    const { stdout, stderr } = this.#process;
    const open = new Set([stdout, stderr].filter(({ closed }) => !closed));
    if (open.size === 0) callback();
    for (const stream of open) {
      stream.once('close', () => open.delete(stream) && open.size === 0 && callback());
    }
    this.#timers.start(LAST_WORDS_MS, callback);
  }

  #describeMoment(): { during: WorkerDeath['during']; requestId: string | null } {
    const { running } = this.#calls;
    if (running !== null) return { during: 'call', requestId: running.job.call.requestId };
    return { during: this.#readyAtMs === 0 ? 'start' : 'idle', requestId: null };
  }

  /** Its own death would have shown by now: it lives, and can neither speak nor hear. Others get its calls once it is dead. */
  #killUnreachable(): void {
    if (this.#exit === null) this.kill('it closed its connection');
  }

  /** Everything the worker ever said is read: what it held and did not answer is lost. */
  #loseCalls(exit: Exit): void {
    const jobs = this.#calls.lose();
    if (jobs.length === 0) return;
    const how = describeExit(exit, this.#killCause);
    this.#listener.onLost(
      jobs,
      new ServeError('SERVE_WORKER_LOST', `The worker died while running this call (${how}).`),
    );
  }

  #becomeGone(exit: Exit): void {
    if (this.#state === 'gone') return;
    this.#enter('ended');
    this.#timers.stopAll();
    this.#calls.close();
    this.#webhooks.close();
    this.#process.begun.close();
    this.#listener.onGone(this.#describeDeath(exit));
  }

  #describeDeath(exit: Exit): WorkerDeath {
    const nowMs = performance.now();
    const stderrTail = this.#stderrTail.lastLines(REPORTED_LINES);
    const oomKills = (readOomKills() ?? 0) - (this.#oomKillsBefore ?? 0);
    const moment = this.#dyingDuring ?? this.#describeMoment();
    return {
      pid: this.pid,
      at: new Date(),
      exit,
      how: describeExit(exit, this.#killCause),
      hint: exitHint(exit, this.#killCause, stderrTail.join('\n'), oomKills),
      fatal: this.#fatal,
      during: moment.during,
      requestId: moment.requestId,
      readyMs: this.#readyAtMs === 0 ? 0 : nowMs - this.#readyAtMs,
      initMs: this.#initMs,
      uptimeMs: this.uptimeMs,
      finishedCalls: this.#calls.finished,
      stderrTail,
      wanted: this.#wanted,
    };
  }

  /** The one place where the state changes. */
  #enter(event: WorkerEvent): void {
    const from = this.#state;
    const to = nextState(from, event);
    this.#state = to;
    if (from !== to) this.#listener.onTransition(from, to, event);
  }
}
