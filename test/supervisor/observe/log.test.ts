import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../../supervisor/observe/log.js';
import type { OutputWriter } from '../../../supervisor/observe/output-writer.js';

/** Returns what `write` logs in this form, without the time of text. */
function logged(format: 'text' | 'json', write: (log: ReturnType<typeof createLog>) => void): string {
  let text = '';
  const writer = { writableLength: 0, writeLines: (lines: string) => (text += lines) };
  write(createLog(format, 'debug', writer as unknown as OutputWriter));
  return text.replace(/^\[[\d:.]+\] /gm, '');
}

test('the level is a word in JSON', () => {
  for (const level of ['debug', 'info', 'warn', 'error'] as const) {
    const line = JSON.parse(logged('json', (log) => log[level]({ worker: 1 }, 'text'))) as { time: string };
    assert.deepEqual({ ...line, time: '' }, { level, time: '', pid: process.pid, worker: 1, msg: 'text' });
  }
});

test('in JSON a stack stands beside the line that says what happened; the pid of a worker replaces the own one', () => {
  const stack = 'Error: thrown\n    at f (app.ts:1:2)';
  const line = JSON.parse(logged('json', (log) => log.error({ pid: 7 }, stack))) as { time: string };
  const msg = 'Error: thrown (app.ts:1)';
  assert.deepEqual({ ...line, time: '' }, { level: 'error', time: '', pid: 7, stack, msg });
});

test('in text an error with a stack has its worker and request id on the first line', () => {
  const stack = 'Error: thrown\n    at f (app.ts:1:2)';
  const text = logged('text', (log) => log.error({ worker: 1, requestId: 'r' }, stack));
  assert.equal(text, 'ERROR: Error: thrown {"worker":1,"requestId":"r"}\n    at f (app.ts:1:2)\n');
});

test('in text the lines of a message after its first are indented, so that none looks like an event', () => {
  const forged = logged('text', (log) => log.error('Error: a\nERROR: fake\n\n  b\u2028c\n'));
  assert.equal(forged, 'ERROR: Error: a\n    ERROR: fake\n\n      b c\n\n');
});

test('in text a method and a path stand once', () => {
  const fields = { method: 'POST', path: '/', client: '::1' };
  assert.equal(
    logged('text', (log) => log.info(fields, 'POST / refused')),
    'INFO: POST / refused {"client":"::1"}\n',
  );
});

test('no control character gets into a line, wherever it stands; colours go with their sequence', () => {
  const evil = 'a\u001b[31mb\u009b2Jc\u0085d\re\u0007f\u007f\u2028\u2029';
  const write = (log: ReturnType<typeof createLog>): void =>
    log.warn({ requestId: evil, name: evil, nested: { deep: [evil] } }, `said ${evil}\n\tmore`);
  assert.doesNotMatch(logged('text', write), /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}]/u);
  assert.doesNotMatch(logged('json', write), /(?!\n)[\p{Cc}\p{Zl}\p{Zp}]/u);
  const { nested } = JSON.parse(logged('json', write)) as { nested: unknown };
  assert.deepEqual(nested, { deep: [evil] }, 'JSON keeps them, as escapes');
});
