/**
 * The whole conversation between the front (supervisor) and one worker: frames to the front on the worker's fd 3,
 * frames to the worker on its fd 4, and a note of what has begun on fd 5.
 *
 *   worker -> front   hello    which protocol and runtime this is
 *   front  -> worker  start    the app, its slot, the limits
 *   worker -> front   loaded   the app is imported; these are its routes and options
 *   worker -> front   warmUp   init ran; a model without code tries an input of its own now
 *   worker -> front   ready    init (and the example) ran; calls may come
 *   front  -> worker  call     calls of one batch, bodies attached; more batches may be sent ahead
 *   (note on fd 5)    begun    this batch starts now (`begun-note.ts`; before user code runs)
 *   worker -> front   result   a whole answer       }
 *   worker -> front   head, chunk.., end  a stream  } exactly one ending for every call,
 *   worker -> front   error    a failed call        } cancelled ones included
 *   front  -> worker  cancel   no client waits for this call any more
 *   front  -> worker  credit   this stream may send that many more bytes
 *   both              data     part of a message on a call's WebSocket  }
 *   worker -> front   credit   the client may send that many more bytes } between such a call's beginning and its
 *   worker -> front   waiting  the app has read all and waits for more  } ending, which is `end` or `error`
 *   worker -> front   close    the app closes it, with this code        }
 *   front  -> worker  ping     does the event loop turn? only while a call outlasts its limit beside others
 *   worker -> front   pong     it does
 *   worker -> front   retiring  no call begins here any more: give those that have not begun to another worker
 *   front  -> worker  stop     no more calls: shut down and exit
 *   worker -> front   log      a line for the server's log
 *   worker -> front   metrics  values that the app measured
 *   worker -> front   progress  how far a job is, while its call runs
 *   worker -> front   webhook  send this to another server             } the front sends them, so that a worker's
 *   front  -> worker  webhookDone  taken over; or how it ended         } death loses none
 *   worker -> front   fatal    this worker cannot go on, and why
 *   both              body     the next fragment of a call's, a result's or a webhook's body
 *
 * `codec.ts` turns these shapes into frame heads, `frame.ts` frames into bytes; `docs/wire.md` is the page for authors of
 * a worker in another language. All messages stand in this one file, so that the conversation is read in one go.
 */
import type { ErrorKind, Issue } from '../errors.js';

/** Raised with every change that an older peer would misread. Checked in `hello`. */
export const PROTOCOL_VERSION = 2;

/** Maximum body bytes in one frame. Control messages wait for at most one such frame (docs/wire.md). */
export const MAX_FRAGMENT_BYTES = 256 * 1024;

/** Maximum bytes of a frame's head. Request headers (Node accepts 16 KiB) are its largest part. */
export const MAX_HEAD_BYTES = 1024 * 1024;

/** Senders cut texts (errors, logs) to this length, so that several of them fit into one head. */
export const MAX_TEXT_CHARS = 64 * 1024;

/** Maximum characters of the text in a `progress`. */
export const MAX_PROGRESS_CHARS = 200;

/** Maximum body bytes of a webhook. */
export const MAX_WEBHOOK_BYTES = 16 * 1024 * 1024;

/** Maximum time limit of one attempt to deliver a webhook. */
export const MAX_WEBHOOK_TIMEOUT_MS = 60_000;
export const MAX_WEBHOOK_RETRIES = 10;

/** The first number of a webhook, above every call's id, so that a `body` frame shows which of the two it continues. */
export const FIRST_WEBHOOK_REF = 2 ** 32;

/** Bytes that a stream may send before the first `credit`. */
export const STREAM_WINDOW_BYTES = 256 * 1024;

/** Credit that a `data` frame costs in addition to its bytes, so that small messages cannot pile up. */
export const DATA_OVERHEAD_BYTES = 64;

/**
 * Maximum bytes of the reason of a `close`: a close frame's payload is at most 125 bytes, two of them the code (RFC
 * 6455 section 5.5).
 */
export const MAX_CLOSE_REASON_BYTES = 123;

/** Maximum calls that one worker runs at the same time: the entries of their note fit into a page. */
export const MAX_CONCURRENCY = 128;

