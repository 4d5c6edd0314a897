/** Holds docs/wire.md to the code: another language is written from that page. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Unpackr } from 'msgpackr';
import { BEGUN_NOTE_BYTES, decodeBegunNote } from '../../protocol/wire/begun-note.js';
import { ERRORS, ERROR_KINDS } from '../../protocol/errors.js';
import { FRAME_PREFIX_BYTES } from '../../protocol/wire/frame.js';
import * as limits from '../../protocol/wire/limits.js';
import * as messages from '../../protocol/wire/messages.js';
import { MAX_PHRASE_CHARS } from '../../protocol/wire/fields.js';
import { GOLDEN, SENDERS, type GoldenFrame } from './golden-frames.js';
import { nodeFormats } from '../worker/formats/node-formats.js';
import { readFrames } from './streams.js';

const ROOT = new URL('../../../', import.meta.url);
const PAGE = readFileSync(new URL('docs/wire.md', ROOT), 'utf8');

/** One line of a numbered list such as `1. `id` (uint): the call`. */
interface Field {
  readonly number: number;
  readonly name: string;
  readonly type: string;
  readonly meaning: string;
}

interface Section {
  readonly title: string;
  readonly tables: readonly (readonly string[][])[];
  readonly lists: readonly (readonly Field[])[];
}

/** Sections by heading of any level, with their tables and lists of fields; a table's first row is its header. */
const SECTIONS: readonly Section[] = PAGE.split(/^#{1,3} /m).map((text) => {
  const blocks = text.split(/\n\n+/);
  return {
    title: text.slice(0, text.indexOf('\n')),
    tables: blocks.filter((block) => block.startsWith('|')).map(rowsOf),
    lists: blocks.map(fieldsOf).filter((fields) => fields.length > 0),
  };
});

function fieldsOf(block: string): Field[] {
  return [...block.matchAll(/^(\d+)\. `([\w.]+)` \(([^)]+)\): (.+)$/gm)].map(
    ([, number, name = '', type = '', meaning = '']) => ({ number: Number(number), name, type, meaning }),
  );
}

