/** The types that a model author may import: `import type { … } from 'banana-serve'`. */

import type { ConfigOptions } from '../../protocol/option-types.js';
import type { Signature } from '../../protocol/values/tensor.js';
import type { Task } from '../../protocol/wire/messages.js';
import type { Returned, SchemaInput, SchemaOutput, StandardSchema } from './standard-schema.js';

/**
 * A logger whose lines appear in the server's log with worker and request id.
 * @example
 * export async function init({ log }: InitContext) {
 *   log.info('model loaded', { layers: 12 });
 * }
 */
export interface AppLog {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/**
 * Names and values that identify one series of a metric. Use few values for each, because every combination is stored.
 * @example
 * const labels: MetricLabels = { language: 'en', cached: true };
 */
export type MetricLabels = Readonly<Record<string, string | number | boolean>>;

/**
 * Metrics of the app for `GET /metrics` (docs/metrics.md). Names and labels follow the rules of Prometheus: letters,
 * digits and underscores. A name or label that is not allowed throws a TypeError or a RangeError.
 * @example
 * export function inference(text: string, { metrics }: InferenceContext) {
 *   metrics.histogram('prompt_chars', text.length);
 *   return text;
 * }
 */
export interface AppMetrics {
  /** Adds to a number that only rises, summed over all workers. */
  counter(name: string, value?: number, labels?: MetricLabels): void;
  /** Sets a number that may rise and fall. Each worker has its own. */
  gauge(name: string, value: number, labels?: MetricLabels): void;
  /** Adds a value to a distribution over all workers. Times are in seconds: the buckets range from 0.0001 to 300. */
  histogram(name: string, value: number, labels?: MetricLabels): void;
}

/**
 * The worker that runs the app.
 * @example
 * export async function init({ worker }: InitContext) {
 *   const device = worker.gpu === null ? 'cpu' : 'cuda'; // and `intraOpNumThreads: worker.threads`
 * }
 */
export interface WorkerInfo {
  /** Slot number, from 0; it stays the same when the worker is restarted. */
  readonly index: number;
  /** The one GPU this worker sees, as in CUDA_VISIBLE_DEVICES; null without a GPU. */
  readonly gpu: string | null;
  /** Cores this worker may use: machine cores divided by workers, at least 1. Pass as `intraOpNumThreads`. */
  readonly threads: number;
}

/**
 * The argument of `init`.
 * @example
 * export async function init({ worker, log }: InitContext) {
 *   log.info('loading', { worker: worker.index });
 * }
 */
export interface InitContext {
  readonly worker: WorkerInfo;
  readonly log: AppLog;
  readonly metrics: AppMetrics;
}

/**
 * Parameters by name; a whole number beyond 2^53 is a BigInt.
 * @example
 * export const inference = (_input: unknown, { params }: InferenceContext) => ({ top: params['top_k'] ?? 5 });
 */
export type CallParams = Readonly<Record<string, string | number | bigint | boolean>>;

/**
 * The second argument of `inference`: the call, and the worker.
 * @example
 * export async function inference({ url }: { url: string }, ctx: InferenceContext) {
 *   const image = await fetch(url, { signal: ctx.signal });
 *   ctx.log.debug('fetched', { status: image.status });
 *   return { bytes: (await image.arrayBuffer()).byteLength };
 * }
 */
export interface InferenceContext {
  /** The request's id, also in the reply's `X-Request-Id` and in every log line of the call. */
  readonly requestId: string;
  /** Request headers, names in lower case, repeated ones joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** Content-Type as sent; empty if absent. */
  readonly contentType: string;
  /** The path as the client sent it, percent escapes included. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The `parameters` of a request of KServe's protocols or of Vertex AI; empty for any other request. */
  readonly params: CallParams;
  /** W3C trace context as sent, if valid. */
  readonly traceparent: string | null;
  /** Aborts when no client waits any more: client gone, deadline, run timeout, stop. `reason` names the cause. */
  readonly signal: AbortSignal;
  /** When the client stops waiting, in ms since the epoch; null without a deadline. */
  readonly deadline: number | null;
  readonly worker: WorkerInfo;
  readonly log: AppLog;
  readonly metrics: AppMetrics;
  /** The job that this call is an attempt at; null if its client waits. */
  readonly job: JobInfo | null;
  /**
   * Reports how far the job is: a fraction from 0 to 1, and up to 200 characters for people. The newest one counts, four a
   * second are sent. Does nothing in a call whose client waits. @throws RangeError, TypeError
   */
  progress(fraction: number, text?: string): void;
}

/**
 * A job: a call that outlives its client (docs/jobs.md).
 * @example
 * export const inference = (_input: unknown, { job }: InferenceContext) => ({ attempt: job?.attempt ?? 0 });
 */
export interface JobInfo {
  readonly id: string;
  /** Number of this attempt, from 1. */
  readonly attempt: number;
}

/**
 * The client of a WebSocket route. Messages are text or bytes, in both directions, of any length up to `--max-body`;
 * the app owns the bytes that it receives.
 * @example
 * app.websocket('/echo', async (_context, { ws }) => {
 *   for await (const message of ws) await ws.send(message);
 * });
 */
export interface WebSocketConnection extends AsyncIterable<string | Uint8Array> {
  /**
   * Resolves with the client's next message, in order; with null once it has left or `close` was called. The iterator
   * ends then.
   */
  receive(): Promise<string | Uint8Array | null>;
  /**
   * Resolves when the message is on its way to the client and there is room for more: awaiting it keeps a fast app in
   * step with a slow client. Rejects with an `AbortError` once the connection is closed; the rejection need not be
   * handled.
   */
  send(message: string | Uint8Array): Promise<void>;
  /**
   * Closes the connection after all sent messages. `code`: 1000, or 3000 to 4999; `reason`: up to 123 bytes. Returning
   * from the function closes with 1000.
   */
  close(code?: number, reason?: string): Promise<void>;
}

/**
 * One file of a `multipart/form-data` body.
 * @example
 * export const inference = ({ image }: { image: UploadedFile }) => ({ bytes: image.data.length });
 */
export interface UploadedFile {
  readonly filename: string;
  readonly contentType: string;
  /** The bytes belong to the app. */
  readonly data: Uint8Array;
}

/**
 * Options that an app may set for itself; the flag, the environment and the config file take precedence. Durations have
 * a unit, `'500ms'`, `'30s'`, `'5m'`; sizes are `'10mb'` or a number of bytes.
 * @example
 * export const config: AppConfig = { runTimeout: '30s', queueSize: 64, concurrency: 8 };
 */
export type AppConfig = ConfigOptions & {
  /**
   * Inputs may safely run twice. A job that was lost, threw or passed its run limit is tried again. If a batch function
   * throws, its inputs run again in halves, and only the one that makes it throw fails; by default all of them fail.
   */
  readonly repeatable?: boolean;
  /** Most times that a job begins if its inputs may run again, 3 by default. */
  readonly attempts?: number;
  /**
   * Calls that run at the same time in one worker, from 1 (the default) to 128, for functions that wait for something
   * else, such as a service; `--concurrency` may allow fewer.
   */
  readonly concurrency?: number;
  /**
   * Parses a form (`application/x-www-form-urlencoded`) as an object of fields instead of JSON; a repeated field
   * becomes an array.
   */
  readonly forms?: boolean;
  /** Reads `text/plain` and other text as a string instead of JSON. */
  readonly text?: boolean;
};

/**
 * The function of an app that exports the schemas `input` and `output`.
 * @example
 * import { z } from 'zod';
 * import type { Inference } from 'banana-serve';
 * export const input = z.object({ prompt: z.string() });
 * export const output = z.object({ text: z.string() });
 * export const inference: Inference<typeof input, typeof output> = ({ prompt }) => ({ text: prompt.toUpperCase() });
 */
export type Inference<
  In extends StandardSchema = StandardSchema,
  Out extends StandardSchema = StandardSchema,
> = (
  modelInputs: SchemaOutput<In>,
  ctx: InferenceContext,
) => Returned<SchemaInput<Out>> | Promise<Returned<SchemaInput<Out>>>;

/**
 * The batch function of an app that exports the schemas `input` and `output`.
 * @example
 * import { z } from 'zod';
 * import type { InferenceBatch } from 'banana-serve';
 * export const input = z.number();
 * export const output = z.number();
 * export const inferenceBatch: InferenceBatch<typeof input, typeof output> = (inputs) => inputs.map((n) => 2 * n);
 */
export type InferenceBatch<
  In extends StandardSchema = StandardSchema,
  Out extends StandardSchema = StandardSchema,
> = (
  modelInputs: readonly SchemaOutput<In>[],
  ctxs: readonly InferenceContext[],
) => BatchAnswers<Returned<SchemaInput<Out>>> | Promise<BatchAnswers<Returned<SchemaInput<Out>>>>;

type BatchAnswers<Answer> = readonly (Answer | Error | Promise<Answer | Error>)[];

/**
 * The functions of a Banana app: exported by name, or together as the default export.
 * @example
 * const app: BananaApp<{ prompt: string }> = {
 *   inference: ({ prompt }) => ({ answer: prompt.toUpperCase() }),
 *   example: { prompt: 'hello' },
 * };
 * export default app;
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the author declares what the app takes
export interface BananaApp<Input = any, Output = unknown> {
  /** Runs once per worker, before the first call. */
  init?(ctx: InitContext): unknown;
  /** Runs once per call, never two at a time in one worker unless `config.concurrency` is set. The input is `null` for an empty body. */
  inference(modelInputs: Input, ctx: InferenceContext): Output | Promise<Output>;
  /**
   * Runs once for calls that came together, at most `--batch-size` of them, in place of `inference`; a single call runs
   * `inference`. Returns one entry per input, in their order: a result as of `inference`, or an Error, which fails that
   * call alone. `ctxs[i]` belongs to `modelInputs[i]`.
   */
  inferenceBatch?(
    modelInputs: readonly Input[],
    ctxs: readonly InferenceContext[],
  ): readonly unknown[] | Promise<readonly unknown[]>;
  /** Runs when the worker is asked to stop; limited by the drain timeout. */
  shutdown?(): unknown;
  /** An input that runs once after `init`, before the worker counts as ready. */
  readonly example?: Input;
  readonly config?: AppConfig;
  /** The schema of the input, of a library such as zod: it is checked before the function runs, which gets the result. */
  readonly input?: StandardSchema;
  /** The schema of the answer; the client gets the result. */
  readonly output?: StandardSchema;
  /**
   * The inputs and outputs, for an app that is called with tensors: they are checked before `inference`, and clients can
   * ask for them.
   */
  readonly signature?: Signature;
  /**
   * Opens the paths of OpenAI's, Cohere's and other clients. `embedding`: `inference` gets an `EmbeddingInput`, and returns
   * a list of vectors; `rerank`: it gets a `RerankInput`, and returns a score for each document.
   */
  readonly task?: Task;
  /** An `embedding` app takes texts as numbers of its tokens, too: then `input` may be such lists. */
  readonly tokenInput?: boolean;
}

