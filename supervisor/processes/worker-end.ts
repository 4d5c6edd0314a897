/**
 * How the end of one worker process is recognised: its stream ends and its exit is known, in either order.
 *
 * 1. The first sign: no call may go to it from now on. 2. Both signs: it is dead, and all it ever said is read.
 * 3. It is gone when what it printed last is here too. A stranger that holds its streams delays none of this for
 *    long, and a process that has closed its stream and lives on is reported as unreachable.
 */
import type { Exit } from './exit-report.js';
import type { WorkerProcess } from './spawn-worker.js';
import type { Timers } from './timers.js';

/** The second sign of a death (stream end, exit) mostly follows the first within a few ms; then it is asked after. */
const SECOND_SIGN_MS = 25;

/** A stream can outlive its process only if somebody else holds the other end. */
const STREAM_LINGER_MS = 500;

/** Longest wait for the rest of what a dead worker printed. */
const LAST_WORDS_MS = 50;

export interface WorkerEndListener {
  /** One of the two signs has come: its stream ended, or its exit is known. */
  onSign(): void;
  /** The process lives, since its death would have shown by now, and can neither speak nor hear. */
  onUnreachable(): void;
  /** Everything it ever said is read; once. */
  onDead(exit: Exit): void;
  /** Nothing more is to come from it; once, after `onDead`. */
  onGone(exit: Exit): void;
}

export class WorkerEnd {
  readonly #process: WorkerProcess;
  readonly #timers: Timers;
  readonly #listener: WorkerEndListener;
  #streamEnded = false;
  #exit: Exit | null = null;
  #isGone = false;

  /** Watches for the exit itself; `timers` are to be stopped once it is gone. */
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
   * A process that the kernel is ending is dead, and not by our hand, however long its exit takes on a busy machine; the
   * signal ends what it has started.
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
    this.#afterLastWords(() => {
      if (this.#isGone) return;
      this.#isGone = true;
      this.#listener.onGone(exit);
    });
  }

  /** The worker's last prints arrive with its exit, unless another process holds the pipes or nobody takes our own output. */
  #afterLastWords(callback: () => void): void {
    const { stdout, stderr } = this.#process;
    const open = new Set([stdout, stderr].filter(({ closed }) => !closed));
    if (open.size === 0) {
      callback();
      return;
    }
    for (const stream of open) {
      stream.once('close', () => open.delete(stream) && open.size === 0 && callback());
    }
    this.#timers.start(LAST_WORDS_MS, callback);
  }
}
