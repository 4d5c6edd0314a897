/** The last lines for the page: what a line has, how many are kept, and what a reader gets who is late. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../../supervisor/observe/log.js';
import type { OutputWriter } from '../../../supervisor/observe/output-writer.js';
import { LINES_KEPT, RecentLines, type RecentLine } from '../../../supervisor/observe/recent-lines.js';

const writer = { writableLength: 0, writeLines: () => {} } as unknown as OutputWriter;

/** Prints as worker 1 of a model; `running` is the call that runs in it. */
function printerOf(lines: RecentLines, name: 'stdout' | 'stderr' = 'stdout') {
  const running = { id: '' };
  const source = {
    label: () => 'digits',
    worker: 1,
    mark: '',
    runningRequestId: () => running.id,
    pid: () => 7,
    lastRequestId: () => running.id,
  };
  const receiver = lines.of(name, source);
  return { running, print: (text: string) => receiver.push(Buffer.from(text)) };
}

function all(lines: RecentLines): RecentLine[] {
  const found: RecentLine[] = [];
  for (let next = lines.begin(); next < lines.end;) {
    const page = lines.read(next);
    found.push(...page.lines);
    next = page.next;
  }
  return found;
}

for (const format of ['text', 'json'] as const)
  test(`lines of the ${format} log have level, model, worker and request id, and their other fields`, () => {
    const lines = new RecentLines();
    const log = createLog(format, 'info', writer, [], lines);
    log.error(
      { model: 'digits', worker: 0, requestId: 'r1', code: 'X' },
      'TypeError: \x1b[31mno\n    at app.ts:1',
    );
    log.debug('it is not shown');
    log.info('it serves');
    const shown = all(lines).map(({ at, ...line }) => {
      assert.ok(Math.abs(at - Date.now()) < 60_000);
      return line;
    });
    const error = { level: 'error', model: 'digits', worker: 0, requestId: 'r1' };
    assert.deepEqual(shown, [
      { ...error, text: 'TypeError: no {"code":"X"}\n    at app.ts:1' },
      { level: 'info', model: '', worker: null, requestId: '', text: 'it serves' },
    ]);
  });

test('prints have the name of their stream and the call that ran', () => {
  const lines = new RecentLines();
  const { running, print } = printerOf(lines, 'stderr');
  running.id = 'r7';
  print('a\n\nb\r\nbeg');
  running.id = '';
  print('un\n');
  const whose = { level: 'stderr', model: 'digits', worker: 1 };
  assert.deepEqual(
    all(lines).map(({ at: _, ...line }) => line),
    [
      { ...whose, requestId: 'r7', text: 'a' },
      { ...whose, requestId: 'r7', text: 'b' },
      { ...whose, requestId: '', text: 'begun' },
    ],
  );
});

test('the prints of a call are those under its request id, unchanged, as far as they are kept', async () => {
  const lines = new RecentLines();
  const { running, print } = printerOf(lines);
  for (const [id, text] of [
    ['a', 'one\n\n'],
    ['b', 'other\n'],
    ['', 'nobody\n'],
    ['a', ' 50%\r100%\n'],
  ] as const) {
    running.id = id;
    print(text);
  }
  lines.addJson('{"requestId":"a","msg":"a line of the server"}');
  assert.deepEqual(await Promise.all(['a', 'b', 'c'].map((id) => lines.printsOf(id))), [
    'one\n\n 50%\r100%\n',
    'other\n',
    '',
  ]);
  for (let i = 0; i < LINES_KEPT; i += 1) print(`${i}\n`);
  assert.ok((await lines.printsOf('a')).startsWith('0\n1\n'));
});

test('an unfinished line is of the call that has printed it, whoever prints next', async () => {
  const lines = new RecentLines();
  const { running, print } = printerOf(lines);
  for (const [id, text] of [
    ['a', '1\nhal'],
    ['a', 'f of a'],
    ['b', 'b\n'],
  ] as const) {
    running.id = id;
    print(text);
  }
  assert.deepEqual(await Promise.all([lines.printsOf('a'), lines.printsOf('b')]), ['1\nhalf of a', 'b\n']);
});

test('prints that are read in the turn after the answer of their call are there, too', async () => {
  const lines = new RecentLines();
  const { running, print } = printerOf(lines);
  running.id = 'a';
  const prints = lines.printsOf('a');
  setImmediate(() => print('late\n'));
  assert.equal(await prints, 'late\n');
});

test('a reader begins at the last 2,000 lines, and one that is late learns what it has missed', () => {
  const lines = new RecentLines();
  const { print } = printerOf(lines);
  for (let i = 0; i < LINES_KEPT + 500; i += 1) print(`${i}\n`);
  const kept = all(lines);
  assert.deepEqual([kept.length, kept[0]?.text, kept.at(-1)?.text], [LINES_KEPT, '500', '2499']);
  const late = lines.read(10);
  assert.deepEqual([late.missed, late.lines[0]?.text], [true, '500']);
  assert.deepEqual(lines.read(lines.end), { lines: [], next: lines.end, missed: false });
});

test('no more than 4 MB of them are kept, whatever is printed', () => {
  const lines = new RecentLines();
  const { print } = printerOf(lines);
  const block = `${'x'.repeat(60_000)}\n`;
  for (let i = 0; i < 1000; i += 1) print(block);
  const chars = all(lines).reduce((sum, { text }) => sum + text.length, 0);
  assert.ok(chars > 3e6 && chars <= 4 * 1024 * 1024, `${chars}`);
  lines.addText('info', 'y'.repeat(9e6));
  assert.deepEqual(all(lines), [], 'a line that is larger than all of that is not kept');
});
