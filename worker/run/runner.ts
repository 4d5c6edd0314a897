/** What runs the calls that begin together: one (`call-runner.ts`) or a batch of them (`batch-runner.ts`). */
import type { Channel } from '../../protocol/wire/channel.js';
import type { Call, DataPart } from '../../protocol/wire/messages.js';
import type { AppMetrics, WorkerInfo } from '../api/types.js';
import type { LoadedApp } from '../adapters/loaded-app.js';
import type { PrintAttribution } from '../report/print-attribution.js';

/** A call whose body is whole. */
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
  /** The front must know that this call, and those of its batch before it, may have run, even if this process dies at once. */
  noteBegun(id: number): void;
}

/** `thrown`: by the app; undefined if nothing was. */
export type OnEnded = (runMs: number, thrown: unknown) => void;

/** The calls that run now. */
export interface Runner {
  readonly isRunning: boolean;
  /** The request of the first call; empty while none runs. */
  readonly requestId: string;
  runs(id: number): boolean;
  /** Cancels one of them, because nobody waits for it any more. */
  cancel(id: number, reason: string): void;
  /** Tells the app that all of them should end. */
  abort(reason: string): void;
  grantCredit(id: number, bytes: number): void;
  /** Takes a part of a message from the client of a WebSocket; it is dropped if the call has ended by now. */
  takeData(part: DataPart, pieces: readonly Buffer[]): void;
}
