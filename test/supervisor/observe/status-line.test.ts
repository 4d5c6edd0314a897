import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StatusLine } from '../../../supervisor/observe/output-writer.js';

const CLEAR = '\r\x1b[2K';

/** The bytes that the terminal gets for each of these outputs. */
function outputs(line: StatusLine, ...datas: string[]): string[] {
  return datas.map((data) => line.around(Buffer.from(data)).toString());
}

test('without a status line output is unchanged', () => {
  const line = new StatusLine();
  assert.deepEqual(outputs(line, 'a\n', 'b', '', 'c\n'), ['a\n', 'b', '', 'c\n']);
});

test('a status line is shown, updated in place, moved below other output, and removed', () => {
  const line = new StatusLine();
  line.text = 'loading 1 s';
  assert.deepEqual(outputs(line, ''), ['loading 1 s']);
  line.text = 'loading 2 s';
  assert.deepEqual(outputs(line, '', 'printed\n'), [`${CLEAR}loading 2 s`, `${CLEAR}printed\nloading 2 s`]);
  line.text = '';
  assert.deepEqual(outputs(line, '', 'ready\n'), [CLEAR, 'ready\n']);
});

test('an unfinished line is not overwritten', () => {
  const line = new StatusLine();
  assert.deepEqual(outputs(line, 'Loading… '), ['Loading… ']);
  line.text = 'still starting';
  assert.deepEqual(outputs(line, '', '50 %', 'done\n'), ['', '50 %', 'done\nstill starting']);
});
