/**
 * Encodes a message as a frame head and decodes it: one msgpack array `[type, ...fields]`, fields in a fixed order.
 * Arrays instead of maps halve the cost of a call and its result, 7 us less of 14 (bench/codec.ts). The only file of
 * the wire that imports the msgpack library.
 */
import { Packr, Unpackr } from 'msgpackr';
import { ERROR_KINDS, type Issue } from '../errors.js';
import {
  closeCode,
  errorStatus,
  flag,
  fraction,
  known,
  list,
  listOf,
  malformed,
  map,
  number,
  numberOrNull,
  numberOrText,
  oneOf,
  orElse,
  phrase,
  positive,
  record,
  text,
  textWithin,
  uint,
  whole,
  type Check,
  type Checks,
} from './fields.js';
import {
  FIRST_WEBHOOK_REF,
  MAX_CLOSE_REASON_BYTES,
  MAX_CONCURRENCY,
  MAX_HEAD_BYTES,
  METRIC_KINDS,
  ROUTE_INPUTS,
  ROUTE_KINDS,
  WEBHOOK_OUTCOMES,
  type Call,
  type CallFrame,
  type LoadedInfo,
  type Message,
  type Metric,
  type Route,
  type Signature,
  type StartSpec,
  type TensorSpec,
} from './messages.js';

// Records are an extension of msgpackr; other languages read plain msgpack.
const packr = new Packr({ useRecords: false, encodeUndefinedAsNil: true });
const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' });

/** Encodes a message's head; the caller owns the bytes. @throws SERVE_PROTOCOL if the peer would reject it */
export function encodeHead(message: Message): Buffer {
  const head = packr.pack(toFields(message));
  if (head.length > MAX_HEAD_BYTES)
    throw malformed(`a head of ${head.length} bytes; at most ${MAX_HEAD_BYTES} are allowed`);
  return head;
}

/**
 * Decodes a frame's head, the bytes of `source` from `start` to `end`.
 * @throws SERVE_PROTOCOL on anything that is not a message of this protocol
 */
export function decodeHead(source: Buffer, start = 0, end = source.length): Message {
  let fields: unknown;
  try {
    fields = unpackr.unpack(source, { start, end });
  } catch (cause) {
    throw malformed('head is not msgpack', cause);
  }
  const type: unknown = Array.isArray(fields) ? fields[0] : null;
  if (typeof type !== 'string') throw malformed('head is not an array that starts with a message type');
  if (type === 'call') return readCalls(fields as unknown[]);
  const layout = LAYOUTS.get(type);
  if (layout === undefined) throw malformed(`unknown message type ${JSON.stringify(type.slice(0, 40))}`);
  return readFields(layout, fields as unknown[], 1, { type }) as unknown as Message;
}

/** The fields of a record in the order of its array, each with its check. */
type Layout = readonly (readonly [name: string, check: Check<unknown>])[];

const METRIC: Layout = Object.entries({
  kind: known(METRIC_KINDS, 'gauge'),
  name: text,
  value: numberOrText,
  unit: text,
  dimensions: text,
  callIds: listOf(uint),
} satisfies Checks<Metric>);

const ISSUE: Layout = Object.entries({
  path: listOf(numberOrText),
  message: text,
} satisfies Checks<Issue>);

const TENSORS = listOf(
  record<TensorSpec>({ name: text, datatype: text, shape: orElse(listOf(whole(-1)), undefined) }),
);

const ROUTE = record<Route>({
  path: text,
  kind: orElse(oneOf(ROUTE_KINDS), 'handler'),
  input: orElse(oneOf(ROUTE_INPUTS), 'any'),
  webhook: orElse(text, ''),
  maxBatch: orElse(positive, 1),
  attempts: orElse(positive, 1),
});

