/** Takes a worker from its first message to `ready`: `hello`, `start`, `loaded`, `ready`, within the init timeout. */
import { ServeError, protocolError } from '../../protocol/errors.js';
import { PROTOCOL_VERSION, type LoadedInfo, type StartSpec } from '../../protocol/wire/messages.js';
import type { LimitTimer, NamedLimit } from '../machine/limit-timer.js';
import { formatMs } from '../options/units.js';
import type { WorkerCore } from './worker-core.js';
import { startPhase } from './worker-lifecycle.js';
import type { WorkerStop } from './worker-stop.js';

export interface WorkerStartListener {
  /** The app is imported. Returns the most calls of a batch, for all routes. @throws SERVE_CONFIG if its options are wrong */
  onLoaded(info: LoadedInfo): number;
  /** The warm-up takes longer than usual. */
  onSlowWarmUp(advice: string): void;
  onReady(): void;
}

/** Time after which a warm-up is told of. */
export const SLOW_WARM_UP_MS = 5000;

/** Longest time of a warm-up; less if the init timeout is short. A model may hang for ever in an input that it was not made for. */
const MAX_WARM_UP_MS = 30_000;

export class WorkerStart {
  readonly #core: WorkerCore;
  readonly #stop: WorkerStop;
  readonly #spec: StartSpec;
  readonly #listener: WorkerStartListener;
  readonly #spawnedAtMs = performance.now();
  #initTimeout: NamedLimit;
  #initTimer: LimitTimer;
  #maxBatches: ReadonlyMap<string, number> = new Map();
  #initMs = 0;
  /** The limits of a warm-up that is under way; empty before it and after it. */
  #warmUpTimers: readonly LimitTimer[] = [];

  constructor(
    core: WorkerCore,
    stop: WorkerStop,
    spec: StartSpec,
    initTimeout: NamedLimit,
    listener: WorkerStartListener,
  ) {
    this.#core = core;
    this.#stop = stop;
    this.#spec = spec;
    this.#listener = listener;
    this.#initTimeout = initTimeout;
    this.#initTimer = this.#startTimer(initTimeout.ms);
  }

  /** Applies to a start that is under way. */
  set initTimeout(limit: NamedLimit) {
    if (startPhase(this.#core.state.name) === null) return;
    this.#core.timers.stop(this.#initTimer);
    this.#initTimeout = limit;
    this.#initTimer = this.#startTimer(this.#leftMs);
  }

  get uptimeMs(): number {
    return performance.now() - this.#spawnedAtMs;
  }

  get #leftMs(): number {
    return Math.max(0, this.#initTimeout.ms - this.uptimeMs);
  }

  /** Time that the app took to get ready, as the worker reports it; 0 before. */
  get initMs(): number {
    return this.#initMs;
  }

  /** Whether it runs its warm-up, or was ended in it. */
  get isWarming(): boolean {
    return this.#warmUpTimers.length > 0;
  }

  /** Most calls of this route that may begin together; 1 before the app is loaded. */
  maxBatch(route: string): number {
    return this.#maxBatches.get(route) ?? 1;
  }

  onHello(protocol: number): void {
    if (protocol !== PROTOCOL_VERSION) {
      throw protocolError(`the worker speaks protocol ${protocol}, this server ${PROTOCOL_VERSION}`);
    }
    const { state, channel } = this.#core;
    state.enter('hello');
    channel.send({ type: 'start', spec: { ...this.#spec, readyWithinMs: this.#leftMs } });
    channel.flush();
  }

  onLoaded(info: LoadedInfo): void {
    const { state, notes } = this.#core;
    state.enter('loaded');
    if (state.name !== 'initializing') return; // asked to stop meanwhile: the code that it has loaded may be out of date
    try {
      const most = this.#listener.onLoaded(info);
      this.#maxBatches = new Map(info.routes.map(({ path, maxBatch }) => [path, Math.min(maxBatch, most)]));
    } catch (thrown) {
      if (!(thrown instanceof ServeError)) throw thrown;
      const { code, message } = thrown;
      notes.noteFatal({ code, message, detail: '', permanent: true, transient: false });
      this.#stop.kill('its options are wrong');
    }
  }

  onWarmUp(advice: string): void {
    const { state, timers } = this.#core;
    state.enter('warmUp');
    const limitMs = Math.min(MAX_WARM_UP_MS, this.#initTimeout.ms / 4);
    this.#warmUpTimers = [
      timers.start(SLOW_WARM_UP_MS, () => this.#listener.onSlowWarmUp(advice)),
      timers.start(limitMs, () => this.#onWarmUpTimeout(limitMs, advice)),
    ];
  }

  onReady(initMs: number): void {
    const { state, timers } = this.#core;
    for (const timer of [this.#initTimer, ...this.#warmUpTimers]) timers.stop(timer);
    this.#warmUpTimers = [];
    state.enter('ready');
    if (state.name !== 'ready') return;
    this.#initMs = initMs;
    this.#listener.onReady();
  }

  #startTimer(delayMs: number): LimitTimer {
    return this.#core.timers.start(delayMs, () => this.#onTimeout());
  }

  #onWarmUpTimeout(limitMs: number, advice: string): void {
    const message = `the warm-up has taken more than ${formatMs(limitMs)}, so the next start skips it. ${advice}`;
    const error = { code: 'SERVE_INIT_TIMEOUT', message, detail: '', permanent: false, transient: false };
    this.#core.notes.noteFatal(error);
    this.#stop.kill('warm-up timeout');
  }

  #onTimeout(): void {
    const { state, notes } = this.#core;
    const phase = `${startPhase(state.name) ?? state.name} (${formatMs(state.ms)} so far)`;
    const { ms, name } = this.#initTimeout;
    const message = `not ready within ${formatMs(ms)} (${name}), still ${phase}`;
    const cure = 'Load less, or raise the limit.';
    const text = {
      message: [`${message}.`, this.#core.process.stuckAt(), cure].filter(Boolean).join(' '),
      detail: '',
    };
    notes.noteFatal({ code: 'SERVE_INIT_TIMEOUT', ...text, permanent: false, transient: false });
    this.#stop.kill('init timeout');
  }
}
