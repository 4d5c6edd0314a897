import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Packr } from 'msgpackr';
import { decodeHead, encodeHead } from '../../../protocol/wire/codec.js';
import { ERROR_KINDS, ServeError } from '../../../protocol/errors.js';
import { MAX_HEAD_BYTES } from '../../../protocol/wire/limits.js';
import { METRIC_KINDS, type Call, type Message } from '../../../protocol/wire/messages.js';
import { GOLDEN, SENDERS } from '../golden-frames.js';
import { readFrames } from '../streams.js';
import { anyText } from '../../helpers/any-text.js';

const packr = new Packr({ useRecords: false });
const pack = (value: unknown): Buffer => packr.pack(value);

for (const { name, message, body, frame } of GOLDEN) {
  test(`a golden frame encodes to its bytes and decodes to its message: ${name}`, () => {
    const head = encodeHead(message);
    const prefix = Buffer.alloc(8);
    prefix.writeUInt32LE(head.length, 0);
    prefix.writeUInt32LE(body.length, 4);
    assert.equal(Buffer.concat([prefix, head, body]).toString('hex'), frame.toString('hex'));
    assert.deepEqual(readFrames(frame), [{ message, body }]);
  });
}

test('every message has a golden frame from each side that may send it', () => {
  for (const [type, senders] of Object.entries(SENDERS)) {
    const covered = new Set(GOLDEN.filter(({ message }) => message.type === type).map(({ from }) => from));
    assert.deepEqual([...covered].sort(), [...senders].sort(), type);
  }
});

test('a call frame with three calls reads back with each body in its place', () => {
  const golden = GOLDEN.find(({ name }) => name.startsWith('three calls'));
  const { message } = decodeOnly(golden?.frame);
  assert.equal(message.type, 'call');
  assert.deepEqual(
    message.type === 'call' &&
      message.calls.map(({ id, requestId, bodyBytes }) => [id, requestId, bodyBytes]),
    [
      [9, 'a', 2],
      [10, 'b', 0],
      [11, 'ü', 3],
    ],
  );
  assert.deepEqual(message.type === 'call' && message.inlineBytes, [2, 0, 3]);
});

function decodeOnly(frame: Buffer | undefined): { message: Message; body: Buffer } {
  const [received] = readFrames(frame as Buffer);
  return received as { message: Message; body: Buffer };
}

/** A signature of one input with these fields. */
function signatureWith(fields: object): unknown {
  return { inputs: [{ name: 'x', datatype: 'FP32', shape: [1], ...fields }], outputs: [] };
}

/** Fields of each message as they lie in the head; each test breaks one of them. */
const HEADS: Record<Message['type'], unknown[]> = {
  start: [{ app: '/a.ts' }],
  call: [[callFields()], 1, true],
  body: [1],
  cancel: [1, 'gone'],
  credit: [1, 100],
  ping: [1],
  pong: [1],
  retiring: ['an unhandled rejection'],
  stop: [1000],
  hello: [2, 'node v20'],
  loaded: [
    {
      routes: [{ path: '/', kind: 'handler', input: 'any', webhook: '', maxBatch: 8 }],
      modelOptions: {},
      example: '',
      shutdown: true,
      signature: { inputs: [], outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 10] }] },
      platform: 'onnx_onnxv1',
      api: 'none',
      concurrency: 8,
    },
  ],
  warmUp: ['It runs zeros.'],
  ready: [12.5],
  result: [1, 200, 'application/json', '', 2, 1.5],
  head: [1, 200, 'text/plain', ''],
  progress: [1, 0.5, 'half'],
  chunk: [1],
  end: [1, 2.5],
  data: [1, true, false],
  waiting: [1, 2],
  close: [1, 4000, 'bye'],
  error: [1, 'SERVE_BAD_BODY', 'bad', '', 0],
  log: ['info', 'text', '', ''],
  metrics: [[['time', 'a', 1.5, 'ms', '', [1]]]],
  webhook: [2 ** 32, 'https://example.com/hook', 'application/json', '', 10_000, 3, false, 2],
  webhookDone: [2 ** 32, 'taken'],
  fatal: ['SERVE_INIT_FAILED', 'no', '', false], // `transient` may be left out
};