/** Cells of each line but the rule. */
function rowsOf(block: string): string[][] {
  const lines = block
    .trim()
    .split('\n')
    .filter((_, i) => i !== 1);
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

function section(title: string): Section {
  const found = SECTIONS.filter((candidate) => candidate.title === title);
  assert.equal(found.length, 1, `one section "${title}"`);
  return found[0] as Section;
}

/** The rows of the table with this header's first cells in a section, by column. */
function table(title: string, ...header: string[]): Record<string, string>[] {
  const found = section(title).tables.find(([first]) => header.every((name, i) => first?.[i] === name));
  assert.ok(found !== undefined, `a table ${header.join(' | ')} in "${title}"`);
  const [names = [], ...rows] = found;
  return rows.map((cells) =>
    Object.fromEntries(cells.map((cell, i) => [names[i] ?? '', cell.replaceAll('`', '')])),
  );
}

/** The fields of a list in a section: the first list is the message's own. */
function fieldList(title: string, index = 0): readonly Field[] {
  const found = section(title).lists[index];
  assert.ok(found !== undefined, `a list of fields in "${title}"`);
  return found;
}

/** Returns the fields of a sample with `count` values: trailing fields may be left out. */
function presentFields(fields: readonly Field[], count: number): readonly Field[] {
  return fields.filter(({ meaning }, i) => i < count || !meaning.includes('; left out: '));
}

/** Headings of the messages: `cancel`, or `body` with its direction. */
const MESSAGE_TITLES = [...PAGE.matchAll(/^### (`(\w+)`(?: \((to|from) the worker\))?)$/gm)].map(
  ([, title = '', type = '', direction]) => ({ title, type, direction }),
);

test('the page has a section for each message of each side, and for nothing else', () => {
  const [, toWorker = '', fromWorker = ''] = PAGE.split(/^## Messages (?:to|from) the worker$/m);
  for (const [text, side] of [
    [toWorker, 'front'],
    [fromWorker.split(/^## /m)[0] as string, 'worker'],
  ] as const) {
    const documented = [...text.matchAll(/^### `(\w+)`/gm)].map(([, type]) => type).sort();
    const expected = Object.entries(SENDERS).filter(([, senders]) => senders.includes(side));
    assert.deepEqual(documented, expected.map(([type]) => type).sort());
  }
});

/** A golden head as it lies on the wire, without the type. */
function rawFields({ frame, body }: GoldenFrame): unknown[] {
  const head = frame.subarray(FRAME_PREFIX_BYTES, frame.length - body.length);
  return (new Unpackr({ useRecords: false, mapsAsObjects: true }).unpack(head) as unknown[]).slice(1);
}

/** Value by a dotted path. */
function at(value: unknown, path: string): unknown {
  return path.split('.').reduce((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], value);
}

function assertIs(type: string, value: unknown, what: string): void {
  const kinds: Record<string, (value: unknown) => boolean> = {
    uint: (v) => Number.isSafeInteger(v) && (v as number) >= 0,
    number: (v) => typeof v === 'number',
    text: (v) => typeof v === 'string',
    bool: (v) => typeof v === 'boolean',
    nil: (v) => v === null,
    map: (v) => typeof v === 'object' && v !== null && !Array.isArray(v),
    list: (v) => Array.isArray(v),
    call: (v) => Array.isArray(v),
    metric: (v) => Array.isArray(v),
    route: (v) => typeof (v as { path: unknown }).path === 'string',
  };
  const list = /^list of (\w+)$/.exec(type)?.[1];
  if (list !== undefined) {
    assert.ok(Array.isArray(value), `${what} is a list`);
    for (const item of value) assertIs(list, item, what);
    return;
  }
  const allowed = type.split(' or ');
  assert.ok(
    allowed.some((kind) => kinds[kind]?.(value) === true),
    `${what} is ${type}: ${JSON.stringify(value)}`,
  );
}

for (const { title, type, direction } of MESSAGE_TITLES) {
  const from = direction === undefined ? null : direction === 'to' ? 'front' : 'worker';
  const samples = GOLDEN.filter(
    ({ message, from: sender }) => message.type === type && (from ?? sender) === sender,
  );

  test(`${title} has the fields of the page, in their order and of their types`, () => {
    const fields = fieldList(title);
    assert.ok(samples.length > 0);
    for (const sample of samples) {
      const raw = rawFields(sample);
      const present = presentFields(fields, raw.length);
      assert.equal(raw.length, present.length, `${sample.name}: number of fields`);
      for (const [i, field] of present.entries()) {
        assert.equal(field.number, i + 1);
        assertIs(field.type, raw[i], `${type}.${field.name}`);
        const named = at(sample.message, field.name);
        // Calls and metrics are compared below; a route that is a path alone is short for a map, and what was thrown is a list
        // of its fields (codec.test.ts has both).
        if (!['calls', 'metrics', 'thrown'].includes(field.name) && type !== 'loaded')
          assert.deepEqual(raw[i], named, `${type}.${field.name} is field ${i + 1}`);
      }
    }
  });
}

test('a call has the fields of the page, in their order and of their types', () => {
  const fields = fieldList('`call`', 1);
  for (const { name, message, ...sample } of GOLDEN) {
    if (message.type !== 'call') continue;
    const [rawCalls] = rawFields({ name, message, ...sample }) as [unknown[][]];
    for (const [c, raw] of rawCalls.entries()) {
      const present = presentFields(fields, raw.length);
      assert.equal(raw.length, present.length, `${name}: number of fields of a call`);
      for (const [i, field] of present.entries()) {
        assert.equal(field.number, i);
        assertIs(field.type, raw[i], `call.${field.name}`);
        const named: unknown = { ...message.calls[c], inlineBytes: message.inlineBytes[c] };
        assert.deepEqual(raw[i], at(named, field.name), `call.${field.name} is field ${i}`);
      }
    }
  }
});

test('a metric has the fields of the page, in their order and of their types', () => {
  const fields = fieldList('`metrics`', 1);
  for (const sample of GOLDEN) {
    if (sample.message.type !== 'metrics') continue;
    const [rawMetrics] = rawFields(sample) as [unknown[][]];
    assert.equal(rawMetrics.length, sample.message.metrics.length);
    for (const [m, raw] of rawMetrics.entries()) {
      assert.equal(raw.length, fields.length, `${sample.name}: number of fields of a metric`);
      for (const [i, field] of fields.entries()) {
        assert.equal(field.number, i);
        assertIs(field.type, raw[i], `metric.${field.name}`);
        assert.deepEqual(raw[i], at(sample.message.metrics[m], field.name), field.name);
      }
    }
  }
});

for (const [title, field] of [
  ['`start`', 'spec'],
  ['`loaded`', 'info'],
] as const) {
  test(`the map in ${title} has the keys of the page, and no others`, () => {
    const keys = table(title, 'key');
    for (const { message } of GOLDEN.filter((golden) => `\`${golden.message.type}\`` === title)) {
      const map = at(message, field);
      const present = keys.filter(
        (key) => !key['meaning']?.includes('may be left out') || at(map, key['key'] as string) !== undefined,
      );
      for (const key of present)
        assertIs(key['type'] as string, at(map, key['key'] as string), `${title} ${key['key']}`);
      const documented = present.map((key) => key['key'] as string);
      assert.deepEqual(leaves(map, documented), [...documented].sort());
    }
  });
}

/** Returns the dotted paths of a map, without those below a field that is documented as a whole. */
function leaves(value: unknown, whole: readonly string[], path = ''): string[] {
  if (whole.includes(path) || typeof value !== 'object' || value === null) return [path];
  return Object.entries(value)
    .flatMap(([key, inner]) => leaves(inner, whole, path === '' ? key : `${path}.${key}`))
    .sort();
}

test('every limit on the page has the value of the code', () => {
  const { PROTOCOL_VERSION } = messages;
  const code = { PROTOCOL_VERSION, ...limits, FRAME_PREFIX_BYTES, MAX_PHRASE_CHARS };
  const documented = table('Frames', 'limit').map(({ limit, value }) => [limit, value]);
  assert.deepEqual(
    documented.sort(),
    Object.entries(code)
      .map(([name, value]) => [name, String(value)])
      .sort(),
  );
});

test('every body format of the workers is on the page', async () => {
  const documented = table('`call`', '`format`').map((row) => row['`format`']);
  assert.deepEqual(documented.sort(), ['auto', 'websocket', ...Object.keys(await nodeFormats())].sort());
});

test('every kind of metric of the code is on the page', () => {
  const documented = table('`metrics`', '`kind`').map((row) => row['`kind`']);
  assert.deepEqual(documented, [...messages.METRIC_KINDS]);
});

test('every kind of error of the code is on the page', () => {
  const documented = table('`error`', '`kind`').map((row) => row['`kind`']);
  assert.deepEqual(documented, [...ERROR_KINDS]);
});

test('every error code on the page exists', () => {
  const codes = [...PAGE.matchAll(/SERVE_[A-Z_]+/g)].map(([code]) => code);
  assert.ok(codes.length > 5);
  for (const code of codes) assert.ok(Object.hasOwn(ERRORS, code), code);
});

test('every file the page links to exists', () => {
  const links = [...PAGE.matchAll(/\]\((\.\.\/[^)#]+)\)/g)].map(([, link]) => link as string);
  assert.ok(links.length >= 2);
  for (const link of links) assert.ok(existsSync(new URL(link, new URL('docs/', ROOT))), link);
});

/** Returns the bytes of an annotated block: hex pairs up to the comment, which follows two or more spaces. */
function exampleBytes(type: string): Buffer {
  const block = new RegExp(`\`\`\`hex ${type}\n([^]*?)\`\`\``).exec(PAGE)?.[1];
  assert.ok(block !== undefined, type);
  const hex = block
    .split('\n')
    .map((line) => (/^\s*((?:[0-9a-f]{2} ?)+)(?: {1,}\S|$)/.exec(line)?.[1] ?? '').replaceAll(' ', ''));
  return Buffer.from(hex.join(''), 'hex');
}

test('the example of the page decodes to the message beside it', () => {
  const received = readFrames(exampleBytes('call')).map(({ message, body }) => [message, body.toString()]);
  const call = {
    id: 1,
    bodyBytes: 9,
    requestId: 'req-1',
    route: '/',
    path: '/',
    query: '',
    format: 'auto',
    contentType: 'application/json',
    accept: '*/*',
    deadlineMs: null,
    headers: 'Host\nlocalhost',
    method: 'POST',
    params: '',
    asciiJson: false,
    answer: 'auto',
    dialectParams: '',
  };
  assert.deepEqual(received, [
    [{ type: 'call', calls: [call], inlineBytes: [9], batch: 1, last: true }, '{"n": 20}'],
  ]);
});

test('the note of the page decodes to the values beside it', () => {
  const bytes = exampleBytes('note');
  assert.equal(bytes.length, BEGUN_NOTE_BYTES);
  assert.deepEqual(decodeBegunNote(bytes), { id: 1, atMs: 2000 });
});
