/**
 * Encodes a message as a frame head and decodes it: one msgpack array `[type, ...fields]`, fields in a fixed order.
 * Arrays instead of maps halve the cost of a call and its result, 7 us less of 14 (bench/codec.ts). The only file of
 * the wire that imports the msgpack library.
 */
import { Packr, Unpackr } from 'msgpackr';
import {
  flag,
  list,
  malformed,
  number,
  numberOrNull,
  phrase,
  positive,
  readRow,
  text,
  uint,
  writeRow,
  type Layout,
} from './fields.js';
import { MAX_HEAD_BYTES } from './limits.js';
import {
  ISSUE,
  MESSAGES,
  METRIC,
  THROWN,
  type Call,
  type CallFrame,
  type Message,
  type Route,
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
  if (type === 'result') return readResult(fields as unknown[]);
  const layout = LAYOUTS.get(type);
  if (layout === undefined) throw malformed(`unknown message type ${JSON.stringify(type.slice(0, 40))}`);
  return readRow(layout, fields as unknown[], 1, { type }) as unknown as Message;
}

const LAYOUTS: ReadonlyMap<string, Layout> = new Map(
  Object.entries(MESSAGES).map(([type, checks]) => [type, Object.entries(checks)]),
);

function toFields(message: Message): unknown[] {
  switch (message.type) {
    case 'call': {
      const calls = message.calls.map((call, i) => callFields(call, message.inlineBytes[i] ?? 0));
      return ['call', calls, message.batch, message.last];
    }
    case 'result':
      return resultFields(message);
    case 'loaded':
      return ['loaded', { ...message.info, routes: message.info.routes.map(routeField) }];
    case 'metrics':
      return ['metrics', message.metrics.map((metric) => writeRow(METRIC.layout, metric, []))];
    case 'error':
      return errorFields(message);
    default: {
      const fields = writeRow(LAYOUTS.get(message.type) as Layout, message, [message.type]);
      if (isLastUsual(message)) fields.pop();
      return fields;
    }
  }
}

/** Whether the last field is left out. */
function isLastUsual(message: Message): boolean {
  if (message.type === 'head') return message.phrase === '';
  if (message.type === 'hello') return message.values === undefined;
  return message.type === 'fatal' && !message.transient;
}

type Result = Extract<Message, { type: 'result' }>;

/** As the table of the messages has it; written out, as calls are, which takes half the time (bench/codec.ts). */
function resultFields({ id, status, contentType, headers, bodyBytes, runMs, phrase }: Result): unknown[] {
  const fields = ['result', id, status, contentType, headers, bodyBytes, runMs];
  if (phrase !== '') fields.push(phrase);
  return fields;
}

function readResult(f: unknown[]): Result {
  return {
    type: 'result',
    id: uint(f[1], 'id'),
    status: MESSAGES.result.status(f[2], 'status'),
    contentType: text(f[3], 'contentType'),
    headers: text(f[4], 'headers'),
    bodyBytes: uint(f[5], 'bodyBytes'),
    runMs: number(f[6], 'runMs'),
    phrase: f[7] === undefined ? '' : phrase(f[7], 'phrase'),
  };
}

function errorFields(message: Extract<Message, { type: 'error' }>): unknown[] {
  const fields = writeRow(LAYOUTS.get('error') as Layout, message, ['error']);
  const issues = (message.issues ?? []).map((issue) => writeRow(ISSUE.layout, issue, []));
  const { thrown } = message;
  if (thrown !== undefined) return [...fields.slice(0, -2), issues, writeRow(THROWN.layout, thrown, [])];
  if (issues.length > 0) return [...fields.slice(0, -2), issues];
  const isUsual = message.status === 0 && message.kind === '';
  return fields.slice(0, isUsual ? -4 : -2);
}

function routeField(route: Route): unknown {
  const { attempts, ...others } = route;
  const { path, kind, input, webhook, maxBatch, schemas } = others;
  if (attempts > 1) return route;
  const isPlain =
    schemas === undefined && kind === 'handler' && input === 'any' && webhook === '' && maxBatch === 1;
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
  const calls: Call[] = [];
  const inlineBytes: number[] = [];
  for (const item of list(frame[1], 'calls')) {
    const fields = list(item, 'a call');
    calls.push(readCall(fields));
    inlineBytes.push(uint(fields[2], 'call.inlineBytes'));
  }
  const last = flag(frame[3], 'last');
  if (calls.length === 0 && !last) throw malformed('a call frame has no calls and does not end a batch');
  return { type: 'call', calls, inlineBytes, batch: uint(frame[2], 'batch'), last };
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
