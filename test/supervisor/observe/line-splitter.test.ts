import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { printMark } from '../../../protocol/wire/print-mark.js';
import { LineSplitter } from '../../../supervisor/observe/line-splitter.js';

const MARK = 'f00dcafe12345678';
const A = printMark(MARK, 'call-a');
const B = printMark(MARK, 'call-b');
const NOBODY = printMark(MARK, '');

interface Text {
  readonly text: string;
  readonly id: string | null;
  readonly ended: boolean;
}

/** The output for the stream split at the given offsets. */
function split(stream: Buffer, cuts: readonly number[], mark = MARK): Text[] {
  const texts: Text[] = [];
  const splitter = new LineSplitter(mark, true, (text, { requestId }, ended) =>
    texts.push({ text: text.toString('latin1'), id: requestId || null, ended }),
  );
  let start = 0;
  for (const end of [...cuts, stream.length]) {
    splitter.push(Buffer.from(stream.subarray(start, end)));
    start = end;
  }
  splitter.end();
  return texts;
}

/** Joins neighbouring texts of one call, because the splits of the stream only decide where texts are split. */
function byCall(texts: readonly Text[]): (readonly [id: string | null, text: string])[] {
  const joined: [string | null, string][] = [];
  for (const { id, text } of texts) {
    const last = joined.at(-1);
    if (last !== undefined && last[0] === id) last[1] += text;
    else joined.push([id, text]);
  }
  return joined;
}

/** Every text that is reported as ended has a line end, every other one has none. */
function assertEnds(texts: readonly Text[]): void {
  for (const { text, ended } of texts) assert.equal(/[\r\n]$/.test(text), ended, JSON.stringify(text));
}

const STREAM = Buffer.from(
  `before\n${A}one\ntwo\r\n10%\r20%\r\n${B}part${A} and more\n\n${NOBODY}ün\u{1F34C}\n${A}last words`,
);
const EXPECTED = [
  [null, 'before\n'],
  ['call-a', 'one\ntwo\r\n10%\r20%\r\n'],
  ['call-b', 'part'],
  ['call-a', ' and more\n\n'],
  [null, Buffer.from('ün\u{1F34C}\n').toString('latin1')],
  ['call-a', 'last words'],
];

test('LineSplitter follows marks and line ends in one chunk', () => {
  const texts = split(STREAM, []);
  assert.deepEqual(byCall(texts), EXPECTED);
  assertEnds(texts);
});

test('LineSplitter follows marks and line ends byte by byte', () => {
  const everywhere = Array.from({ length: STREAM.length - 1 }, (_, i) => i + 1);
  const texts = split(STREAM, everywhere);
  assert.deepEqual(byCall(texts), EXPECTED);
  assertEnds(texts);
});

test('LineSplitter follows marks and line ends for any two splits, even inside a mark', () => {
  for (let first = 0; first <= STREAM.length; first += 1) {
    for (let second = first; second <= STREAM.length; second += 1) {
      assert.deepEqual(byCall(split(STREAM, [first, second])), EXPECTED, `cut at ${first} and ${second}`);
    }
  }
});

test('LineSplitter emits all output once, in order, for the right call', () => {
  const print = fc.record({
    id: fc.constantFrom('', 'call-a', 'call-b'),
    // Includes parts of marks: a print may contain half a mark.
    text: fc.array(fc.constantFrom('\n', '\r', 'x', '\u001b', 'banana', MARK, A.slice(0, 5), 'ü'), {
      maxLength: 6,
    }),
  });
  const prints = fc.array(print, { maxLength: 8 });
  fc.assert(
    fc.property(prints, fc.array(fc.nat(), { maxLength: 6 }), (list, places) => {
      const parts = list.map(({ id, text }) => ({ id: id === '' ? null : id, text: text.join('') }));
      const stream = Buffer.from(parts.map(({ id, text }) => printMark(MARK, id ?? '') + text).join(''));
      const cuts = places.map((place) => place % (stream.length + 1)).sort((a, b) => a - b);
      const whole = parts.filter(({ text }) => text !== '');
      const expected = byCall(
        whole.map(({ id, text }) => ({ id, text: Buffer.from(text).toString('latin1'), ended: true })),
      );
      assert.deepEqual(byCall(split(stream, cuts)), expected);
    }),
  );
});

test('without a mark LineSplitter finds none, and emits any bytes unchanged', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.nat(64), (bytes, cut) => {
      const stream = Buffer.concat([Buffer.from(A), bytes]);
      const texts = split(stream, [Math.min(cut, stream.length)], '');
      assert.equal(texts.map(({ text }) => text).join(''), stream.toString('latin1'));
      assert.ok(texts.every(({ id }) => id === null));
    }),
  );
});

test('a line without an end is emitted in parts of whole characters, so memory stays bounded', () => {
  const stream = Buffer.from('\u{1F34C}'.repeat(100_000)); // 400,000 bytes
  const parts: Buffer[] = [];
  let fed = 0;
  let held = 0;
  const splitter = new LineSplitter(MARK, true, (text, _origin, ended) => {
    parts.push(Buffer.from(text));
    held -= text.length;
    assert.equal(ended, false);
    assert.doesNotMatch(text.toString(), /\uFFFD/, 'no character is split');
  });
  for (; fed < stream.length; fed += 1000) {
    const chunk = Buffer.from(stream.subarray(fed, fed + 1000));
    held += chunk.length;
    splitter.push(chunk);
    assert.ok(held <= 128 * 1024, `${held} bytes are held back`);
  }
  splitter.end();
  assert.ok(Buffer.concat(parts).equals(stream));
});
