import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StatusLine } from '../../../supervisor/observe/status-line.js';

const CLEAR = '\r\x1b[2K';

/** What the terminal gets for each of these outputs. */
function outputs(line: StatusLine, ...datas: string[]): string[] {
  return datas.map((data) => line.around(Buffer.from(data)).toString());
}

test('without a status line everything is printed as it is', () => {
  const line = new StatusLine();
  assert.deepEqual(outputs(line, 'a\n', 'b', '', 'c\n'), ['a\n', 'b', '', 'c\n']);
});

test('a status line is shown, changes in its place, gives way to what is printed, and goes', () => {
  const line = new StatusLine();
  line.text = 'loading 1 s';
  assert.deepEqual(outputs(line, ''), ['loading 1 s']);
  line.text = 'loading 2 s';
  assert.deepEqual(outputs(line, '', 'printed\n'), [`${CLEAR}loading 2 s`, `${CLEAR}printed\nloading 2 s`]);
  line.text = '';
  assert.deepEqual(outputs(line, '', 'ready\n'), [CLEAR, 'ready\n']);
});

test('a line that somebody has left unfinished is not drawn over', () => {
  const line = new StatusLine();
  assert.deepEqual(outputs(line, 'Loading… '), ['Loading… ']);
  line.text = 'still starting';
  assert.deepEqual(outputs(line, '', '50 %', 'done\n'), ['', '50 %', 'done\nstill starting']);
});
