/**
 * One worker process seen from the front: its channel, its state, the calls it holds, its timers.
 *
 * 1. Spawned by its slot; `hello` -> `start` -> `loaded` -> `ready` walk the lifecycle (`worker-lifecycle.ts`).
 * 2. `assign` sends a call, perhaps ahead of the running one; `begin`, `result` .. come back in order.
 * 3. Death is visible with the end of its stream or its exit, whichever is first; the calls it held are settled
 *    at once, and it is gone when both are known.
 */
import { performance } from 'node:perf_hooks';
import { BodyAssembler } from '../../protocol/body-assembler.js';
import { Channel } from '../../protocol/channel.js';
import { ServeError, asErrorCode } from '../../protocol/errors.js';
import {
  PROTOCOL_VERSION,
  STREAM_WINDOW_BYTES,
  type LoadedInfo,
  type Message,
  type ReplyHead,
  type StartSpec,
} from '../../protocol/messages.js';
import type { ReadyWorker } from '../dispatch/dispatcher.js';
import type { Job } from '../dispatch/job.js';
import { describeExit, exitHint, readOomKills, type Exit, type KillCause } from './exit-report.js';
import { RunClock, type ClockedCall } from './run-clock.js';
import { spawnWorker, type SpawnOptions, type WorkerProcess } from './spawn-worker.js';
import { Tail } from './tail.js';
import { nextState, type WorkerEvent, type WorkerState } from './worker-lifecycle.js';

/** A handler that was told to abort gets this long before its process is killed. */
export const ABORT_GRACE_MS = 1000;

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

/** A call the worker holds, in the order sent. */
interface Assignment extends ClockedCall {
  readonly id: number;
  readonly job: Job;
  begun: boolean;
  /** Stream bytes sent by the worker and not yet taken by the client. */
  unreadBytes: number;
}

interface Fatal {
  readonly code: string;
  readonly message: string;
  readonly detail: string;
  readonly permanent: boolean;
}

export interface WorkerDeath {
  readonly pid: number;
  readonly at: Date;
  readonly exit: Exit;
  /** `signal SIGKILL`, `exit code 1`, `killed by the server: run timeout`. */
  readonly how: string;
  readonly hint: string;
  /** What the worker itself said, if it did. */
  readonly fatal: Fatal | null;
  readonly during: 'start' | 'idle' | 'call';
  readonly requestId: string | null;
  readonly readyMs: number;
  readonly initMs: number;
  readonly uptimeMs: number;
  readonly finishedCalls: number;
  readonly stderrTail: readonly string[];
  /** We asked for it. */
  readonly wanted: boolean;
}

export interface WorkerLimits {
  readonly initTimeoutMs: number;
  readonly runTimeoutMs: number;
  readonly maxOutputBytes: number;
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
  onCallError(job: Job, error: ServeError): void;
  onTransition(from: WorkerState, to: WorkerState, event: WorkerEvent): void;
}

export class WorkerHandle implements ReadyWorker {
  readonly pid: number;
  readonly #process: WorkerProcess;
  readonly #channel: Channel;
  readonly #listener: WorkerListener;
  readonly #spec: StartSpec;
  readonly #bodies = new BodyAssembler<{ assignment: Assignment; head: ReplyHead; runMs: number }>();
  readonly #stderrTail = new Tail(STDERR_TAIL_BYTES);
  readonly #spawnedAtMs = performance.now();
  readonly #oomKillsBefore = readOomKills();
  #limits: WorkerLimits;
  #runClock: RunClock<Assignment>;
  #state: WorkerState = 'spawning';
  #held: Assignment[] = [];
  #nextId = 1;
  #inBurst = false;
  #finishedCalls = 0;
  #readyAtMs = 0;
  #initMs = 0;
  #fatal: Fatal | null = null;
  #killCause: KillCause | null = null;
  #wanted = false;
  #streamEnded = false;
  #unreadFrames = false;
  #exit: Exit | null = null;
  #dyingDuring: { during: WorkerDeath['during']; requestId: string | null } | null = null;
  readonly #timers = new Set<NodeJS.Timeout>();
  #initTimer: NodeJS.Timeout;

