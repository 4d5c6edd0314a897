/**
 * How a worker is made to go, one step after the other: it is given nothing more and ends what it holds; it is asked to
 * stop; it gets SIGTERM; its whole group gets SIGKILL.
 */
import type { Message } from '../../protocol/messages.js';
import type { KillCause } from './exit-report.js';
import type { WorkerCore } from './worker-core.js';
import type { RetireLimits } from './worker-listener.js';

/** Between SIGTERM and SIGKILL, and for a worker that said it is finished. */
export const TERM_GRACE_MS = 1000;

export class WorkerStop {
  readonly #core: WorkerCore;
  #wanted = false;
  #retireGraceMs = 0;

  constructor(core: WorkerCore) {
    this.#core = core;
  }

  /** Whether we asked for its end. */
  get wanted(): boolean {
    return this.#wanted;
  }

  /** Gives it a time to end the calls that it holds. Returns false if it is on its way out already. */
  retire({ finishMs, graceMs }: RetireLimits): boolean {
    const { state, timers } = this.#core;
    state.enter('retireRequested');
    if (state.name !== 'finishing') return false;
    this.#retireGraceMs = graceMs;
    timers.start(finishMs, () => this.onFinished());
    return true;
  }

  /** It holds no calls any more, or they have had their time. */
  onFinished(): void {
    if (this.#core.state.name === 'finishing') this.stop(this.#retireGraceMs);
  }

  /**
   * Asks it to stop: a message, SIGTERM after `limitMs`, SIGKILL after another second. One that was never ready has
   * nothing to end, and may be in an `init` that hears no message: it gets SIGTERM at once.
   */
  stop(limitMs: number): void {
    const { state, channel, timers, process } = this.#core;
    if (state.name === 'gone') return;
    const graceMs = state.wasReady ? limitMs : 0;
    this.#wanted = true;
    state.enter('stopRequested');
    channel.send({ type: 'stop', graceMs });
    channel.flush();
    timers.start(graceMs, () => process.kill('SIGTERM'));
    timers.start(graceMs + TERM_GRACE_MS, () => this.kill('did not stop in time'));
  }

  /** It says that it is finished, and why; it gets a moment to go. */
  onFatal(message: Message & { type: 'fatal' }): void {
    const { state, timers, notes } = this.#core;
    notes.said(message);
    state.enter('fatal');
    timers.start(TERM_GRACE_MS, () => this.kill('did not stop in time'));
  }

  /** SIGKILL to the whole group, at once. The first cause is the one reported. */
  kill(cause: KillCause): void {
    const { state, process, notes } = this.#core;
    if (state.name === 'gone') return;
    if (cause === 'stop') this.#wanted = true;
    notes.killedFor(cause);
    state.enter('killRequested');
    process.kill('SIGKILL');
  }
}
