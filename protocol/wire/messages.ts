/**
 * The whole conversation between the front (supervisor) and one worker: frames to the front on the worker's fd 3,
 * frames to the worker on its fd 4, and a note of what has begun on fd 5.
 *
 *   worker -> front   hello    which protocol and runtime this is
 *   front  -> worker  start    the app, its slot, the limits
 *   worker -> front   loaded   the app is imported; these are its routes and options
 *   worker -> front   ready    init (and the example) ran; calls may come
 *   front  -> worker  call     calls of one batch, bodies attached; more batches may be sent ahead
 *   (note on fd 5)    begun    this batch starts now (`begun-note.ts`; before user code runs)
 *   worker -> front   result   a whole answer       }
 *   worker -> front   head, chunk.., end  a stream  } exactly one ending for every call,
 *   worker -> front   error    a failed call        } cancelled ones included
 *   front  -> worker  cancel   nobody waits for this call any more
 *   front  -> worker  credit   this stream may send that many more bytes
 *   both              data     part of a message on a call's WebSocket }
 *   worker -> front   credit   the client may say that much more       } between such a call's beginning and its
 *   worker -> front   waiting  the app has had all, and waits for more } ending, which is `end` or `error`
 *   worker -> front   close    the app closes it, with this code       }
 *   front  -> worker  stop     no more calls: shut down and exit
 *   worker -> front   log      a line for the server's log
 *   worker -> front   metrics  what the app has measured
 *   worker -> front   webhook  send this to somebody else's server   } the front sends them, so that a worker's
 *   front  -> worker  webhookDone  taken over; or how it ended       } death loses none
 *   worker -> front   fatal    this worker is finished, and why
 *   both              body     the next fragment of a call's, a result's or a webhook's body
 *
 * `codec.ts` turns these shapes into frame heads, `frame.ts` frames into bytes; `docs/wire.md` is the page
 * for writing a worker in another language. All of them stand in this one file, so that the conversation is read in one
 * go.
 */
import type { ErrorKind } from '../errors.js';

/** Raised with every change that an older peer would misread. Checked in `hello`. */
export const PROTOCOL_VERSION = 2;

/** Most body bytes in one frame. Control messages never wait behind more than this (docs/wire.md). */
export const MAX_FRAGMENT_BYTES = 256 * 1024;

/** Most bytes of a frame's head. Request headers (Node accepts 16 KiB) are the largest thing in it. */
export const MAX_HEAD_BYTES = 1024 * 1024;

/** Senders cut texts (errors, logs) to this many characters, so that a few of them always fit into one head. */
export const MAX_TEXT_CHARS = 64 * 1024;

/** Longest body of a webhook that a worker hands over. */
export const MAX_WEBHOOK_BYTES = 16 * 1024 * 1024;

/** Longest that one attempt to deliver a webhook may take, and how often one is tried again. */
export const MAX_WEBHOOK_TIMEOUT_MS = 60_000;
export const MAX_WEBHOOK_RETRIES = 10;

/** Webhooks are numbered from here, above every call's id: so a `body` frame tells what it continues. */
export const FIRST_WEBHOOK_REF = 2 ** 32;

/** Bytes a stream may send before the first `credit`. */
export const STREAM_WINDOW_BYTES = 256 * 1024;

/** A `data` frame uses up this much credit besides its bytes, so that small messages cannot pile up either. */
export const DATA_OVERHEAD_BYTES = 64;

/** Longest reason of a `close`: a close frame's payload is at most 125 bytes, two of them the code (RFC 6455 section 5.5). */
export const MAX_CLOSE_REASON_BYTES = 123;

/** How the worker shall read a call's body. `auto`: by its content type; `websocket`: none, `data` follows. */
export const FORMATS = ['auto', 'json', 'msgpack', 'multipart', 'bytes', 'websocket'] as const;
export type Format = (typeof FORMATS)[number];

