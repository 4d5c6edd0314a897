/** The time limits of a worker's start, from `hello` over the warm-up to `ready`, within the init timeout. */
import { protocolError } from '../../protocol/errors.js';
import { PROTOCOL_VERSION, type StartSpec } from '../../protocol/wire/messages.js';
import type { LimitTimer, NamedLimit } from '../machine/limit-timer.js';
import { formatMs } from '../options/units.js';
import { startPhase, type WorkerCore } from './worker-lifecycle.js';
import type { WorkerStop } from './worker-stop.js';

/** Time after which a warm-up is told of. */
export const SLOW_WARM_UP_MS = 5000;

/** Longest time of a warm-up; less if the init timeout is short. A model may hang for ever in an input that it was not made for. */
const MAX_WARM_UP_MS = 30_000;

export class WorkerStart {
  readonly #core: WorkerCore;
  readonly #stop: WorkerStop;
  readonly #spec: StartSpec;
  readonly #onSlowWarmUp: (advice: string) => void;
  #initTimeout: NamedLimit;
  #initTimer: LimitTimer;
  /** The limits of a warm-up that is under way; empty before it and after it. */
  #warmUpTimers: readonly LimitTimer[] = [];

  /** `onSlowWarmUp`: the warm-up takes longer than usual. */
  constructor(
    core: WorkerCore,
    stop: WorkerStop,
    spec: StartSpec,
    initTimeout: NamedLimit,
    onSlowWarmUp: (advice: string) => void,
  ) {
    this.#core = core;
    this.#stop = stop;
    this.#spec = spec;
    this.#onSlowWarmUp = onSlowWarmUp;
    this.#initTimeout = initTimeout;
    this.#initTimer = this.#startTimer();
  }

  /** Applies to a start that is under way. */
  set initTimeout(limit: NamedLimit) {
    if (startPhase(this.#core.state.name) === null) return;
    this.#initTimer.stop();
    this.#initTimeout = limit;
    this.#initTimer = this.#startTimer();
  }

  /** Whether it runs its warm-up, or was ended in it. */
  get isWarming(): boolean {
    return this.#warmUpTimers.length > 0;
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

  onWarmUp(advice: string): void {
    const { state, timers } = this.#core;
    state.enter('warmUp');
    const limitMs = Math.min(MAX_WARM_UP_MS, this.#initTimeout.ms / 4);
    this.#warmUpTimers = [
      timers.start(SLOW_WARM_UP_MS, () => this.#onSlowWarmUp(advice)),
      timers.start(limitMs, () => this.#onWarmUpTimeout(limitMs, advice)),
    ];
  }

  onReady(): void {
    for (const timer of [this.#initTimer, ...this.#warmUpTimers]) timer.stop();
    this.#warmUpTimers = [];
    this.#core.state.enter('ready');
  }

  get #leftMs(): number {
    return Math.max(0, this.#initTimeout.ms - this.#core.state.uptimeMs);
  }

  #startTimer(): LimitTimer {
    return this.#core.timers.start(this.#leftMs, () => this.#onTimeout());
  }

  #onWarmUpTimeout(limitMs: number, advice: string): void {
    const message = `the warm-up has taken more than ${formatMs(limitMs)}, so the next start skips it. ${advice}`;
    this.#core.notes.noteFatal({ code: 'SERVE_INIT_TIMEOUT', message });
    this.#stop.kill('warm-up timeout');
  }

  #onTimeout(): void {
    const { state, notes, process } = this.#core;
    const phase = `${startPhase(state.name) ?? state.name} (${formatMs(state.ms)} so far)`;
    const { ms, name } = this.#initTimeout;
    const what = `not ready within ${formatMs(ms)} (${name}), still ${phase}.`;
    const cure = 'Load less, or raise the limit.';
    const message = [what, process.stuckAt(), cure].filter(Boolean).join(' ');
    notes.noteFatal({ code: 'SERVE_INIT_TIMEOUT', message });
    this.#stop.kill('init timeout');
  }
}