function callFields(changes: Record<number, unknown> = {}): unknown[] {
  const fields: unknown[] = [1, 2, 2, 'req', '/', '/', '', 'auto', '', '', null, ''];
  for (const [i, value] of Object.entries(changes)) fields[Number(i)] = value;
  return fields;
}

for (const [type, fields] of Object.entries(HEADS)) {
  test(`decodeHead reads ${type} and refuses it with any one field missing or of another type`, () => {
    assert.equal(decodeHead(pack([type, ...fields])).type, type);
    for (let i = 0; i < fields.length; i += 1) {
      refuses([type, ...fields.slice(0, i)], `${type} without field ${i + 1}`);
      for (const wrong of wrongFor(fields[i])) {
        refuses([type, ...fields.slice(0, i), wrong, ...fields.slice(i + 1)], `${type}[${i + 1}]`);
      }
    }
  });
}

function wrongFor(right: unknown): unknown[] {
  const all: unknown[] = ['text', -1, Number.NaN, true, null, new Uint8Array(2), [{}], { a: 1 }];
  if (typeof right === 'number') return all.filter((value) => value !== -1);
  if (Array.isArray(right)) return all;
  if (typeof right === 'object') return all.filter((value) => !isPlainMap(value));
  return all.filter((value) => typeof value !== typeof right);
}

