import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { lineLog } from '../../../supervisor/observe/server-logs.js';
import type { LogFile } from '../../../supervisor/observe/log-file.js';
import type { OutputWriter } from '../../../supervisor/observe/output-writer.js';

interface Written {
  readonly shown: string[];
  readonly kept: string[];
  readonly writer: OutputWriter;
  readonly file: LogFile;
}

function written(writableLength = 0): Written {
  const shown: string[] = [];
  const kept: string[] = [];
  const writer = {
    writableLength,
    writeLines: (lines: string) => shown.push(lines),
  } as unknown as OutputWriter;
  const file = { writeLines: (lines: string) => kept.push(lines) } as unknown as LogFile;
  return { shown, kept, writer, file };
}

test('lines of one turn of the event loop are written together, with the date in files only and no fields', async () => {
  const { shown, kept, writer, file } = written();
  const log = lineLog('text', writer, [file]);
  log.info('one');
  log.info('two', { worker: 1 });
  assert.equal(shown.join(''), '', 'not yet');
  await nextTurn();
  assert.equal(shown.length, 1);
  assert.match(shown[0] as string, /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: one\n\[[\d:.]+\] INFO: two\n$/);
  assert.match(kept[0] as string, /^\[\d{4}-\d\d-\d\dT[\d:.]+Z\] INFO: one\n\[.*\] INFO: two\n$/);
});

test('in JSON the fields are properties beside the text', async () => {
  const { shown, writer } = written();
  lineLog('json', writer, []).info('a "b"', { worker: 1 });
  await nextTurn();
  const { time, ...line } = JSON.parse(shown[0] as string) as { time: string };
  assert.deepEqual(line, { level: 'info', pid: process.pid, worker: 1, msg: 'a "b"' });
  assert.ok(!Number.isNaN(Date.parse(time)));
});

test('a text of several lines is indented after the first', async () => {
  const { shown, writer } = written();
  lineLog('text', writer, []).info('one\nERROR: two');
  await nextTurn();
  assert.match(shown[0] as string, /^\[[\d:.]+\] INFO: one\n {4}ERROR: two\n$/);
});

test('a reader that has stopped reading gets no more lines; a file does', async () => {
  const { shown, kept, writer, file } = written(5 * 1024 ** 2);
  lineLog('text', writer, [file]).info('one');
  await nextTurn();
  assert.deepEqual([shown.length, kept.length], [0, 1]);
});

test('without a writer and files no lines are kept', async () => {
  const log = lineLog('text', null, []);
  log.info('one');
  await nextTurn();
});