/** A call on the wire; its body travels beside it as raw bytes. */
export interface Call {
  /** Unique among the calls in flight on this channel; chosen by the front. */
  readonly id: number;
  /** Bytes of the whole body, over all fragments. */
  readonly bodyBytes: number;
  /** The request's id as the client knows it. */
  readonly requestId: string;
  /** The route of the worker that answers the call. */
  readonly route: string;
  /** Path as the client sent it, without the query. */
  readonly path: string;
  /** Raw query string without `?`. */
  readonly query: string;
  /**
   * Name of the format in which the worker reads the body. `auto`: by its content type; `websocket`: no body, `data`
   * follows. The wire carries any name; the worker refuses a call in a format that it does not have.
   */
  readonly format: string;
  /** Content-Type as sent; empty if absent. */
  readonly contentType: string;
  /** Accept as sent; empty if absent. */
  readonly accept: string;
  /** When the client stops waiting, in ms since the epoch; null: no deadline. */
  readonly deadlineMs: number | null;
  /** Request headers as lines `name\nvalue\nname\nvalue` in the client's order. */
  readonly headers: string;
  /** HTTP method of the request. */
  readonly method: string;
  /**
   * Parameters that the front read from the path or from fields of the body, encoded like {@link query}; usually empty.
   */
  readonly params: string;
  /** The JSON answer must be pure ASCII, because the client breaks any other character. */
  readonly asciiJson: boolean;
  /** Name of the format in which the worker writes the answer. `auto`: by the value and {@link accept}. */
  readonly answer: string;
  /** Parameters of the dialect for its own formats, encoded like {@link query}; the app does not get them. */
  readonly dialectParams: string;
  /** The job of which the call is an attempt; left out for a call whose client waits. */
  readonly job?: {
    readonly id: string;
    /** Number of this attempt, from 1. */
    readonly attempt: number;
  };
}

/** The device of one slot. */
export interface Device {
  /** Value of CUDA_VISIBLE_DEVICES for this worker; null: no GPU. */
  readonly gpu: string | null;
  /** Number of CPU cores that this worker may use. */
  readonly threads: number;
}

export interface StartSpec {
  /** Absolute path of the app. */
  readonly app: string;
  /**
   * Selects one of several apps of that file, by the names of Node workers (worker/api/in-worker.ts); the exported app
   * if left out.
   */
  readonly appPlace?: string;
  readonly model: string;
  readonly version: string;
  readonly worker: number;
  readonly device: Device;
  readonly limits: { readonly maxOutputBytes: number; readonly streamWindowBytes: number };
  /**
   * If not empty, the worker announces on stdout and stderr, with this mark, the call that prints next (docs/wire.md).
   */
  readonly printMark: string;
  /** Maximum calls in one batch, as the operator set it; 0: not set, so the app may set it. */
  readonly batchSize: number;
  /** True if the operator asks for batches of this model, and not of all models of a server. */
  readonly asksForBatches?: boolean;
  /** Maximum calls at the same time, as the operator set it; the app decides if left out. */
  readonly concurrency?: number;
  /** True if a custom service gets items of bytes; left out if the operator did not set it, so the app may. */
  readonly rawItems?: boolean;
  readonly serverVersion: string;
  /**
   * Time from now within which the worker must be ready; no limit if left out. The worker may report earlier what it
   * hangs in.
   */
  readonly readyWithinMs?: number;
  /** True if a worker of this model has died or hung in its warm-up: this one is ready without. */
  readonly skipsWarmUp?: boolean;
  /** Environment variables to set before the app is loaded; left out unless the process was started before its slot was known. */
  readonly env?: Readonly<Record<string, string>>;
  /** Set for a custom service; if left out, the kind of app follows from its exports. */
  readonly service?: StartedService;
}

/** The location of a custom service's handler. */
export interface StartedService {
  /** Name of a function or a class in the file; empty: found by rule. */
  readonly handler: string;
  /** Absolute path of the folder with the model's files. */
  readonly modelDir: string;
}

/**
 * `handler`: the caller waits for the answer. `background`: the caller gets an acknowledgement at once. `websocket`:
 * the call lasts as long as the connection.
 */
export const ROUTE_KINDS = ['handler', 'background', 'websocket'] as const;
export type RouteKind = (typeof ROUTE_KINDS)[number];

/**
 * The bodies that a route accepts. `any`: every body, by its content type. `json`: only a non-empty body with the
 * content type of JSON.
 */
