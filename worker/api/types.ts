/** Everything a model author may import, as types; `import type { … } from 'banana-serve'`. */

import type { ConfigOptions } from '../../protocol/option-types.js';

/** A logger whose lines appear in the server's own log with worker and request id. */
export interface AppLog {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** Names and values that tell one series of a metric from another: few values each, as every combination is kept. */
export type MetricLabels = Readonly<Record<string, string | number | boolean>>;

/**
 * What the app counts and measures, for `GET /metrics` (docs/metrics.md). Names and labels are those of Prometheus:
 * letters, digits and underscores. A name or label that is not allowed throws a TypeError or a RangeError.
 */
export interface AppMetrics {
  /** Adds to a number that only rises, over all workers. */
  counter(name: string, value?: number, labels?: MetricLabels): void;
  /** Sets a number that may rise and fall. Each worker has its own. */
  gauge(name: string, value: number, labels?: MetricLabels): void;
  /** Adds a value to a distribution, over all workers. Times are in seconds: the buckets reach from 0.0001 to 300. */
  histogram(name: string, value: number, labels?: MetricLabels): void;
}

export interface WorkerInfo {
  /** Slot number, from 0; stays the same over restarts. */
  readonly index: number;
  /** The one GPU this worker sees, as in CUDA_VISIBLE_DEVICES; null without a GPU. */
  readonly gpu: string | null;
  /** Cores this worker may use: machine cores divided by workers, at least 1. Pass as `intraOpNumThreads`. */
  readonly threads: number;
}

export interface InitContext {
  readonly worker: WorkerInfo;
  readonly log: AppLog;
  readonly metrics: AppMetrics;
}

export interface InferenceContext {
  /** The request's id, also in the reply's `X-Request-Id` and in every log line of the call. */
  readonly requestId: string;
  /** Request headers, names in lower case, repeated ones joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** Content-Type as sent; empty if absent. */
  readonly contentType: string;
  /** The path as the client wrote it, percent escapes included. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** W3C trace context as sent, if valid. */
  readonly traceparent: string | null;
  /** Aborts when nobody waits any more: client gone, deadline, run timeout, stop. `reason` says which. */
  readonly signal: AbortSignal;
  /** When the client stops waiting, in ms since the epoch; null without a deadline. */
  readonly deadline: number | null;
  readonly worker: WorkerInfo;
  readonly log: AppLog;
  readonly metrics: AppMetrics;
}

/**
 * The client of a WebSocket route. Messages are text or bytes, in both directions, of any length up to `--max-body`;
 * bytes received are the app's own.
 */
export interface WebSocketConnection extends AsyncIterable<string | Uint8Array> {
  /** The client's next message, in order; null once it has left, or `close` was called. The iterator ends then. */
  receive(): Promise<string | Uint8Array | null>;
  /**
   * Resolves when the message is on its way to the client and there is room for more: awaiting it keeps a fast app in
   * step with a slow client. Rejects with an `AbortError` once the connection is closed, which nobody has to handle.
   */
  send(message: string | Uint8Array): Promise<void>;
  /** Closes the connection after what was sent. `code`: 1000, or 3000 to 4999; `reason`: up to 123 bytes. Returning from the function closes with 1000. */
  close(code?: number, reason?: string): Promise<void>;
}

/** One file of a `multipart/form-data` body. */
export interface UploadedFile {
  readonly filename: string;
  readonly contentType: string;
  /** The app owns these bytes. */
  readonly data: Uint8Array;
}

/**
 * Options an app may set for itself; each yields to the flag, the environment and the config file.
 * Durations have a unit, `'500ms'`, `'30s'`, `'5m'`; sizes are `'10mb'` or a number of bytes.
 */
export type AppConfig = ConfigOptions & {
  /**
   * An input may run again without harm: if a batch function throws, its inputs run again in halves, and only the one
   * that makes it throw fails. Else they all fail.
   */
  readonly repeatable?: boolean;
  /** A form (`application/x-www-form-urlencoded`) is an object of fields, and not JSON; one that comes again is an array. */
  readonly forms?: boolean;
  /** `text/plain` and other text is a string, and not JSON. */
  readonly text?: boolean;
};

/** The functions of a Banana app: exported by name, or together as the default export. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the author declares what the app takes
export interface BananaApp<Input = any, Output = unknown> {
  /** Runs once per worker, before the first call. */
  init?(ctx: InitContext): unknown;
  /** Runs once per call, never two at a time in one worker. `null` for an empty body. */
  inference(modelInputs: Input, ctx: InferenceContext): Output | Promise<Output>;
  /**
   * Runs once for calls that came together, as many as `--batch-size` allows, in place of `inference`; a call that is
   * alone goes there. Returns one entry per input, in their order: what `inference` would return, or an Error, which
   * fails that call alone. `ctxs[i]` belongs to `modelInputs[i]`.
   */
  inferenceBatch?(
    modelInputs: readonly Input[],
    ctxs: readonly InferenceContext[],
  ): readonly unknown[] | Promise<readonly unknown[]>;
  /** Runs when the worker is asked to stop; bounded by the drain timeout. */
  shutdown?(): unknown;
  /** Run once after `init`, before the worker counts as ready. */
  readonly example?: Input;
  readonly config?: AppConfig;
}

/** A Banana app that needs no `inference`: `inferenceBatch` also runs a call that is alone, as a batch of one. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the author declares what the app takes
export type BananaBatchApp<Input = any, Output = unknown> = Omit<BananaApp<Input, Output>, 'inference'> &
  Required<Pick<BananaApp<Input, Output>, 'inferenceBatch'>>;
