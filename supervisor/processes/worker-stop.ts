/**
 * Stops a worker step by step: it gets no more calls and finishes those that it holds; it is asked to stop; it gets SIGTERM;
 * its whole group gets SIGKILL. One that is frozen by a signal can do nothing of this, and is killed after a second.
 */
import type { Message } from '../../protocol/wire/messages.js';
import { Alarm, type Timers } from '../machine/limit-timer.js';
import type { KillCause } from './worker-death.js';
import type { WorkerCore } from './worker-lifecycle.js';
import type { RetireLimits } from './worker-listener.js';

/** Time between SIGTERM and SIGKILL, and for a worker that reported a fatal error. */
export const TERM_GRACE_MS = 1000;

/** Time that a frozen worker has to continue, once it is asked to stop. */
const FROZEN_GRACE_MS = 1000;

/** Longest part of a drain timeout that is kept for the `shutdown` of apps, and for workers of apps without one. */
const SHUTDOWN_RESERVE_MS = 5000;
const PLAIN_RESERVE_MS = 1000;

/** The part of a drain timeout that is kept for the end of the workers; calls have the rest. */
export function stopReserveMs(timeoutMs: number, hasShutdown: boolean): number {
  return Math.min(timeoutMs / 5, hasShutdown ? SHUTDOWN_RESERVE_MS : PLAIN_RESERVE_MS);
}

/** Divides a drain timeout for one worker that has to make room for another. */
export function retireLimits(timeoutMs: number): RetireLimits {
  const reserveMs = stopReserveMs(timeoutMs, true);
  return { finishMs: timeoutMs - reserveMs, graceMs: Math.max(0, reserveMs - TERM_GRACE_MS) };
}

export class WorkerStop {
  readonly #core: WorkerCore;
  readonly #finish: Alarm;
  readonly #term: Alarm;
  readonly #kill: Alarm;
  #wanted = false;
  #retireGraceMs = Infinity;

  constructor(core: WorkerCore) {
    this.#core = core;
    const start: Timers['start'] = (delayMs, action) => core.timers.start(delayMs, action);
    this.#finish = new Alarm(() => this.onFinished(), start);
    this.#term = new Alarm(() => core.process.kill('SIGTERM'), start);
    this.#kill = new Alarm(() => this.kill('did not stop in time'), start);
  }

  /** Whether the front asked for its end. */
  get wanted(): boolean {
    return this.#wanted;
  }

  /**
   * Gives it time to finish the calls that it holds. If asked again meanwhile, the earlier limit counts. Returns false if it
   * was retired or asked to stop before.
   */
  retire({ finishMs, graceMs }: RetireLimits): boolean {
    const { state } = this.#core;
    const wasFinishing = state.name === 'finishing';
    state.enter('retireRequested');
    if (state.name === 'stopping' && this.#wanted) this.#endWithin(finishMs + graceMs);
    if (state.name !== 'finishing') return false;
    this.#retireGraceMs = Math.min(this.#retireGraceMs, graceMs);
    this.#finish.set(performance.now() + finishMs);
    return !wasFinishing;
  }

  /** It finishes the calls that it holds, within their own limits. Returns false if it was on its way to its end before. */
  leave(): boolean {
    const { state } = this.#core;
    if (state.name !== 'ready') return false;
    state.enter('retireRequested');
    this.#retireGraceMs = TERM_GRACE_MS;
    return true;
  }

  /** It holds no calls any more, or their time is over. */
  onFinished(): void {
    if (this.#core.state.name === 'finishing') this.stop(this.#retireGraceMs);
  }

  /**
   * Asks it to stop: a message, SIGTERM after `limitMs`, SIGKILL after another second. If asked again, the earlier limit
   * counts. A worker that was never ready has nothing to finish, and may be in an `init` that reads no message: it gets
   * SIGTERM at once.
   */
  stop(limitMs: number): void {
    const { state, channel } = this.#core;
    if (state.name === 'gone') return;
    const graceMs = state.wasReady ? limitMs : 0;
    state.enter('stopRequested');
    if (!this.#wanted) {
      channel.send({ type: 'stop', graceMs });
      channel.flush();
      this.#watchFrozen();
    }
    this.#wanted = true;
    this.#finish.stop();
    this.#endWithin(graceMs);
  }

  #watchFrozen(): void {
    const { process, state, timers } = this.#core;
    timers.start(FROZEN_GRACE_MS, () => {
      if (state.name !== 'stopping') return;
      if (process.isFrozen()) this.kill('frozen when asked to stop');
      else this.#watchFrozen();
    });
  }

  #endWithin(graceMs: number): void {
    const termAtMs = performance.now() + graceMs;
    this.#term.set(termAtMs);
    this.#kill.set(termAtMs + TERM_GRACE_MS);
  }

  /** It has reported a fatal error; it gets a moment to end. */
  onFatal(message: Message & { type: 'fatal' }): void {
    const { state, notes } = this.#core;
    notes.noteFatal(message);
    state.enter('fatal');
    this.#kill.set(performance.now() + TERM_GRACE_MS);
  }

  /** Sends SIGKILL to the whole group, at once. The first cause is reported. */
  kill(cause: KillCause): void {
    const { state, process, notes } = this.#core;
    if (state.name === 'gone') return;
    if (cause === 'stop') this.#wanted = true;
    notes.noteKill(cause);
    state.enter('killRequested');
    process.kill('SIGKILL');
  }
}
