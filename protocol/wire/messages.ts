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
 * `codec.ts` turns these shapes into frame heads, by the checks that stand beside their fields, `frame.ts` frames into bytes;
 * `docs/wire.md` is the page for authors of a worker in another language. All messages are in this file, to be read in one go.
 */
import { ERROR_KINDS } from '../errors.js';
import {
  closeCode,
  errorStatus,
  flag,
  fraction,
  known,
  listOf,
  map,
  number,
  numberOrText,
  oneOf,
  optional,
  orElse,
  phrase,
  positive,
  record,
  row,
  text,
  textWithin,
  uint,
  whole,
  type Check,
  type Checked,
} from './fields.js';
import { FIRST_WEBHOOK_REF, MAX_CLOSE_REASON_BYTES, MAX_CONCURRENCY } from './limits.js';

/** Raised with every change that an older peer would misread. Checked in `hello`. */
export const PROTOCOL_VERSION = 2;

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
  /** Parameters that the front read from the path or from fields of the body, encoded like {@link query}; usually empty. */
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
  /** Selects one of several apps of that file, by the names of Node workers (worker/api/serving.ts); else the exported app. */
  readonly appPlace?: string;
  readonly model: string;
  readonly version: string;
  readonly worker: number;
  readonly device: Device;
  readonly limits: { readonly maxOutputBytes: number; readonly streamWindowBytes: number };
  /** If not empty, the worker announces on stdout and stderr, with this mark, the call that prints next (docs/wire.md). */
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
  /** Time from now within which it must be ready; no limit if left out. It may report earlier what it hangs in. */
  readonly readyWithinMs?: number;
  /** True if a worker of this model has died or hung in its warm-up: this one is ready without. */
  readonly skipsWarmUp?: boolean;
  /** Variables to set before the app is loaded; left out unless the process was started before its slot was known. */
  readonly env?: Readonly<Record<string, string>>;
  /** Set for a custom service; if left out, the kind of app follows from its exports. */
  readonly service?: {
    /** Name of the handler, a function or a class in the file; empty: found by rule. */
    readonly handler: string;
    /** Absolute path of the folder with the model's files. */
    readonly modelDir: string;
  };
}

/**
 * `handler`: the caller waits for the answer. `background`: the caller gets an acknowledgement at once. `websocket`:
 * the call lasts as long as the connection.
 */
export const ROUTE_KINDS = ['handler', 'background', 'websocket'] as const;

/** The bodies that a route accepts. `any`: every body, by its content type. `json`: only a non-empty body of JSON's type. */
export const ROUTE_INPUTS = ['any', 'json'] as const;

export type Route = ReturnType<typeof ROUTE>;
const ROUTE = record({
  /** Exact path, with its leading slash. */
  path: text,
  kind: orElse(oneOf(ROUTE_KINDS), 'handler'),
  input: orElse(oneOf(ROUTE_INPUTS), 'any'),
  /** URL to which the front posts the JSON answers of this route; empty if it has none. */
  webhook: orElse(text, ''),
  /** Maximum calls of this route in one batch; 1: each runs alone. */
  maxBatch: orElse(positive, 1),
  /** Most times that a job of this route may begin; 1 unless the app says that its inputs may run again. */
  attempts: orElse(positive, 1),
  /** JSON Schemas, as text, of what the client sends and gets; left out as far as nobody knows them. */
  schemas: optional(record({ input: optional(text), output: optional(text) })),
});

/** A named tensor that an app takes or returns. */
export type TensorSpec = ReturnType<typeof TENSOR>;
const TENSOR = record({
  name: text,
  /** One of those of the Open Inference Protocol V2, or BF16; only the worker knows what they mean. */
  datatype: text,
  /** The size of each dimension; -1 for one that may have any size. Left out: nobody knows how many dimensions there are. */
  shape: optional(listOf(whole(-1))),
});