/**
 * The input of an app with the task `embedding`. It returns a vector for each text, or `{ embeddings, tokens }`.
 * @example
 * export const task = 'embedding';
 * export function inference({ input }: EmbeddingInput) {
 *   return input.map((text) => [text.length, text.split(' ').length]);
 * }
 */
export interface EmbeddingInput {
  readonly input: readonly string[];
  /** The length of the vectors, if the caller wants another than the model's. */
  readonly dimensions?: number;
}

/**
 * The input of an app with the task `rerank`. It returns a number for each document, or `{ scores, tokens }`.
 * @example
 * export const task = 'rerank';
 * export function inference({ query, documents }: RerankInput) {
 *   return documents.map((document) => (document.includes(query) ? 1 : 0));
 * }
 */
export interface RerankInput {
  readonly query: string;
  readonly documents: readonly string[];
}

/**
 * A Banana app without `inference`: `inferenceBatch` also runs a single call, as a batch of one.
 * @example
 * const app: BananaBatchApp<number> = { inferenceBatch: (inputs) => inputs.map((input) => 2 * input) };
 * export default app;
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the author declares what the app takes
export type BananaBatchApp<Input = any, Output = unknown> = Omit<BananaApp<Input, Output>, 'inference'> &
  Required<Pick<BananaApp<Input, Output>, 'inferenceBatch'>>;

/** The `ctx` of a call, with parts that only adapters may use. */
export interface CallInfo extends InferenceContext {
  /** The body as it was sent, in memory that belongs to the call. */
  readonly body: Buffer;
  /** The call's id on the wire. */
  readonly callId: number;
  /** Releases the body, because an app may keep the rest of the context for long. */
  forgetBody(): void;
}
