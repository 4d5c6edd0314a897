/**
 * The input of the load generator and its results. The generator (`generator.ts`) is a process of its own, so
 * that its CPU time can be stated beside the numbers; `client.ts` is the handle on it.
 */
import type { Percentiles } from '../statistics.js';

/** The request that a run sends again and again. Only loopback targets are accepted. */
export interface RequestSpec {
  readonly url: string;
  /** Paths that are asked in turn, in place of that of the URL. */
  readonly paths?: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** So many `connections` are kept, and each sends its next request when it has its answer. The run ends at the first limit reached. */
export interface ClosedPlan {
  readonly kind: 'closed';
  readonly request: RequestSpec;
  readonly connections: number;
  readonly durationMs: number;
  readonly maxRequests: number;
}

/** Requests at Poisson times, whether or not earlier ones were answered; an answer after `deadlineMs` is late. */
export interface OpenPlan {
  readonly kind: 'open';
  readonly request: RequestSpec;
  readonly ratePerSecond: number;
  readonly durationMs: number;
  readonly deadlineMs: number;
  readonly maxConnections: number;
  readonly seed: number;
}

export interface ClosedResult {
  /** Answers with status 200. */
  readonly ok: number;
  /** Answers with another status, and connections that broke. */
  readonly failed: number;
  readonly elapsedMs: number;
  readonly latencyMs: Percentiles;
  readonly bytesRead: number;
  /** CPU the generator itself used meanwhile. */
  readonly cpuMs: number;
}

export interface OpenResult {
  readonly sent: number;
  /** When each request was written, in ms since the run began. */
  readonly sentAtMs: Float64Array;
  /** Answers with status 200 within the deadline, by the client's clock from the write of the request. */
  readonly good: number;
  /** Answers with status 200 after the deadline. */
  readonly late: number;
  /** Answers with another status than 200, counted by status. */
  readonly refused: Readonly<Record<string, number>>;
  /** Requests that were not sent for want of a connection, or whose connection broke. */
  readonly lost: number;
  /** Time until the last good answer; what was served after the last arrival counts too. */
  readonly elapsedMs: number;
  /** Latency of the good answers. */
  readonly latencyMs: Percentiles;
  /** Delay of a request's write after its Poisson time. */
  readonly sendLagMs: Percentiles;
  readonly cpuMs: number;
}

export type Plan = ClosedPlan | OpenPlan;

export type GeneratorReply =
  | { readonly kind: 'closed'; readonly result: ClosedResult }
  | { readonly kind: 'open'; readonly result: OpenResult }
  | { readonly kind: 'error'; readonly message: string };

/** Hard limits of any run. */
export const MAX_DURATION_MS = 120_000;
export const MAX_REQUESTS = 1_000_000;
export const MAX_CONNECTIONS = 1024;
