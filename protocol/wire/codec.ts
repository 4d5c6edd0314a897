/**
 * Encodes a message as a frame head and decodes it: one msgpack array `[type, ...fields]`, fields in a fixed order.
 * Arrays instead of maps halve the cost of a call and its result, 7 us less of 14 (bench/codec.ts). The only file of
 * the wire that imports the msgpack library.
 */
import { Packr, Unpackr } from 'msgpackr';
import type { Issue } from '../errors.js';
import { callFields, readCalls } from './call-fields.js';
import { Fields, malformed } from './fields.js';
import { loadedField, readLoaded } from './loaded-fields.js';
import { MAX_HEAD_BYTES, type Message, type ReplyHead, type StartSpec } from './messages.js';
import { metricFields, readMetric } from './metric-fields.js';

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
  if (!Array.isArray(fields) || typeof fields[0] !== 'string') {
    throw malformed('head is not an array that starts with a message type');
  }
  return fromFields(fields[0], new Fields(fields));
}

function toFields(message: Message): unknown[] {
  switch (message.type) {
    case 'start':
      return ['start', message.spec];
    case 'call':
      return [
        'call',
        message.calls.map((call, i) => callFields(call, message.inlineBytes[i] ?? 0)),
        message.batch,
        message.last,
      ];
    case 'body':
      return ['body', message.id];
    case 'cancel':
      return ['cancel', message.id, message.reason];
    case 'credit':
      return ['credit', message.id, message.bytes];
    case 'ping':
    case 'pong':
      return [message.type, message.ref];
    case 'retiring':
      return ['retiring', message.reason];
    case 'stop':
      return ['stop', message.graceMs];
    case 'hello':
      return ['hello', message.protocol, message.runtime];
    case 'loaded':
      return ['loaded', loadedField(message.info)];
    case 'warmUp':
      return ['warmUp', message.advice];
    case 'ready':
      return ['ready', message.initMs];
    case 'result':
      return withPhrase(message, [
        'result',
        message.id,
        message.status,
        message.contentType,
        message.headers,
        message.bodyBytes,
        message.runMs,
      ]);
    case 'head':
      return withPhrase(message, ['head', message.id, message.status, message.contentType, message.headers]);
    case 'progress':
      return ['progress', message.id, message.fraction, message.text];
    case 'chunk':
      return ['chunk', message.id];
    case 'end':
      return ['end', message.id, message.runMs];
    case 'data':
      return ['data', message.id, message.text, message.last];
    case 'waiting':
      return ['waiting', message.id, message.received];
    case 'close':
      return ['close', message.id, message.code, message.reason];
    case 'error':
      return errorFields(message);
    case 'log':
      return ['log', message.level, message.message, message.fields, message.requestId];
    case 'metrics':
      return ['metrics', message.metrics.map(metricFields)];
    case 'webhook':
      return [
        'webhook',
        message.ref,
        message.url,
        message.contentType,
        message.requestId,
        message.timeoutMs,
        message.retries,
        message.wait,
        message.bodyBytes,
      ];
    case 'webhookDone':
      return ['webhookDone', message.ref, message.outcome];
    case 'fatal':
      return fatalFields(message);
  }
}

/**
 * Fields with the same value in nearly every message stand last and are left out then, so most heads cost nothing for
 * them.
 */
function withPhrase({ phrase }: ReplyHead, fields: unknown[]): unknown[] {
  if (phrase !== '') fields.push(phrase);
  return fields;
}

function errorFields(message: Message & { type: 'error' }): unknown[] {
  const fields: unknown[] = [
    'error',
    message.id,
    message.code,
    message.message,
    message.detail,
    message.runMs,
  ];
  const { status, kind, issues = [] } = message;
  if (status !== 0 || kind !== '' || issues.length > 0) fields.push(status, kind);
  if (issues.length > 0) fields.push(issues.map(({ path, message: text }) => [path, text]));
  return fields;
}