  /** @throws Error if the program cannot be started */
  constructor(spawn: SpawnOptions, spec: StartSpec, limits: WorkerLimits, listener: WorkerListener) {
    this.#spec = spec;
    this.#limits = limits;
    this.#listener = listener;
    this.#process = spawnWorker(spawn);
    this.pid = this.#process.pid;
    this.#runClock = this.#newRunClock();
    this.#process.stderr.on('data', (chunk: Buffer) => this.#stderrTail.push(chunk));
    this.#channel = new Channel(this.#process.framesIn, this.#process.framesOut, {
      onMessage: (message, pieces) => this.#onMessage(message, pieces),
      onEnd: (error) => this.#onStreamEnd(error),
      onWriteError: () => {}, // it is dying; its stream still brings what it had to say
    });
    this.#process.onExit((exit) => this.#onExit(exit));
    this.#initTimer = this.#later(limits.initTimeoutMs, () => this.kill('init timeout'));
  }

  get state(): WorkerState {
    return this.#state;
  }

  /** Calls it holds, running or sent ahead, abandoned ones included: the seat is taken until they end. */
  get load(): number {
    return this.#held.length;
  }

  get finishedCalls(): number {
    return this.#finishedCalls;
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
    const running = this.#running();
    return running === null ? '' : running.job.call.requestId;
  }

  get runningMs(): number {
    const running = this.#running();
    return running === null ? 0 : performance.now() - running.beganAtMs;
  }

  heldJobs(): Job[] {
    return this.#held.map((assignment) => assignment.job);
  }

  /** Sends a call. Only for a worker that is `ready`. */
  assign(job: Job): void {
    const id = this.#nextId;
    this.#nextId = id === 0xffff_ffff ? 1 : id + 1;
    const { call, pieces, bodyBytes } = job;
    call.id = id;
    this.#held.push({ id, job, begun: false, beganAtMs: 0, pausedMs: 0, pausedSinceMs: null, unreadBytes: 0 });
    this.#channel.sendBody({ type: 'call', calls: [call], inlineBytes: [bodyBytes] }, id, pieces, bodyBytes);
    this.#flushSoon();
  }

  /** The job is settled; tells the worker to stop working for it. */
  abandon(job: Job, reason: string): void {
    const assignment = this.#held.find((candidate) => candidate.job === job);
    if (assignment === undefined) return;
    if (this.#channel.dropBody(assignment.id)) {
      this.#channel.send({ type: 'cancel', id: assignment.id, reason });
      this.#flushSoon();
    } else {
      this.#release(assignment, null); // it never left: the worker knows nothing of it
    }
  }

  /** Asks it to stop: a message, SIGTERM after `graceMs`, SIGKILL after another second. */
  stop(graceMs: number): void {
    if (this.#state === 'gone') return;
    this.#wanted = true;
    this.#enter('stopRequested');
    this.#channel.send({ type: 'stop', graceMs });
    this.#channel.flush();
    this.#later(graceMs, () => this.#process.kill('SIGTERM'));
    this.#later(graceMs + TERM_GRACE_MS, () => this.kill('did not stop in time'));
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
    switch (message.type) {
      case 'begin':
        for (const id of message.ids) this.#onBegin(this.#find(id));
        return;
      case 'result':
        return this.#onResult(message, pieces);
      case 'body': {
        const whole = this.#bodies.add(message.id, pieces);
        if (whole !== null) this.#onWholeResult(whole.owner, whole.pieces);
        return;
      }
      case 'head':
        return this.#findBegun(message.id).job.head(message);
      case 'chunk':
        return this.#onChunk(this.#findBegun(message.id), pieces);
      case 'end': {
        const assignment = this.#findBegun(message.id);
        assignment.job.end(message.runMs);
        return this.#release(assignment, message.runMs);
      }
      case 'error':
        return this.#onCallError(message);
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
        this.#later(TERM_GRACE_MS, () => this.kill('did not stop in time'));
        return;
      default:
        throw new ServeError('SERVE_PROTOCOL', undefined, { detail: `a worker cannot send ${message.type}` });
    }
  }

  #onHello(protocol: number): void {
    if (protocol !== PROTOCOL_VERSION) {
      throw new ServeError('SERVE_PROTOCOL', undefined, {
        detail: `the worker speaks protocol ${protocol}, this server ${PROTOCOL_VERSION}`,
      });
    }
    this.#enter('hello');
    this.#channel.send({ type: 'start', spec: this.#spec });
    this.#channel.flush();
  }

  #onLoaded(info: LoadedInfo): void {
    this.#enter('loaded');
    try {
      this.#limits = this.#listener.onLoaded(info);
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      this.#fatal ??= { code: thrown.code, message: thrown.message, detail: '', permanent: true };
      this.kill('stop');
      this.#wanted = false;
      return;
    }
    this.#runClock = this.#newRunClock();
    this.#cancelTimer(this.#initTimer);
    const leftMs = this.#limits.initTimeoutMs - this.uptimeMs;
    this.#initTimer = this.#later(Math.max(0, leftMs), () => this.kill('init timeout'));
  }

  #onReady(initMs: number): void {
    this.#cancelTimer(this.#initTimer);
    this.#enter('ready');
    if (this.#state !== 'ready') return;
    this.#initMs = initMs;
    this.#readyAtMs = performance.now();
    this.#listener.onReady();
  }

  #onBegin(assignment: Assignment): void {
    const nowMs = performance.now();
    assignment.begun = true;
    assignment.beganAtMs = nowMs;
    assignment.job.begin(nowMs);
    this.#runClock.start();
  }

  #onResult(message: Message & { type: 'result' }, pieces: Buffer[]): void {
    const assignment = this.#findBegun(message.id);
    if (message.bodyBytes > this.#limits.maxOutputBytes) {
      throw new ServeError('SERVE_PROTOCOL', undefined, {
        detail: `a result of ${message.bodyBytes} bytes; ${this.#limits.maxOutputBytes} are allowed`,
      });
    }
    const owner = { assignment, head: message, runMs: message.runMs };
    const whole = this.#bodies.start(message.id, owner, message.bodyBytes, pieces);
    if (whole !== null) this.#onWholeResult(owner, whole);
  }

  #onWholeResult(
    { assignment, head, runMs }: { assignment: Assignment; head: ReplyHead; runMs: number },
    pieces: Buffer[],
  ): void {
    // Feed the worker first, then answer the client.
    this.#release(assignment, runMs);
    const bodyBytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    assignment.job.reply(head, pieces, bodyBytes, runMs);
  }

  #onChunk(assignment: Assignment, pieces: Buffer[]): void {
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    assignment.unreadBytes += bytes;
    if (assignment.unreadBytes >= STREAM_WINDOW_BYTES) assignment.pausedSinceMs ??= performance.now();
    assignment.job.chunk(pieces, () => this.#onTaken(assignment, bytes));
  }

  #onTaken(assignment: Assignment, bytes: number): void {
    assignment.unreadBytes -= bytes;
    if (assignment.pausedSinceMs !== null && assignment.unreadBytes < STREAM_WINDOW_BYTES) {
      assignment.pausedMs += performance.now() - assignment.pausedSinceMs;
      assignment.pausedSinceMs = null;
    }
    this.#channel.send({ type: 'credit', id: assignment.id, bytes });
    this.#flushSoon();
  }

  #onCallError(message: Message & { type: 'error' }): void {
    const assignment = this.#find(message.id);
    const error = new ServeError(asErrorCode(message.code), message.message, { detail: message.detail });
    if (!assignment.job.settled) this.#listener.onCallError(assignment.job, error);
    assignment.job.fail(error, message.runMs);
    this.#release(assignment, null);
  }

  /** The call has ended in the worker: its seat is free. `runMs` null: it tells nothing about the next ones. */
  #release(assignment: Assignment, runMs: number | null): void {
    const index = this.#held.indexOf(assignment);
    if (index >= 0) this.#held.splice(index, 1);
    if (assignment.begun) this.#finishedCalls += 1;
    this.#listener.onFinished(assignment.job, runMs);
  }

  #onRunTimeout(assignment: Assignment): void {
    const message = `The call ran longer than ${this.#limits.runTimeoutMs} ms (--run-timeout).`;
    const error = new ServeError('SERVE_INFERENCE_TIMEOUT', message);
    if (!assignment.job.settled) this.#listener.onCallError(assignment.job, error);
    assignment.job.fail(error, this.#limits.runTimeoutMs);
    this.#channel.send({ type: 'cancel', id: assignment.id, reason: 'the run timeout passed' });
    this.#channel.flush();
    this.#later(ABORT_GRACE_MS, () => {
      if (this.#held.includes(assignment)) this.kill('run timeout');
    });
  }

  #running(): Assignment | null {
    const first = this.#held[0];
    return first?.begun === true ? first : null;
  }

  #find(id: number): Assignment {
    const assignment = this.#held.find((candidate) => candidate.id === id);
    if (assignment !== undefined) return assignment;
    throw new ServeError('SERVE_PROTOCOL', undefined, { detail: `call ${id} is not held by this worker` });
  }

  #findBegun(id: number): Assignment {
    const assignment = this.#find(id);
    if (assignment.begun) return assignment;
    throw new ServeError('SERVE_PROTOCOL', undefined, {
      detail: `an answer to call ${id}, which never began`,
    });
  }

  #onStreamEnd(error: ServeError | null): void {
    this.#streamEnded = true;
    // A frame cut by the worker's death is no broken rule, and hides nothing: a call begins only once everything
    // said before is in the kernel.
    const wasCut = this.#process.framesIn.readableEnded;
    if (error !== null && !wasCut) this.#onBrokenFrames(error);
    this.#noteDeath();
  }

  #onBrokenFrames({ code, message, detail }: ServeError): void {
    this.#unreadFrames = true;
    this.#fatal ??= { code, message, detail, permanent: false };
    this.kill('protocol error');
  }

  #onExit(exit: Exit): void {
    this.#exit = exit;
    this.#noteDeath();
    if (!this.#streamEnded) this.#later(STREAM_LINGER_MS, () => this.#cutStream());
  }

  #cutStream(): void {
    if (this.#streamEnded) return;
    this.#unreadFrames = true;
    this.#process.framesIn.destroy();
  }

  #noteDeath(): void {
    if (this.#state !== 'gone') this.#enter('killRequested'); // no call may go to it from now on
    if (!this.#streamEnded) return; // what it said last is still to be read
    this.#dyingDuring ??= this.#describeMoment();
    const exit = this.#exit;
    if (exit === null) {
      this.#later(SECOND_SIGN_MS, () => this.#loseUnreachable());
      return;
    }
    this.#loseCalls();
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
    this.#later(LAST_WORDS_MS, callback);
  }

  #describeMoment(): { during: WorkerDeath['during']; requestId: string | null } {
    const running = this.#running();
    if (running !== null) return { during: 'call', requestId: running.job.call.requestId };
    return { during: this.#readyAtMs === 0 ? 'start' : 'idle', requestId: null };
  }

  /** Its own death would have shown by now: it lives, and can neither speak nor hear. It must end before others get its calls. */
  #loseUnreachable(): void {
    if (this.#exit === null) this.kill('it closed its connection');
    this.#loseCalls();
  }

  /** Everything the worker ever said is read: what it held and did not answer is lost. */
  #loseCalls(): void {
    const jobs = this.heldJobs();
    this.#held = [];
    if (jobs.length === 0) return;
    // A `begin` may be among what could not be read: unknown counts as begun.
    if (this.#unreadFrames) for (const job of jobs) job.begin(performance.now());
    const how = this.#exit === null ? 'it closed its connection' : describeExit(this.#exit, this.#killCause);
    this.#listener.onLost(
      jobs,
      new ServeError('SERVE_WORKER_LOST', `The worker died while running this call (${how}).`),
    );
  }

  #becomeGone(exit: Exit): void {
    if (this.#state === 'gone') return;
    this.#enter('ended');
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#runClock.stop();
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
      finishedCalls: this.#finishedCalls,
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

  /** What an idle worker waits for goes out now; for a busy one, a turn's messages leave in one write at its end. */
  #flushSoon(): void {
    if (this.#held.length === 1) this.#channel.flush();
    else if (!this.#inBurst) {
      this.#inBurst = true;
      setImmediate(this.#endBurst);
    }
  }

  readonly #endBurst = (): void => {
    this.#inBurst = false;
    this.#channel.flush();
  };

  #newRunClock(): RunClock<Assignment> {
    return new RunClock(
      this.#limits.runTimeoutMs,
      () => this.#running(),
      (assignment) => this.#onRunTimeout(assignment),
    );
  }

  #later(delayMs: number, action: () => void): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, delayMs);
    this.#timers.add(timer);
    return timer;
  }

  #cancelTimer(timer: NodeJS.Timeout): void {
    clearTimeout(timer);
    this.#timers.delete(timer);
  }
}