/** The inputs and outputs of an app that describes them as tensors. */
export type Signature = ReturnType<typeof SIGNATURE>;
const SIGNATURE = record({ inputs: listOf(TENSOR), outputs: listOf(TENSOR) });

/** The tasks of models, by which clients call them. */
export const TASKS = ['embedding', 'rerank'] as const;
export type Task = (typeof TASKS)[number];

/**
 * The description that an app gives of itself, one record all the way: an adapter makes it, this table checks it, and a model
 * of the front has it as `info`.
 */
export type LoadedInfo = ReturnType<typeof LOADED>;
const LOADED = record({
  /** A path alone stands for a handler that takes any body, one call at a time. */
  routes: listOf((route, name) => ROUTE(typeof route === 'string' ? { path: route } : route, name)),
  /** The app's own options, not validated yet. */
  modelOptions: (options: unknown, name: string) => map(options ?? {}, name),
  /** JSON text of a sample input, at most `MAX_TEXT_CHARS`; empty if there is none. */
  example: (example: unknown, name: string) => text(example ?? '', name),
  /** Whether the app has a `shutdown` to run before its worker ends; unknown if left out. */
  shutdown: optional(flag),
  /** Left out by an app that does not describe its inputs and outputs as tensors. */
  signature: optional(SIGNATURE),
  /** The task of its model, for the paths of clients that know no routes; left out: none. */
  task: optional(oneOf(TASKS)),
  /** The kind of model, as pages about it name it, such as `onnx_onnxv1`; left out: the runtime of its worker. */
  platform: optional(text),
  /** The way in which the app is written: `banana`, `potassium` or `mms`; `none`: no code; left out: nobody knows. */
  api: optional(text),
  /** Calls that the worker runs at the same time, up to {@link MAX_CONCURRENCY}; left out: one, or one batch. */
  concurrency: optional(whole(1, MAX_CONCURRENCY)),
});

/**
 * The kind decides how values of one metric are combined. `counter`: they add up. `gauge`: the last one counts. `time`,
 * `size`, `percent`, `histogram`: each is a sample. `error`: a failure that the value describes.
 */
export const METRIC_KINDS = ['counter', 'gauge', 'time', 'size', 'percent', 'error', 'histogram'] as const;

/** A value that the app measured. */
export type Metric = ReturnType<typeof METRIC>;
export const METRIC = row({
  kind: known(METRIC_KINDS, 'gauge'),
  name: text,
  /** A number; text is allowed for an `error`. */
  value: numberOrText,
  /** Unit as the app gives it, such as `ms` or `MB`; empty for none. */
  unit: text,
  /** Names and values as lines, like {@link Call.headers}, in the app's order. */
  dimensions: text,
  /** Ids of calls that have no ending yet; if empty, the metric belongs to the worker. */
  callIds: listOf(uint),
});

/** A wrong value in the input of a call. */
export const ISSUE = row({ path: listOf(numberOrText), message: text });

/** The error that an app threw, as text. */
export const THROWN = row({ name: text, message: text, stack: text });
export type Thrown = ReturnType<typeof THROWN>;

/** `taken`: the front has it and will deliver it. `dropped`: it will not be sent. `unsent`: the server stopped first. */
export const WEBHOOK_OUTCOMES = ['taken', 'dropped', 'delivered', 'failed', 'unsent'] as const;
export type WebhookOutcome = (typeof WEBHOOK_OUTCOMES)[number];

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

/** Counts up from {@link FIRST_WEBHOOK_REF}; unique among the webhooks of this worker without a `webhookDone`. */
const webhookRef = whole(FIRST_WEBHOOK_REF);

const status = whole(200, 599);

/**
 * The fields of every message but `call`, in the order of its head. Those with the same value in nearly every message stand
 * last and may be left out.
 */
