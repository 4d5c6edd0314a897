/** Compares the scanner with JSON.parse: the same verdict on any bytes, the same values for the wanted fields. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  readString,
  scanSlices,
  scanTopLevelFields,
  type ScannedBody,
} from '../../../../supervisor/http/json/top-level-fields.js';
import { anyText } from '../../../helpers/any-text.js';

const WANTED = ['apiKey', 'callID', 'model_name', '', '__proto__', '"\\/'];

/** Parses a body as the worker does, without one byte order mark. */
function parse(body: Buffer): { value: unknown } | null {
  const text = body.toString();
  try {
    return { value: JSON.parse(text.startsWith('\ufeff') ? text.slice(1) : text) as unknown };
  } catch {
    return null;
  }
}

function fieldsOf(body: Buffer, wanted = WANTED): Record<string, unknown> {
  const scanned = scanTopLevelFields(body, wanted);
  assert.equal(scanned.is, 'object');
  const entries = [...scanned.fields].map(([name, json]) => [name, JSON.parse(json.toString()) as unknown]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}

function malformedAt(body: Buffer, expected: number): void {
  const { is, at } = scanTopLevelFields(body, WANTED);
  assert.deepEqual({ is, at }, { is: 'malformed', at: expected });
}

/** Scans in steps of this many bytes. */
function scanInSteps(body: Buffer, stepBytes: number): { scanned: ScannedBody; steps: number } {
  const scan = scanSlices(body, WANTED, stepBytes);
  for (let steps = 1; ; steps += 1) {
    const { done, value } = scan.next();
    if (done === true) return { scanned: value, steps };
  }
}

/** Asserts that verdict and wanted fields are those of JSON.parse, also in steps of any size. */
function agrees(body: Buffer): void {
  const parsed = parse(body);
  const scanned = scanTopLevelFields(body, WANTED);
  for (const stepBytes of [1, 2, 3, 7, 20])
    assert.deepEqual(scanInSteps(body, stepBytes).scanned, scanned, `in steps of ${stepBytes}`);
  if (parsed === null) {
    assert.equal(scanned.is, 'malformed');
    assert.ok(scanned.at >= 0 && scanned.at <= body.length);
    return;
  }
  const { value } = parsed;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    assert.equal(scanned.is, 'other JSON');
    return;
  }
  const there = Object.entries(value).filter(([name]) => WANTED.includes(name));
  assert.deepEqual(fieldsOf(body), Object.fromEntries(there));
}

const space = fc.string({ unit: fc.constantFrom(' ', '\n', '\r', '\t'), maxLength: 3 });
const SHORT: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  '\b': 'b',
  '\f': 'f',
  '\n': 'n',
  '\r': 'r',
  '\t': 't',
};

/** Writes `text` as a JSON string, each character in one of its possible forms. */
function writtenString(text: string): fc.Arbitrary<string> {
  const units = Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
  const ways = units.map((unit) => {
    const character = String.fromCharCode(unit);
    const hex = unit.toString(16).padStart(4, '0');
    const escaped = [`\\u${hex}`, `\\u${hex.toUpperCase()}`];
    const short = SHORT[character];
    if (short !== undefined) escaped.push(`\\${short}`);
    // Half of a surrogate pair is not UTF-8.
    const isPlain =
      unit >= 0x20 && character !== '"' && character !== '\\' && !/[\ud800-\udfff]/.test(character);
    return fc.constantFrom(...(isPlain ? [character, character, character, ...escaped] : escaped));
  });
  return fc.tuple(...ways).map((written) => `"${written.join('')}"`);
}

const someString = fc.oneof(fc.constantFrom(...WANTED), anyText(8));
const written = someString.chain(writtenString);
const number = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.constantFrom('0', '7', '10', '123456789012345678901'),
    fc.constantFrom('', '.0', '.25', '.000'),
    fc.constantFrom('', 'e1', 'E+02', 'e-3', 'e999'),
  )
  .map((parts) => parts.join(''));