/** A call as the worker sees it; its body travels beside it as raw bytes. */
export interface Call {
  /** Unique among the calls in flight on this channel; chosen by the front. */
  readonly id: number;
  /** Whole body, over all fragments. */
  readonly bodyBytes: number;
  /** The request's id as the client knows it. */
  readonly requestId: string;
  /** Which of the worker's routes answers. */
  readonly route: string;
  /** Path as the client wrote it, without the query. */
  readonly path: string;
  /** Raw query string without `?`. */
  readonly query: string;
  readonly format: Format;
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
  /** What the front took from the path or from fields of the body, written like {@link query}; usually empty. */
  readonly params: string;
  /** An answer in JSON must be pure ASCII: the client breaks any other character. */
  readonly asciiJson: boolean;
}

/** One slot's device as the worker sees it. */
export interface Device {
  /** Value of CUDA_VISIBLE_DEVICES for this worker; null: no GPU. */
  readonly gpu: string | null;
  /** Cores this worker may count as its own. */
  readonly threads: number;
}

export interface StartSpec {
  /** Absolute path of the app. */
  readonly app: string;
  /** Which app of that file, as Node workers name them (worker/api/in-worker.ts); the one that it exports if left out. */
  readonly appPlace?: string;
  readonly model: string;
  readonly version: string;
  readonly worker: number;
  readonly device: Device;
  readonly limits: { readonly maxOutputBytes: number; readonly streamWindowBytes: number };
  /** Non-empty: announce on stdout and stderr, with this mark, which call prints next (docs/wire.md). */
  readonly printMark: string;
  /** The most calls that the operator lets begin together; 0: the operator has not said, and the app may. */
  readonly batchSize: number;
  /** Whether a custom service gets items of bytes; left out: the operator has not said, and the app may. */
  readonly rawItems?: boolean;
  readonly serverVersion: string;
  /** How long the worker has, from now on, to get ready; left out: nobody minds. It may say before what it hangs in. */
  readonly readyWithinMs?: number;
  /** The app is a custom service; left out: its exports say what it is. */
  readonly service?: StartedService;
}

/** Where the handler of a custom service stands. */
export interface StartedService {
  /** Name of a function or a class in the file; empty: found by rule. */
  readonly handler: string;
  /** Absolute path of the folder that the model's files are in. */
  readonly modelDir: string;
}

/**
 * `handler`: the caller waits for the answer. `background`: the caller is told that the call is taken. `websocket`: the
 * call lasts as long as the connection.
 */
export const ROUTE_KINDS = ['handler', 'background', 'websocket'] as const;
export type RouteKind = (typeof ROUTE_KINDS)[number];

/** The bodies that a route takes. `any`: every body, by its content type. `json`: a body that is not empty and says that it is JSON. */
export const ROUTE_INPUTS = ['any', 'json'] as const;
export type RouteInput = (typeof ROUTE_INPUTS)[number];

export interface Route {
  /** Path to the letter, with its leading slash. */
  readonly path: string;
  readonly kind: RouteKind;
  readonly input: RouteInput;
  /** URL to which the front posts the JSON answers of this route; empty if it has none. */
  readonly webhook: string;
  /** The most calls of this route that may begin together; 1: each runs alone. */
  readonly maxBatch: number;
}

export interface LoadedInfo {
  readonly routes: readonly Route[];
  /** The app's own options, not yet validated. */
  readonly modelOptions: Readonly<Record<string, unknown>>;
  /** JSON text of a sample input, for the server's start-up hint; empty if there is none to show. */
  readonly example: string;
}

/** Status line, type and extra headers of an answer. */
export interface ReplyHead {
  readonly status: number;
  readonly contentType: string;
  /** Further headers as lines, like {@link Call.headers}; usually empty. */
  readonly headers: string;
  /** Text beside the status; empty for the standard one. */
  readonly phrase: string;
}

/**
 * How values of the same metric go together. `counter`: they add up. `gauge`: the last one counts. `time`, `size`,
 * `percent`, `histogram`: each is a sample of its own. `error`: something failed, and the value says what.
 */
export const METRIC_KINDS = ['counter', 'gauge', 'time', 'size', 'percent', 'error', 'histogram'] as const;
export type MetricKind = (typeof METRIC_KINDS)[number];

