import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call } from '../../../supervisor/dispatch/call.js';
import { Lines } from '../../../supervisor/dispatch/lines.js';
import { newCall } from './calls.js';

function linesOf(...routes: string[]): { lines: Lines<Call>; calls: Call[] } {
  const lines = new Lines<Call>({ bytes: 0 });
  const calls = routes.map((route, i) => newCall(`${i}`, { route, bytes: 10 }));
  calls.forEach((call, i) => lines.push(call, i));
  return { lines, calls };
}

test('the oldest of all lines is the one that came first, whatever its route', () => {
  const { lines, calls } = linesOf('/a', '/b', '/a');
  for (const call of calls) {
    assert.equal(lines.findOldest(), call);
    lines.remove(call);
  }
  assert.deepEqual([lines.findOldest(), lines.length, lines.bytes], [null, 0, 0]);
});

test('a call that comes back is before all that came after it, in its own line and over all lines', () => {
  const { lines, calls } = linesOf('/a', '/b', '/a');
  const [first] = calls as [Call];
  lines.remove(first);
  lines.putBack(first);
  assert.equal(lines.findOldest(), first);
  assert.equal(lines.all[0]?.first, first);
  assert.equal(lines.length, 3);
});

test('empty lines are dropped when the routes change', () => {
  const { lines, calls } = linesOf('/a', '/b');
  lines.remove(calls[0] as Call);
  lines.forgetEmpty();
  assert.equal(lines.all.length, 1);
  lines.push(newCall('new', { route: '/a' }), 5);
  assert.equal(lines.all.length, 2);
});
