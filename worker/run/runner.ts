/**
 * The interface of the code that runs calls which begin together: one (`call-runner.ts`) or a batch
 * (`batch-runner.ts`).
 */
import type { Channel } from '../../protocol/wire/channel.js';
import type { Call, DataPart } from '../../protocol/wire/messages.js';
import type { AppMetrics, WorkerInfo } from '../api/types.js';
import type { LoadedApp } from '../adapters/loaded-app.js';
import type { PrintAttribution } from '../report/print-attribution.js';

/** A call whose body is complete. */
export interface WaitingCall {
  readonly call: Call;
  readonly pieces: Buffer[];
}

export interface RunnerOptions {
  readonly channel: Channel;
  readonly app: LoadedApp;
  readonly worker: WorkerInfo;
  readonly metrics: AppMetrics;
  readonly prints: PrintAttribution;
  readonly maxOutputBytes: number;
  readonly streamWindowBytes: number;
  /**
   * Records that this call, and those of its batch before it, may have run, so that the front knows even if this
   * process dies at once.
   */
  noteBegun(id: number): void;
}

/** `thrown` is the error of the app; undefined if there was none. */
export type OnEnded = (runMs: number, thrown: unknown) => void;

/** Runs the current calls. */
export interface Runner {
  readonly isRunning: boolean;
  /** The request id of the first call; empty while none runs. */
  readonly requestId: string;
  runs(id: number): boolean;
  /** Cancels one call, because its client does not wait any more. */
  cancel(id: number, reason: string): void;
  /** Aborts the signals of all calls. */
  abort(reason: string): void;
  grantCredit(id: number, bytes: number): void;
  /** Takes a part of a message from a WebSocket client; it is dropped if the call has ended. */
  takeData(part: DataPart, pieces: readonly Buffer[]): void;
}