/** Something that the app has measured. */
export interface Metric {
  readonly kind: MetricKind;
  readonly name: string;
  /** A number; an `error` may have text. */
  readonly value: number | string;
  /** As the app names it, such as `ms` or `MB`; empty for none. */
  readonly unit: string;
  /** Names and values as lines, like {@link Call.headers}, in the app's order. */
  readonly dimensions: string;
  /** Calls that have no ending yet; empty: it belongs to the worker as a whole. */
  readonly callIds: readonly number[];
}

/** A webhook that the worker hands over. */
export interface WebhookOrder {
  /** Counts up from {@link FIRST_WEBHOOK_REF}; it is unique among the webhooks of this worker that have no `webhookDone` yet. */
  readonly ref: number;
  readonly url: string;
  readonly contentType: string;
  /** Empty outside a call. */
  readonly requestId: string;
  /** How long one attempt may take. */
  readonly timeoutMs: number;
  /** Attempts after the first. */
  readonly retries: number;
  /** `webhookDone` comes when it was delivered or given up; else as soon as the front has it. */
  readonly wait: boolean;
  /** Whole body, over all fragments; at most {@link MAX_WEBHOOK_BYTES}. */
  readonly bodyBytes: number;
}

/** `taken`: the front has it, and nobody asked to wait. `dropped`: it is not sent. `unsent`: the server stopped first. */
export const WEBHOOK_OUTCOMES = ['taken', 'dropped', 'delivered', 'failed', 'unsent'] as const;
export type WebhookOutcome = (typeof WEBHOOK_OUTCOMES)[number];

/** Part of one message on a WebSocket, at most one fragment of it in the frame's body. */
export interface DataPart {
  readonly id: number;
  /** The message is text, in UTF-8; a part may end inside a character. */
  readonly text: boolean;
  /** The message ends with this part. */
  readonly last: boolean;
}

/** Calls of one batch, or the rest of them: the batches come one after the other, each in consecutive frames. */
export interface CallFrame {
  readonly type: 'call';
  /** May be empty in the last frame of a batch. */
  readonly calls: readonly Call[];
  /** How much of each call's body is in this frame. */
  readonly inlineBytes: readonly number[];
  /** Number of the batch, unique among those in flight on this channel; chosen by the front. */
  readonly batch: number;
  /** The batch is complete: its calls may begin. */
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
  | { readonly type: 'stop'; readonly graceMs: number };

export type UpMessage =
  | { readonly type: 'hello'; readonly protocol: number; readonly runtime: string }
  | { readonly type: 'loaded'; readonly info: LoadedInfo }
  | { readonly type: 'ready'; readonly initMs: number }
  | ({
      readonly type: 'result';
      readonly id: number;
      readonly bodyBytes: number;
      readonly runMs: number;
    } & ReplyHead)
  | { readonly type: 'body'; readonly id: number }
  | ({ readonly type: 'head'; readonly id: number } & ReplyHead)
  | { readonly type: 'chunk'; readonly id: number }
  | { readonly type: 'end'; readonly id: number; readonly runMs: number }
  | ({ readonly type: 'data' } & DataPart)
  | { readonly type: 'credit'; readonly id: number; readonly bytes: number }
  /** `received`: how many `data` frames of this call had come by then; the app has had them all. */
  | { readonly type: 'waiting'; readonly id: number; readonly received: number }
  | { readonly type: 'close'; readonly id: number; readonly code: number; readonly reason: string }
  | {
      readonly type: 'error';
      readonly id: number;
      readonly code: string;
      readonly message: string;
      readonly detail: string;
      readonly runMs: number;
      /** HTTP status of the app's choosing; 0: the one that belongs to the code. */
      readonly status: number;
      readonly kind: ErrorKind;
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
  | {
      readonly type: 'fatal';
      readonly code: string;
      readonly message: string;
      readonly detail: string;
      /** The same would happen again: do not restart. */
      readonly permanent: boolean;
      /** The network or a scarce resource is to blame: the next start may succeed. */
      readonly transient: boolean;
    };

export type Message = DownMessage | UpMessage;