export const MESSAGES = {
  start: { spec: map as Check<unknown> as Check<StartSpec> },
  body: { id: uint },
  cancel: { id: uint, reason: text },
  credit: { id: uint, bytes: uint },
  /** Part of one message on a WebSocket, at most one fragment, which is the frame's body. */
  data: {
    id: uint,
    /** The message is UTF-8 text; a part may end inside a character. */
    text: flag,
    /** The message ends with this part. */
    last: flag,
  },
  webhookDone: { ref: webhookRef, outcome: oneOf(WEBHOOK_OUTCOMES) },
  ping: { ref: uint },
  stop: { graceMs: number },
  /** `values`: version of the V8 values that it reads and writes (`protocol/values/`); left out by a worker without V8. */
  hello: { protocol: uint, runtime: text, values: optional(uint) },
  loaded: { info: LOADED },
  /** `advice`: what it runs and how the operator makes that short, for the log. May be left out by a worker. */
  warmUp: { advice: text },
  ready: { initMs: number },
  result: {
    id: uint,
    status,
    contentType: text,
    headers: text,
    bodyBytes: uint,
    runMs: number,
    phrase: orElse(phrase, ''),
  },
  /** Only for calls with a `job`. */
  progress: { id: uint, fraction, text },
  /** Status line, type and extra headers of an answer. */
  head: {
    id: uint,
    status,
    contentType: text,
    /** Further headers as lines, like {@link Call.headers}; usually empty. */
    headers: text,
    /** Reason phrase beside the status; empty for the standard one. */
    phrase: orElse(phrase, ''),
  },
  chunk: { id: uint },
  end: { id: uint, runMs: number },
  /** `received`: the number of `data` frames of this call that had come; the app has taken all of them. */
  waiting: { id: uint, received: uint },
  close: { id: uint, code: closeCode, reason: textWithin(MAX_CLOSE_REASON_BYTES) },
  error: {
    id: uint,
    code: text,
    message: text,
    detail: text,
    runMs: number,
    /** HTTP status that the app chose; 0: the one that belongs to the code. */
    status: orElse(errorStatus, 0),
    kind: orElse(known(ERROR_KINDS, ''), ''),
    /** The wrong values of the input, if the app found some. */
    issues: optional(listOf(ISSUE)),
    /** Only for a call whose caller is a program, which may see it. */
    thrown: optional(THROWN),
  },
  /** `fields`: further fields as JSON text of an object; empty if none. `requestId`: empty outside a call. */
  log: { level: text, message: text, fields: text, requestId: text },
  metrics: { metrics: listOf(METRIC) },
  /** A webhook that the worker sends to the front for delivery. */
  webhook: {
    ref: webhookRef,
    url: text,
    contentType: text,
    /** Empty outside a call. */
    requestId: text,
    /** Time limit of one attempt. */
    timeoutMs: number,
    /** Attempts after the first. */
    retries: uint,
    /** If true, `webhookDone` comes after delivery or the last attempt; otherwise as soon as the front has the webhook. */
    wait: flag,
    /** Whole body, over all fragments; at most `MAX_WEBHOOK_BYTES`. */
    bodyBytes: uint,
  },
  pong: { ref: uint },
  /** `reason`: for the log. */
  retiring: { reason: text },
  fatal: {
    code: text,
    message: text,
    detail: text,
    /** The failure would repeat: do not restart. */
    permanent: flag,
    /** Caused by the network or a scarce resource: the next start may succeed. */
    transient: orElse(flag, false),
  },
};

type Messages = {
  readonly [T in keyof typeof MESSAGES]: { readonly type: T } & Checked<(typeof MESSAGES)[T]>;
};
export type Message = CallFrame | Messages[keyof Messages];
export type Hello = Omit<Messages['hello'], 'type'>;
export type ReplyHead = Omit<Messages['head'], 'type' | 'id'>;
export type DataPart = Omit<Messages['data'], 'type'>;
export type WebhookOrder = Omit<Messages['webhook'], 'type'>;