const LOADED = record<LoadedInfo>({
  // A bare path stands for a handler that takes any body, one call at a time.
  routes: listOf((route, name) => ROUTE(typeof route === 'string' ? { path: route } : route, name)),
  modelOptions: (options, name) => map(options ?? {}, name),
  example: (example, name) => text(example ?? '', name),
  shutdown: orElse(flag, undefined),
  signature: orElse(record<Signature>({ inputs: TENSORS, outputs: TENSORS }), undefined),
  platform: orElse(text, undefined),
  api: orElse(text, undefined),
  concurrency: orElse(whole(1, MAX_CONCURRENCY), undefined),
});

const webhookRef = whole(FIRST_WEBHOOK_REF);
const status = whole(200, 599);

/** Every message but `call`. Fields with the same value in nearly every message stand last and may be left out. */
const MESSAGES: { readonly [T in Exclude<Message['type'], 'call'>]: Checks<Extract<Message, { type: T }>> } =
  {
    start: { spec: map as Check<unknown> as Check<StartSpec> },
    body: { id: uint },
    cancel: { id: uint, reason: text },
    credit: { id: uint, bytes: uint },
    ping: { ref: uint },
    pong: { ref: uint },
    retiring: { reason: text },
    stop: { graceMs: number },
    hello: { protocol: uint, runtime: text },
    loaded: { info: LOADED },
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
    head: { id: uint, status, contentType: text, headers: text, phrase: orElse(phrase, '') },
    progress: { id: uint, fraction, text },
    chunk: { id: uint },
    end: { id: uint, runMs: number },
    data: { id: uint, text: flag, last: flag },
    waiting: { id: uint, received: uint },
    close: { id: uint, code: closeCode, reason: textWithin(MAX_CLOSE_REASON_BYTES) },
    error: {
      id: uint,
      code: text,
      message: text,
      detail: text,
      runMs: number,
      status: orElse(errorStatus, 0),
      kind: orElse(known(ERROR_KINDS, ''), ''),
      issues: orElse(listOf(arrayOf(ISSUE)), undefined),
    },
    log: { level: text, message: text, fields: text, requestId: text },
    metrics: { metrics: listOf(arrayOf(METRIC)) },
    webhook: {
      ref: webhookRef,
      url: text,
      contentType: text,
      requestId: text,
      timeoutMs: number,
      retries: uint,
      wait: flag,
      bodyBytes: uint,
    },
    webhookDone: { ref: webhookRef, outcome: oneOf(WEBHOOK_OUTCOMES) },
    fatal: { code: text, message: text, detail: text, permanent: flag, transient: orElse(flag, false) },
  };

const LAYOUTS: ReadonlyMap<string, Layout> = new Map(
  Object.entries<object>(MESSAGES).map(([type, checks]) => [
    type,
    Object.entries<Check<unknown>>({ ...checks }),
  ]),
);

function readFields(layout: Layout, fields: unknown[], from: number, into: Record<string, unknown>): object {
  for (let i = 0; i < layout.length; i += 1) {
    const [name, check] = layout[i] as Layout[number];
    const value = check(fields[from + i], name);
    if (value !== undefined) into[name] = value;
  }
  return into;
}

/** A record that lies in a message as an array. */
function arrayOf(layout: Layout): Check<never> {
  return (value, name) => readFields(layout, list(value, name), 0, {}) as never;
}

function toFields(message: Message): unknown[] {
  switch (message.type) {
    case 'call': {
      const calls = message.calls.map((call, i) => callFields(call, message.inlineBytes[i] ?? 0));
      return ['call', calls, message.batch, message.last];
    }
    case 'loaded':
      return ['loaded', { ...message.info, routes: message.info.routes.map(routeField) }];
    case 'metrics':
      return ['metrics', message.metrics.map((metric) => fieldsOf(METRIC, metric, []))];
    case 'error':
      return errorFields(message);
    default: {
      const fields = fieldsOf(LAYOUTS.get(message.type) as Layout, message, [message.type]);
      if (isLastUsual(message)) fields.pop();
      return fields;
    }
  }
}

