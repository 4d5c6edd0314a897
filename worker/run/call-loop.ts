/** The interface of the loops that run a worker's calls: `run-loop.ts` one at a time, `concurrent-loop.ts` several. */
import type { ServeError } from '../../protocol/errors.js';
import type { DataPart } from '../../protocol/wire/messages.js';
import type { RunnerOptions, WaitingCall } from './runner.js';

export interface CallLoopOptions extends Omit<RunnerOptions, 'noteBegun'> {
  /** Called when no call runs and none will begin, after `retire`. */
  onIdleAfterRetire(): void;
  /** Called when the error of a call shows that a new process would do better. */
  onDoubt(why: ServeError): void;
}

export interface CallLoop {
  /** Request id of the call whose code runs; empty outside of calls. */
  readonly runningRequestId: string;
  /**
   * Takes calls whose bodies are complete: one, or a batch, which `pump` begins together.
   * @throws SERVE_PROTOCOL if that many may not begin
   */
  accept(calls: readonly WaitingCall[]): void;
  /** Cancels a call whose client does not wait any more: drops it if it has not begun, otherwise aborts its signal. */
  cancel(id: number, reason: string): void;
  /** Sends the ending of a call that never began. */
  sendCancelled(id: number): void;
  grantCredit(id: number, bytes: number): void;
  takeData(part: DataPart, pieces: readonly Buffer[]): void;
  /**
   * Begins no further call, and aborts those that run if `abortReason` is given. `doubt`: why the worker will end itself;
   * null if it was asked to.
   */
  retire(abortReason: string | null, doubt: string | null): void;
  /** Begins the next calls that may begin. Called once per read, so that a cancel after a call is seen before it begins. */
  pump(): void;
}