export const ROUTE_INPUTS = ['any', 'json'] as const;
export type RouteInput = (typeof ROUTE_INPUTS)[number];

export interface Route {
  /** Exact path, with its leading slash. */
  readonly path: string;
  readonly kind: RouteKind;
  readonly input: RouteInput;
  /** URL to which the front posts the JSON answers of this route; empty if it has none. */
  readonly webhook: string;
  /** Maximum calls of this route in one batch; 1: each runs alone. */
  readonly maxBatch: number;
  /** Most times that a job of this route may begin; 1 unless the app says that its inputs may run again. */
  readonly attempts: number;
}

/**
 * The description that an app gives of itself, one record all the way: an adapter makes it, `codec.ts` checks it,
 * and a model of the front has it as `info`.
 */
export interface LoadedInfo {
  readonly routes: readonly Route[];
  /** The app's own options, not validated yet. */
  readonly modelOptions: Readonly<Record<string, unknown>>;
  /** JSON text of a sample input, at most {@link MAX_TEXT_CHARS}; empty if there is none. */
  readonly example: string;
  /** Whether the app has a `shutdown` to run before its worker ends; unknown if left out. */
  readonly shutdown?: boolean;
  /** Left out by an app that does not describe its inputs and outputs as tensors. */
  readonly signature?: Signature;
  /** The kind of model, as pages about it name it, such as `onnx_onnxv1`; left out: the runtime of its worker. */
  readonly platform?: string;
  /** The way in which the app is written: `banana`, `potassium` or `mms`; `none`: no code; left out: nobody knows. */
  readonly api?: string;
  /** Calls that the worker runs at the same time, up to {@link MAX_CONCURRENCY}; left out: one, or one batch. */
  readonly concurrency?: number;
}

/** A named tensor that an app takes or returns. */
export interface TensorSpec {
  readonly name: string;
  /** One of those of the Open Inference Protocol V2, or BF16; only the worker knows what they mean. */
  readonly datatype: string;
  /** The size of each dimension; -1 for one that may have any size. Left out: nobody knows how many dimensions there are. */
  readonly shape?: readonly number[];
}

/** The inputs and outputs of an app that describes them as tensors. */
export interface Signature {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
}

/** Status line, type and extra headers of an answer. */
export interface ReplyHead {
  readonly status: number;
  readonly contentType: string;
  /** Further headers as lines, like {@link Call.headers}; usually empty. */
  readonly headers: string;
  /** Reason phrase beside the status; empty for the standard one. */
  readonly phrase: string;
}

/**
 * The kind decides how values of one metric are combined. `counter`: they add up. `gauge`: the last one counts. `time`,
 * `size`, `percent`, `histogram`: each is a sample. `error`: a failure that the value describes.
 */
export const METRIC_KINDS = ['counter', 'gauge', 'time', 'size', 'percent', 'error', 'histogram'] as const;
export type MetricKind = (typeof METRIC_KINDS)[number];

/** A value that the app measured. */
export interface Metric {
  readonly kind: MetricKind;
  readonly name: string;
  /** A number; text is allowed for an `error`. */
  readonly value: number | string;
  /** Unit as the app gives it, such as `ms` or `MB`; empty for none. */
  readonly unit: string;
  /** Names and values as lines, like {@link Call.headers}, in the app's order. */
  readonly dimensions: string;
  /** Ids of calls that have no ending yet; if empty, the metric belongs to the worker. */
  readonly callIds: readonly number[];
}

/** A webhook that the worker sends to the front for delivery. */
export interface WebhookOrder {
  /** Counts up from {@link FIRST_WEBHOOK_REF}; unique among the webhooks of this worker without a `webhookDone`. */
  readonly ref: number;
  readonly url: string;
  readonly contentType: string;
  /** Empty outside a call. */
  readonly requestId: string;
  /** Time limit of one attempt. */
  readonly timeoutMs: number;
  /** Attempts after the first. */
  readonly retries: number;
  /**
   * If true, `webhookDone` comes after delivery or the last attempt; otherwise as soon as the front has the webhook.
   */
  readonly wait: boolean;
  /** Whole body, over all fragments; at most {@link MAX_WEBHOOK_BYTES}. */
  readonly bodyBytes: number;
}

/**
 * `taken`: the front has it and will deliver it. `dropped`: it will not be sent. `unsent`: the server stopped first.
 */
