/**
 * Recognises the end of one worker process: its stream ends and its exit is known, in either order.
 *
 * 1. After the first sign, no call may go to it. 2. After both, it is dead, and all its messages are read. 3. It is gone when
 *    its last output has arrived too. Another process that holds its streams delays none of this for long, and a worker that
 *    has closed its stream and lives on is reported as unreachable.
 */
import type { Exit } from './worker-death.js';
import type { WorkerProcess } from './spawn-worker.js';
import type { Timers } from '../machine/limit-timer.js';

/** The exit mostly follows the end of the stream within a few ms; after this time it is checked whether the process lives. */
const SECOND_SIGN_MS = 25;

/** Longest wait for the end of the stream after the exit: it outlives its process only if another process holds it. */
const STREAM_LINGER_MS = 500;

/** Longest wait for the last output of a dead worker. */
const LAST_OUTPUT_MS = 50;

interface WorkerEndListener {
  /** One of the two signs has come: its stream ended, or its exit is known. */
  onSign(): void;
  /** The process lives, but has closed its connection. */
  onUnreachable(): void;
  /** All its messages are read; called once. */
  onDead(exit: Exit): void;
  /** Nothing more comes from it; called once, after `onDead`. */
  onGone(exit: Exit): void;
}

export class WorkerEnd {
  readonly #process: WorkerProcess;
  readonly #timers: Timers;
  readonly #listener: WorkerEndListener;
  #streamEnded = false;
  #exit: Exit | null = null;
  #isGone = false;

  /** Listens for the exit itself; the caller stops `timers` once the worker is gone. */
  constructor(process: WorkerProcess, timers: Timers, listener: WorkerEndListener) {
    this.#process = process;
    this.#timers = timers;
    this.#listener = listener;
    process.onExit((exit) => this.#onExit(exit));
  }

  /** Call this when the last of the worker's frames was read. */
  onStreamEnd(): void {
    this.#streamEnded = true;
    this.#listener.onSign();
    if (this.#exit === null) this.#timers.start(SECOND_SIGN_MS, () => this.#checkReachable());
    else this.#onBothSigns(this.#exit);
  }

  #onExit(exit: Exit): void {
    this.#exit = exit;
    this.#listener.onSign();
    if (this.#streamEnded) this.#onBothSigns(exit);
    else this.#timers.start(STREAM_LINGER_MS, () => this.#cutStream());
  }

  /**
   * A process that the kernel is ending counts as dead by another cause, however long its exit takes on a busy machine; the
   * signal ends its children.
   */
  #checkReachable(): void {
    if (this.#exit !== null) return;
    if (this.#process.isEnding()) this.#process.kill('SIGKILL');
    else this.#listener.onUnreachable();
  }

  #cutStream(): void {
    if (!this.#streamEnded) this.#process.framesIn.destroy();
  }

  #onBothSigns(exit: Exit): void {
    this.#listener.onDead(exit);
    this.#process.kill('SIGKILL'); // its children, if it left any
    this.#afterLastOutput(() => {
      if (this.#isGone) return;
      this.#isGone = true;
      this.#listener.onGone(exit);
    });
  }

  /** The last output of the worker arrives with its exit, unless another process holds the pipes or our own output is blocked. */
  #afterLastOutput(callback: () => void): void {
    const { stdout, stderr } = this.#process;
    const open = new Set([stdout, stderr].filter(({ closed }) => !closed));
    if (open.size === 0) {
      callback();
      return;
    }
    for (const stream of open) {
      stream.once('close', () => open.delete(stream) && open.size === 0 && callback());
    }
    this.#timers.start(LAST_OUTPUT_MS, callback);
  }
}