const { json } = fc.letrec<{ json: string; array: string; object: string }>((tie) => {
  const inner = fc.tuple(space, tie('json'), space).map((parts) => parts.join(''));
  const member = fc
    .tuple(space, written, space, inner)
    .map(([a, key, b, value]) => `${a}${key}${b}:${value}`);
  const list = (item: fc.Arbitrary<string>, open: string, close: string): fc.Arbitrary<string> =>
    fc
      .tuple(space, fc.array(item, { maxLength: 5 }))
      .map(([blank, items]) => open + (items.length === 0 ? blank : items.join(',')) + close);
  return {
    json: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom('true', 'false', 'null'),
      number,
      written,
      tie('array'),
      tie('object'),
    ),
    array: list(inner, '[', ']'),
    object: list(member, '{', '}'),
  };
});

const member = fc
  .tuple(space, written, space, json, space)
  .map(([a, key, b, value, c]) => `${a}${key}${b}:${value}${c}`);
const object = fc
  .tuple(fc.constantFrom('', '', '\ufeff'), space, fc.array(member, { maxLength: 8 }), space)
  .map(([mark, before, members, after]) => Buffer.from(`${mark}${before}{${members.join(',')}}${after}`));

/** Bytes that have a meaning in JSON, and a few that have none. */
const telling = fc.oneof(
  fc.constantFrom(...Buffer.from('{}[]:,"\\/u0123456789eE+-.truefalsnbFA \n\t\r\b\0')),
  fc.constantFrom(0x1f, 0x7f, 0xc2, 0xa0, 0xef, 0xbb, 0xbf, 0xff),
  fc.nat(255),
);