/** A binary value decodes to an object without being a map, so it must be refused too. */
function isPlainMap(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function refuses(head: unknown, what: string): void {
  assert.throws(() => decodeHead(pack(head)), isProtocolError, `${what}: ${JSON.stringify(head)}`);
}

function isProtocolError(error: unknown): boolean {
  assert.ok(error instanceof ServeError, String(error));
  assert.equal(error.code, 'SERVE_PROTOCOL');
  assert.match(error.detail, /^malformed message: /);
  return true;
}

for (const [what, fields] of [
  ['a negative id', ['body', -1]],
  ['a fractional id', ['body', 1.5]],
  ['an id beyond 2^53', ['body', 2 ** 60]],
  ['an id that is text', ['chunk', '2']],
  ['a close code that no program may send', ['close', 1, 1005, '']],
  ['a close code of the protocol itself', ['close', 1, 1001, '']],
  ['a close code above 4999', ['close', 1, 5000, '']],
  ['a close reason that fits into no close frame', ['close', 1, 1000, 'é'.repeat(62)]],
  ['a status below 200', ['head', 1, 101, '', '']],
  ['a status above 599', ['result', 1, 600, '', '', 0, 1]],
  ['a duration that is not finite', ['ready', Number.POSITIVE_INFINITY]],
  ['a duration that is NaN', ['end', 1, Number.NaN]],
  ['no calls, and no end of a batch', ['call', [], 1, false]],
  ['a batch without a number', ['call', [callFields()], null, true]],
  ['a call that is no array', ['call', [{}], 1, true]],
  ['a call without an id', ['call', [callFields({ 0: null })], 1, true]],
  ['a call with a negative body length', ['call', [callFields({ 1: -1 })], 1, true]],
  ['a call with a negative inline length', ['call', [callFields({ 2: -1 })], 1, true]],
  ['a call with a number for a request id', ['call', [callFields({ 3: 5 })], 1, true]],
  ['a call without a route', ['call', [callFields({ 4: null })], 1, true]],
  ['a call without a path', ['call', [callFields({ 5: null })], 1, true]],
  ['a call without a query', ['call', [callFields({ 6: null })], 1, true]],
  ['a call whose format is no text', ['call', [callFields({ 7: 1 })], 1, true]],
  ['a call without a content type', ['call', [callFields({ 8: null })], 1, true]],
  ['a call without an accept', ['call', [callFields({ 9: null })], 1, true]],
  ['a call with a text for a deadline', ['call', [callFields({ 10: 'soon' })], 1, true]],
  ['a call with headers as a map', ['call', [callFields({ 11: {} })], 1, true]],
  ['a call with a number for a method', ['call', [callFields({ 12: 1 })], 1, true]],
  ['a call with params as a map', ['call', [callFields({ 12: 'PUT', 13: {} })], 1, true]],
  ['a call with a text for a flag', ['call', [callFields({ 12: 'PUT', 13: '', 14: 'yes' })], 1, true]],
  ['a phrase that ends the status line', ['head', 1, 200, '', '', 'OK\r\nX-Evil: 1']],
  ['a phrase beyond Latin-1', ['result', 1, 200, '', '', 0, 1, 'Ā']],
  ['a phrase of 201 characters', ['result', 1, 200, '', '', 0, 1, 'x'.repeat(201)]],
  ['an error with the status of a success', ['error', 1, 'X', '', '', 1, 200, '']],
  ['an error with a number for its kind', ['error', 1, 'X', '', '', 1, 0, 5]],
  ['a second call that is broken', ['call', [callFields(), callFields({ 0: 'x' })], 1, true]],
  ['loaded without routes', ['loaded', { modelOptions: {} }]],
  ['loaded with a route that is no text', ['loaded', { routes: [1], modelOptions: {} }]],
  ['loaded with a route without a path', ['loaded', { routes: [{ kind: 'handler' }] }]],
  ['loaded with a route of no kind', ['loaded', { routes: [{ path: '/', kind: 'x' }] }]],
  ['loaded with a route of no input', ['loaded', { routes: [{ path: '/', input: 'x' }] }]],
  ['a route of which no call may begin', ['loaded', { routes: [{ path: '/', maxBatch: 0 }] }]],
  ['a route of which half a call may begin', ['loaded', { routes: [{ path: '/', maxBatch: 0.5 }] }]],
  ['loaded with options that are a list', ['loaded', { routes: [], modelOptions: [1] }]],
  ['loaded with an example that is no text', ['loaded', { routes: [], modelOptions: {}, example: 5 }]],
  ['loaded with a shutdown that is neither', ['loaded', { routes: [], shutdown: 1 }]],
  ['loaded with a platform that is no text', ['loaded', { routes: [], platform: 1 }]],
  ['loaded with a signature without outputs', ['loaded', { routes: [], signature: { inputs: [] } }]],
  [
    'a signature of which a tensor has no name',
    ['loaded', { routes: [], signature: signatureWith({ name: 5 }) }],
  ],
  ['a signature with half a size', ['loaded', { routes: [], signature: signatureWith({ shape: [0.5] }) }]],
  ['a signature with a size below -1', ['loaded', { routes: [], signature: signatureWith({ shape: [-2] }) }]],
  ['a webhook numbered like a call', ['webhook', 1, 'http://a/', '', '', 1, 0, false, 0]],
  ['the end of a webhook numbered like a call', ['webhookDone', 1, 'taken']],
  ['an outcome of a webhook that there is not', ['webhookDone', 2 ** 32, 'lost']],
  ['an unknown type', ['shrug', 1]],
  ['a type named like a method of objects', ['constructor']],
  ['no array', { type: 'body', id: 1 }],
  ['an empty array', []],
  ['a type that is no text', [5, 1]],
] as const) {
  test(`decodeHead refuses ${what}`, () => refuses(fields, what));
}

for (const [what, bytes] of [
  ['an empty head', ''],
  ['a cut array', '93a463616e'],
  ['bytes after the array', '92a4626f64790101'],
  ['the byte that msgpack never uses', '92a4626f6479c1'],
  ['a length beyond the head', 'ddffffffff'],
  ['an unknown extension', 'd67f00000000'],
] as const) {
  test(`decodeHead refuses ${what}`, () => {
    assert.throws(() => decodeHead(Buffer.from(bytes, 'hex')), isProtocolError);
  });
}

test('decodeHead uses the default for a field that is left out', () => {
  const message = decodeHead(pack(['call', [callFields()], 3, false]));
  assert.ok(message.type === 'call');
  const [{ method, params, asciiJson, answer, dialectParams }] = message.calls as [Call];
  assert.deepEqual([method, params, asciiJson, answer, dialectParams], ['POST', '', false, 'auto', '']);
  assert.deepEqual([message.batch, message.last], [3, false]);
  assert.deepEqual(decodeHead(pack(['loaded', { routes: ['/'] }])), {
    type: 'loaded',
    info: {
      routes: [{ path: '/', kind: 'handler', input: 'any', webhook: '', maxBatch: 1, attempts: 1 }],
      modelOptions: {},
      example: '',
    },
  });
});

test('decodeHead takes the last frame of a batch without calls', () => {
  const end = { type: 'call', calls: [], inlineBytes: [], batch: 5, last: true };
  assert.deepEqual(decodeHead(pack(['call', [], 5, true])), end);
});

test('decodeHead reads an unknown kind of error as empty', () => {
  const message = decodeHead(pack(['error', 1, 'SERVE_BAD_BODY', 'bad', '', 0, 418, 'mood']));
  assert.ok(message.type === 'error');
  assert.deepEqual([message.status, message.kind], [418, '']);
});

for (const [what, fields] of [
  ['is no array', 'a'],
  ['has no call ids', ['time', 'a', 1, 'ms', '']],
  ['has a value of no number and no text', ['time', 'a', null, 'ms', '', []]],
  ['has a call id below 0', ['time', 'a', 1, 'ms', '', [-1]]],
  ['has a kind that is no text', [1, 'a', 1, 'ms', '', []]],
] as const) {
  test(`decodeHead refuses a metric that ${what}`, () => refuses(['metrics', [fields]], what));
}

test('decodeHead takes a metric of a kind that this version does not know for a gauge', () => {
  const message = decodeHead(pack(['metrics', [['mood', 'a', 1, '', '', []]]]));
  assert.equal(message.type === 'metrics' && message.metrics[0]?.kind, 'gauge');
});

test('decodeHead ignores fields after the ones it knows, so that a later peer may add some', () => {
  assert.deepEqual(decodeHead(pack(['body', 7, 'new', { field: true }])), { type: 'body', id: 7 });
});

test('decodeHead takes whole numbers in any encoding of msgpack', () => {
  for (const seven of [
    '07',
    'cc07',
    'cd0007',
    'ce00000007',
    'cf0000000000000007',
    'd007',
    'd10007',
    'cb401c000000000000',
  ]) {
    const head = Buffer.from(`92a4626f6479${seven}`, 'hex');
    assert.deepEqual(decodeHead(head), { type: 'body', id: 7 }, seven);
  }
});

test('decodeHead turns any bytes into a message or SERVE_PROTOCOL, never into another error', () => {
  const golden = GOLDEN.map(({ message }) => encodeHead(message));
  const damaged = fc
    .tuple(fc.constantFrom(...golden), fc.nat(), fc.integer({ min: 0, max: 255 }), fc.nat())
    .map(([head, at, byte, end]) => {
      const copy = Buffer.from(head);
      copy[at % copy.length] = byte;
      return end % 3 === 0 ? copy.subarray(0, end % copy.length) : copy;
    });
  const random = fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes));
  fc.assert(
    fc.property(fc.oneof(random, damaged), (head) => {
      try {
        assert.equal(typeof decodeHead(head).type, 'string');
      } catch (error) {
        isProtocolError(error);
      }
    }),
    { numRuns: 3000 },
  );
});