export const WEBHOOK_OUTCOMES = ['taken', 'dropped', 'delivered', 'failed', 'unsent'] as const;
export type WebhookOutcome = (typeof WEBHOOK_OUTCOMES)[number];

/** Part of one message on a WebSocket, at most one fragment, which is the frame's body. */
export interface DataPart {
  readonly id: number;
  /** The message is UTF-8 text; a part may end inside a character. */
  readonly text: boolean;
  /** The message ends with this part. */
  readonly last: boolean;
}

/** Calls of one batch, or the rest of them. Batches do not interleave; the frames of each are consecutive. */
export interface CallFrame {
  readonly type: 'call';
  /** May be empty in the last frame of a batch. */
  readonly calls: readonly Call[];
  /** Bytes of each call's body that are in this frame. */
  readonly inlineBytes: readonly number[];
  /** Number of the batch, unique among those in flight on this channel; chosen by the front. */
  readonly batch: number;
  /** The batch is complete and its calls may begin. */
  readonly last: boolean;
}

export type DownMessage =
  | { readonly type: 'start'; readonly spec: StartSpec }
  | CallFrame
  | { readonly type: 'body'; readonly id: number }
  | { readonly type: 'cancel'; readonly id: number; readonly reason: string }
  | { readonly type: 'credit'; readonly id: number; readonly bytes: number }
  | ({ readonly type: 'data' } & DataPart)
  | { readonly type: 'webhookDone'; readonly ref: number; readonly outcome: WebhookOutcome }
  | { readonly type: 'ping'; readonly ref: number }
  | { readonly type: 'stop'; readonly graceMs: number };

export type UpMessage =
  | { readonly type: 'hello'; readonly protocol: number; readonly runtime: string }
  | { readonly type: 'loaded'; readonly info: LoadedInfo }
  /** `advice`: what it runs and how the operator makes that short, for the log. May be left out by a worker. */
  | { readonly type: 'warmUp'; readonly advice: string }
  | { readonly type: 'ready'; readonly initMs: number }
  | ({
      readonly type: 'result';
      readonly id: number;
      readonly bodyBytes: number;
      readonly runMs: number;
    } & ReplyHead)
  | { readonly type: 'body'; readonly id: number }
  /** `fraction` is between 0 and 1. Only for calls with a `job`. */
  | { readonly type: 'progress'; readonly id: number; readonly fraction: number; readonly text: string }
  | ({ readonly type: 'head'; readonly id: number } & ReplyHead)
  | { readonly type: 'chunk'; readonly id: number }
  | { readonly type: 'end'; readonly id: number; readonly runMs: number }
  | ({ readonly type: 'data' } & DataPart)
  | { readonly type: 'credit'; readonly id: number; readonly bytes: number }
  /** `received` is the number of `data` frames of this call that had come; the app has taken all of them. */
  | { readonly type: 'waiting'; readonly id: number; readonly received: number }
  | { readonly type: 'close'; readonly id: number; readonly code: number; readonly reason: string }
  | {
      readonly type: 'error';
      readonly id: number;
      readonly code: string;
      readonly message: string;
      readonly detail: string;
      readonly runMs: number;
      /** HTTP status that the app chose; 0: the one that belongs to the code. */
      readonly status: number;
      readonly kind: ErrorKind;
      /** The wrong values of the input, if the app found some. */
      readonly issues?: readonly Issue[];
    }
  | {
      readonly type: 'log';
      readonly level: string;
      readonly message: string;
      /** Further fields as JSON text of an object; empty if none. */
      readonly fields: string;
      /** Empty outside a call. */
      readonly requestId: string;
    }
  | { readonly type: 'metrics'; readonly metrics: readonly Metric[] }
  | ({ readonly type: 'webhook' } & WebhookOrder)
  | { readonly type: 'pong'; readonly ref: number }
  /** For the log. */
  | { readonly type: 'retiring'; readonly reason: string }
  | {
      readonly type: 'fatal';
      readonly code: string;
      readonly message: string;
      readonly detail: string;
      /** The failure would repeat: do not restart. */
      readonly permanent: boolean;
      /** Caused by the network or a scarce resource: the next start may succeed. */
      readonly transient: boolean;
    };

export type Message = DownMessage | UpMessage;