function fieldsOf(layout: Layout, source: object, into: unknown[]): unknown[] {
  for (const [name] of layout) into.push((source as Record<string, unknown>)[name]);
  return into;
}

/** Whether the last field is left out. */
function isLastUsual(message: Message): boolean {
  if (message.type === 'result' || message.type === 'head') return message.phrase === '';
  return message.type === 'fatal' && !message.transient;
}

function errorFields(message: Extract<Message, { type: 'error' }>): unknown[] {
  const fields = fieldsOf(LAYOUTS.get('error') as Layout, message, ['error']);
  const issues = (message.issues ?? []).map((issue) => fieldsOf(ISSUE, issue, []));
  if (issues.length > 0) return [...fields.slice(0, -1), issues];
  const isUsual = message.status === 0 && message.kind === '';
  return fields.slice(0, isUsual ? -3 : -1);
}

function routeField(route: Route): unknown {
  const { attempts, ...others } = route;
  const { path, kind, input, webhook, maxBatch } = others;
  if (attempts > 1) return route;
  const isPlain = kind === 'handler' && input === 'any' && webhook === '' && maxBatch === 1;
  return isPlain ? path : others;
}

/** The method of nearly every call, which is left out of its head. */
const USUAL_METHOD = 'POST';

/** The format of nearly every answer, by the value and the client's Accept header. */
const USUAL_ANSWER = 'auto';

function callFields(call: Call, inlineBytes: number): unknown[] {
  const { method, params, asciiJson, answer, dialectParams, job } = call;
  const isOfDialect = answer !== USUAL_ANSWER || dialectParams !== '';
  const fields: unknown[] = [
    call.id,
    call.bodyBytes,
    inlineBytes,
    call.requestId,
    call.route,
    call.path,
    call.query,
    call.format,
    call.contentType,
    call.accept,
    call.deadlineMs,
    call.headers,
  ];
  if (job !== undefined) fields.push(method, params, asciiJson, answer, dialectParams, job.id, job.attempt);
  else if (isOfDialect) fields.push(method, params, asciiJson, answer, dialectParams);
  else if (method !== USUAL_METHOD || params !== '' || asciiJson) fields.push(method, params, asciiJson);
  return fields;
}

function readCalls(frame: unknown[]): CallFrame {
  const items = list(frame[1], 'calls').map((item) => list(item, 'a call'));
  const last = flag(frame[3], 'last');
  if (items.length === 0 && !last) throw malformed('a call frame has no calls and does not end a batch');
  const inlineBytes = items.map((fields) => uint(fields[2], 'call.inlineBytes'));
  return { type: 'call', calls: items.map(readCall), inlineBytes, batch: uint(frame[2], 'batch'), last };
}

function readCall(f: unknown[]): Call {
  const call = {
    id: uint(f[0], 'call.id'),
    bodyBytes: uint(f[1], 'call.bodyBytes'),
    requestId: text(f[3], 'call.requestId'),
    route: text(f[4], 'call.route'),
    path: text(f[5], 'call.path'),
    query: text(f[6], 'call.query'),
    format: text(f[7], 'call.format'),
    contentType: text(f[8], 'call.contentType'),
    accept: text(f[9], 'call.accept'),
    deadlineMs: numberOrNull(f[10], 'call.deadlineMs'),
    headers: text(f[11], 'call.headers'),
    method: text(f[12] ?? USUAL_METHOD, 'call.method'),
    params: text(f[13] ?? '', 'call.params'),
    asciiJson: flag(f[14] ?? false, 'call.asciiJson'),
    answer: text(f[15] ?? USUAL_ANSWER, 'call.answer'),
    dialectParams: text(f[16] ?? '', 'call.dialectParams'),
  };
  if (f.length <= 17) return call;
  return { ...call, job: { id: text(f[17], 'call.job.id'), attempt: positive(f[18], 'call.job.attempt') } };
}
