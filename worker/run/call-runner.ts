/**
 * Runs a single call, from its beginning to its end.
 *
 * 1. A note records that it begins, then the app runs; so after a death the front knows exactly which calls may have
 * run.
 * 2. `running-call.ts` turns the app's result or error into messages.
 * 3. When the ending is in the channel, `run-loop.ts` is called back.
 *
 * One object runs all calls of a worker, one after the other.
 */
import { totalBytes } from '../../protocol/wire/body-assembler.js';
import type { DataPart } from '../../protocol/wire/messages.js';
import { runCall } from './run-call.js';
import { RunningCall, type CallHost } from './running-call.js';
import type { OnEnded, Runner, RunnerOptions, WaitingCall } from './runner.js';

export class CallRunner implements Runner {
  readonly #options: RunnerOptions;
  readonly #host: CallHost;
  readonly #onEnded: OnEnded;
  #current: RunningCall | null = null;

  /** `onEnded` is called once per call, when its ending is in the channel and the next call may begin. */
  constructor(options: RunnerOptions, onEnded: OnEnded) {
    this.#options = options;
    this.#host = { ...options, answersTogether: false, onEnded: (call) => this.#finish(call) };
    this.#onEnded = onEnded;
  }

  get isRunning(): boolean {
    return this.#current !== null;
  }

  get requestId(): string {
    return this.#current?.call.requestId ?? '';
  }

  runs(id: number): boolean {
    return this.#current?.call.id === id;
  }

  /** Runs a call. No other call may be running. */
  begin(waiting: WaitingCall): void {
    const beganAtMs = performance.now();
    this.#options.noteBegun(waiting.call.id);
    const running = new RunningCall(this.#host, waiting, beganAtMs);
    this.#current = running;
    runCall(running, this.#options);
  }

  cancel(id: number, reason: string): void {
    if (this.runs(id)) this.#current?.cancel(reason);
  }

  abort(reason: string): void {
    this.#current?.ctx.abort(reason);
  }

  grantCredit(id: number, bytes: number): void {
    if (this.runs(id)) this.#current?.grantCredit(bytes);
  }

  takeData({ id, text, last }: DataPart, pieces: readonly Buffer[]): void {
    if (this.runs(id)) this.#current?.socket?.onData(pieces, totalBytes(pieces), text, last);
  }

  #finish(running: RunningCall): void {
    const { runMs, thrown } = running;
    running.socket?.end();
    this.#current = null;
    this.#onEnded(runMs, thrown);
  }
}