function readIssue(fields: unknown): Issue {
  if (!Array.isArray(fields)) throw malformed('an issue is not an array');
  const f = new Fields(fields);
  const path = f.array(0).map((part, i) => {
    if (typeof part === 'string' || typeof part === 'number') return part;
    throw malformed(`part ${i} of the path of an issue is neither text nor a number`);
  });
  return { path, message: f.string(1) };
}

/** `transient` is left out when it is false. */
function fatalFields(message: Message & { type: 'fatal' }): unknown[] {
  const fields = ['fatal', message.code, message.message, message.detail, message.permanent];
  return message.transient ? [...fields, true] : fields;
}

function fromFields(type: string, f: Fields): Message {
  switch (type) {
    case 'start':
      return { type, spec: f.object(1) as unknown as StartSpec };
    case 'call':
      return readCalls(f);
    case 'body':
      return { type, id: f.uint(1) };
    case 'cancel':
      return { type, id: f.uint(1), reason: f.string(2) };
    case 'credit':
      return { type, id: f.uint(1), bytes: f.uint(2) };
    case 'ping':
    case 'pong':
      return { type, ref: f.uint(1) };
    case 'retiring':
      return { type, reason: f.string(1) };
    case 'stop':
      return { type, graceMs: f.number(1) };
    case 'hello':
      return { type, protocol: f.uint(1), runtime: f.string(2) };
    case 'loaded':
      return { type, info: readLoaded(f.object(1)) };
    case 'warmUp':
      return { type, advice: f.string(1) };
    case 'ready':
      return { type, initMs: f.number(1) };
    case 'result':
      return {
        type,
        id: f.uint(1),
        status: f.status(2),
        contentType: f.string(3),
        headers: f.string(4),
        bodyBytes: f.uint(5),
        runMs: f.number(6),
        phrase: f.phrase(7),
      };
    case 'head':
      return {
        type,
        id: f.uint(1),
        status: f.status(2),
        contentType: f.string(3),
        headers: f.string(4),
        phrase: f.phrase(5),
      };
    case 'progress':
      return { type, id: f.uint(1), fraction: f.fraction(2), text: f.string(3) };
    case 'chunk':
      return { type, id: f.uint(1) };
    case 'end':
      return { type, id: f.uint(1), runMs: f.number(2) };
    case 'data':
      return { type, id: f.uint(1), text: f.boolean(2), last: f.boolean(3) };
    case 'waiting':
      return { type, id: f.uint(1), received: f.uint(2) };
    case 'close':
      return { type, id: f.uint(1), code: f.closeCode(2), reason: f.closeReason(3) };
    case 'error':
      return {
        type,
        id: f.uint(1),
        code: f.string(2),
        message: f.string(3),
        detail: f.string(4),
        runMs: f.number(5),
        status: f.errorStatus(6),
        kind: f.errorKind(7),
        ...(f.length > 8 ? { issues: f.array(8).map(readIssue) } : {}),
      };
    case 'log':
      return { type, level: f.string(1), message: f.string(2), fields: f.string(3), requestId: f.string(4) };
    case 'metrics':
      return { type, metrics: f.array(1).map(readMetric) };
    case 'webhook':
      return {
        type,
        ref: f.webhookRef(1),
        url: f.string(2),
        contentType: f.string(3),
        requestId: f.string(4),
        timeoutMs: f.number(5),
        retries: f.uint(6),
        wait: f.boolean(7),
        bodyBytes: f.uint(8),
      };
    case 'webhookDone':
      return { type, ref: f.webhookRef(1), outcome: f.outcome(2) };
    case 'fatal':
      return {
        type,
        code: f.string(1),
        message: f.string(2),
        detail: f.string(3),
        permanent: f.boolean(4),
        transient: f.booleanOrFalse(5),
      };
    default:
      throw malformed(`unknown message type ${JSON.stringify(type.slice(0, 40))}`);
  }
}
