/** The server's own writers to stdout and stderr. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OutputWriter } from '../../../supervisor/observe/output-writer.js';

test('a program that starts one server after the other gets no listener more with each', () => {
  const counts = [1, 2].map(() => {
    new OutputWriter(1);
    new OutputWriter(2);
    return [process.stdout, process.stderr].map((stream) => stream.listenerCount('error'));
  });
  assert.deepEqual(counts[1], counts[0]);
});