const uint = fc.oneof(fc.nat(), fc.maxSafeNat());
const text = anyText(40);
const ms = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0); // -0 is 0 on the wire
const status = fc.integer({ min: 200, max: 599 });
const record = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(fields, { noNullPrototype: true });
const call = record({
  id: uint,
  bodyBytes: uint,
  requestId: text,
  route: text,
  path: text,
  query: text,
  format: text,
  contentType: text,
  accept: text,
  deadlineMs: fc.option(ms),
  headers: text,
  method: fc.constantFrom('POST', 'PUT', 'X-ANY'),
  params: fc.oneof(fc.constant(''), text),
  asciiJson: fc.boolean(),
  answer: fc.oneof(fc.constant('auto'), text),
  dialectParams: fc.oneof(fc.constant(''), text),
});
const metric = record({
  kind: fc.constantFrom(...METRIC_KINDS),
  name: text,
  value: fc.oneof(ms, text),
  unit: text,
  dimensions: text,
  callIds: fc.array(uint, { maxLength: 4 }),
});
const phrase = fc.constantFrom('', 'Prediction failed', 'Schön');
const anyMessage = fc.oneof(
  fc
    .tuple(fc.array(fc.tuple(call, uint), { maxLength: 5 }), uint, fc.boolean())
    .map(([pairs, batch, last]) => ({
      type: 'call',
      calls: pairs.map(([one]) => one),
      inlineBytes: pairs.map(([, bytes]) => bytes),
      batch,
      last: last || pairs.length === 0,
    })),
  record({
    type: fc.constant('result'),
    id: uint,
    status,
    contentType: text,
    headers: text,
    bodyBytes: uint,
    runMs: ms,
    phrase,
  }),
  record({ type: fc.constant('head'), id: uint, status, contentType: text, headers: text, phrase }),
  record({
    type: fc.constant('error'),
    id: uint,
    code: text,
    message: text,
    detail: text,
    runMs: ms,
    status: fc.constantFrom(0, 400, 418, 599),
    kind: fc.constantFrom(...ERROR_KINDS),
  }),
  record({ type: fc.constant('metrics'), metrics: fc.array(metric, { maxLength: 4 }) }),
  record({ type: fc.constant('log'), level: text, message: text, fields: text, requestId: text }),
  record({
    type: fc.constant('webhook'),
    ref: fc.nat().map((n) => 2 ** 32 + n),
    url: text,
    contentType: text,
    requestId: text,
    timeoutMs: ms,
    retries: uint,
    wait: fc.boolean(),
    bodyBytes: uint,
  }),
  record({ type: fc.constant('cancel'), id: uint, reason: text }),
  record({ type: fc.constant('credit'), id: uint, bytes: uint }),
  record({ type: fc.constant('data'), id: uint, text: fc.boolean(), last: fc.boolean() }),
  record({ type: fc.constant('waiting'), id: uint, received: uint }),
  record({
    type: fc.constant('close'),
    id: uint,
    code: fc.integer({ min: 3000, max: 4999 }),
    reason: fc.string({ maxLength: 30 }),
  }),
);

test('any message survives encoding and decoding, odd texts and large numbers included', () => {
  fc.assert(
    fc.property(anyMessage, (message) => {
      assert.deepEqual(decodeHead(encodeHead(message as unknown as Message)), message);
    }),
    { numRuns: 500 },
  );
});

test('encodeHead gives memory of its own: a later message does not change an earlier one', () => {
  const first = encodeHead({ type: 'cancel', id: 1, reason: 'first' });
  const before = first.toString('hex');
  for (let id = 0; id < 100; id += 1) encodeHead({ type: 'cancel', id, reason: 'x'.repeat(300) });
  assert.equal(first.toString('hex'), before);
});

test('encodeHead refuses a head that the peer would refuse', () => {
  const log = (message: string): Message => ({
    type: 'log',
    level: 'info',
    message,
    fields: '',
    requestId: '',
  });
  assert.ok(encodeHead(log('x'.repeat(MAX_HEAD_BYTES - 100))).length <= MAX_HEAD_BYTES);
  assert.throws(() => encodeHead(log('x'.repeat(MAX_HEAD_BYTES))), isProtocolError);
});
