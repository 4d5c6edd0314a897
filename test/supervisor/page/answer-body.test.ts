/** Answers as they arrive. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AnswerBody, answerKind } from '../../../supervisor/page/try/answer-body.js';
import { serverTimes } from '../../../supervisor/page/try/send-call.js';

const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
const PNG = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13]);

function received(type: string, pieces: readonly Uint8Array<ArrayBuffer>[]): AnswerBody {
  const body = new AnswerBody(type);
  for (const piece of pieces) body.push(piece, 5);
  body.end(9);
  return body;
}

for (const [type, kind] of [
  ['application/json', 'json'],
  ['application/problem+json', 'json'],
  ['text/event-stream', 'events'],
  ['application/x-ndjson', 'lines'],
  ['text/html', 'text'],
  ['application/javascript', 'text'],
  ['image/png', 'picture'],
  ['image/svg+xml', 'vector'],
  ['audio/wav', 'audio'],
  ['application/pdf', 'bytes'],
  ['application/xhtml+xml', 'bytes'],
  ['', 'bytes'],
] as const)
  test(`an answer of type ${type === '' ? '(none)' : type} is shown as ${kind}`, () =>
    assert.equal(answerKind(type), kind));

test('events and lines are items as soon as they are complete, and the rest is one at the end', () => {
  const events = received('text/event-stream; charset=utf-8', [bytes('data: 1\n\ndata: '), bytes('2\n\n')]);
  assert.deepEqual(
    events.items.map(({ text }) => text),
    ['1', '2'],
  );
  const lines = received('application/x-ndjson', [bytes('{"a":1}\n{"a'), bytes('":2}\n\n3')]);
  assert.deepEqual(
    lines.items.map(({ number, text }) => [number, text]),
    [
      [1, '{"a":1}'],
      [2, '{"a":2}'],
      [3, '3'],
    ],
  );
});

test('of an endless stream the last items are kept', () => {
  const body = received('application/x-ndjson', [bytes('1\n'.repeat(2000))]);
  assert.deepEqual([body.itemCount, body.items.length, body.items.at(-1)?.number], [2000, 500, 2000]);
});

test('a line of 64 MB in small pieces is read in one pass, and only its beginning is an item', () => {
  const piece = bytes('x'.repeat(65_536));
  const body = received('application/x-ndjson', [...Array<typeof piece>(1000).fill(piece), bytes('\n1\n')]);
  assert.deepEqual(
    body.items.map(({ text }) => text.length),
    [2_000_000, 1],
  );
});

test('of large items fewer are kept', () => {
  const body = received('application/x-ndjson', Array(30).fill(bytes(`${'x'.repeat(999_999)}\n`)));
  assert.deepEqual([body.itemCount, body.items.length], [30, 20]);
});

test('a character that is cut in two is shown whole', () => {
  const whole = bytes('é');
  assert.equal(received('text/plain', [whole.slice(0, 1), whole.slice(1)]).text, 'é');
});

test('of a long text the beginning is shown, and all of it is kept', async () => {
  const body = received('text/plain', [bytes('x'.repeat(400_000)), bytes('y'.repeat(400_000))]);
  assert.deepEqual([body.text.length, body.isCut], [500_000, true]);
  assert.equal((await body.whole()?.text())?.length, 800_000);
});

test('a picture without a type is recognised by its bytes', () => {
  const body = received('application/octet-stream', [PNG]);
  assert.deepEqual([body.kind, body.type], ['picture', 'image/png']);
});

for (const [header, expected] of [
  ['', {}],
  ['queue;dur=1.20, run;dur=3.45', { queue: 1.2, run: 3.45 }],
  ['db;desc="a, b";dur=5, queue;dur=0, run;dur=2', { queue: 0, run: 2 }],
  ['run;dur=99, queue;dur=1, run;dur=2', { queue: 1, run: 2 }],
] as const)
  test(`Server-Timing: ${header}`, () => assert.deepEqual(serverTimes(header), expected));