describe('scanTopLevelFields', () => {
  test('finds the same wanted fields as JSON.parse in any object, however it is written', () => {
    fc.assert(fc.property(object, agrees), { numRuns: 500 });
  });

  for (const [what, long] of [
    ['a string', `"${'x'.repeat(10_000)}"`],
    ['a string of escapes', `"${'\\u0041'.repeat(2000)}"`],
    ['a number', '1'.repeat(10_000)],
    ['decimals', `0.${'1'.repeat(10_000)}`],
    ['an exponent', `1e+${'1'.repeat(10_000)}`],
    ['space', `${' '.repeat(10_000)}1`],
    ['brackets', `${'['.repeat(5000)}${']'.repeat(5000)}`],
  ] as const) {
    test(`reads ${what} of 10,000 bytes in steps of no more than 100`, () => {
      const { scanned, steps } = scanInSteps(Buffer.from(long), 100);
      assert.equal(scanned.is, 'other JSON');
      assert.ok(steps >= 90, `${steps} steps`);
      const field = Buffer.from(`{"apiKey":${long},"callID":1}`);
      assert.deepEqual(scanInSteps(field, 100).scanned, scanTopLevelFields(field, WANTED));
    });
  }

  test('gives the same verdict as JSON.parse on any JSON text', () => {
    fc.assert(
      fc.property(space, json, space, (...parts) => agrees(Buffer.from(parts.join('')))),
      { numRuns: 500 },
    );
  });

  test('agrees with JSON.parse when bytes are changed, inserted, removed or cut off, whether UTF-8 or not', () => {
    const edit = fc.tuple(fc.constantFrom('change', 'put in', 'leave out', 'cut off'), fc.nat(), telling);
    fc.assert(
      fc.property(object, fc.array(edit, { minLength: 1, maxLength: 3 }), (whole, edits) => {
        const bytes = [...whole];
        for (const [what, where, byte] of edits) {
          const at = where % (bytes.length + 1);
          if (what === 'change') bytes.splice(at, 1, byte);
          else if (what === 'put in') bytes.splice(at, 0, byte);
          else bytes.splice(at, what === 'leave out' ? 1 : bytes.length);
        }
        agrees(Buffer.from(bytes));
      }),
      { numRuns: 2000 },
    );
  });

  test('agrees with JSON.parse on any short sequence of tokens', () => {
    const tokens = [
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '"apiKey"',
      '"b"',
      '1',
      '-',
      '-0',
      '01',
      '1.',
      '.5',
      '1e',
      '1e+',
    ];
    const more = ['true', 'tru', 'nulll', '"\\u00g0"', '"\\x"', '"', '\\', ' ', '\ufeff', '\u00a0', '"\n"'];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...tokens, ...more), { maxLength: 9 }), (row) =>
        agrees(Buffer.from(row.join(''))),
      ),
      { numRuns: 5000 },
    );
  });

  test('reads a part of a larger buffer like a buffer of its own', () => {
    const whole = Buffer.from('"}{"apiKey":"k","x":[1]}{"');
    assert.deepEqual(fieldsOf(whole.subarray(2, -2)), { apiKey: 'k' });
    malformedAt(whole.subarray(2, 14), 12);
  });

  test('returns the last of a repeated field, and ignores nested fields of the same name', () => {
    const body = Buffer.from(
      '{"apiKey":1,"a":{"apiKey":2},"\\u0061piKey":[{"apiKey":3}],"b":[{"apiKey":4}]}',
    );
    assert.deepEqual(fieldsOf(body), { apiKey: [{ apiKey: 3 }] });
  });

  test('reads nesting of any depth', () => {
    const depth = 200_000;
    const deep = `${'[{"a":'.repeat(depth)}1${'}]'.repeat(depth)}`;
    assert.equal(scanTopLevelFields(Buffer.from(deep), []).is, 'other JSON');
    const scanned = scanTopLevelFields(Buffer.from(`{"a":${deep},"apiKey":true}`), WANTED);
    assert.ok(scanned.is === 'object' && scanned.fields.has('apiKey'));
    malformedAt(Buffer.from('['.repeat(depth)), depth);
    malformedAt(Buffer.from(`${'['.repeat(depth)}}`), depth);
  });

  const MALFORMED: readonly (readonly [text: string, at: number])[] = [
    ['', 0],
    [' \n', 2],
    ['{', 1],
    ['{"a', 3],
    ['{"a"', 4],
    ['{"a":', 5],
    ['{"a":1', 6],
    ['{"a" 1}', 5],
    ['{"a":1,}', 7],
    ['{a:1}', 1],
    ['{"a":tru}', 8],
    ['{"a":01}', 6],
    ['{"a":-}', 6],
    ['{"a":"\\q"}', 7],
    ['{"a":"\\u12x4"}', 10],
    ['{"a":"\u0001"}', 6],
    ['{"a":[1}', 7],
    ['{} {}', 3],
    ['\ufeff\ufeff{}', 3],
  ];
  for (const [text, at] of MALFORMED) {
    test(`finds the error in ${JSON.stringify(text)} at byte ${at}`, () => {
      malformedAt(Buffer.from(text), at);
      agrees(Buffer.from(text));
    });
  }

  test('accepts only ASCII names', () => {
    assert.throws(() => scanTopLevelFields(Buffer.from('{}'), ['clé']), /wanted names are ASCII/);
  });
});

describe('a scanned field', () => {
  function read(body: string, maxBytes: number): string | null {
    return readString(scanTopLevelFields(Buffer.from(body), ['a']).fields.get('a') as Buffer, maxBytes);
  }

  test('is a string up to the given bytes, decoded as JSON.parse does', () => {
    fc.assert(
      fc.property(written, (text) => {
        const body = `{"a" : ${text} }`;
        const bytes = Buffer.byteLength(text) - 2;
        assert.equal(read(body, bytes), JSON.parse(text));
        assert.equal(read(body, bytes - 1), null);
      }),
    );
  });

  test('is not a string if it is another value', () => {
    for (const text of ['1', 'null', 'true', '["b"]', '{"b":"c"}'])
      assert.equal(read(`{"a":${text}}`, 100), null, text);
  });
});
