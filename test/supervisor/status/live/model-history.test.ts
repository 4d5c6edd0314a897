/** The samples of a model in the last ten minutes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ModelHistory, SECONDS_KEPT } from '../../../../supervisor/status/live/model-meter.js';
import { liveSample } from '../../../helpers/live-data.js';

function filled(seconds: number): ModelHistory {
  const history = new ModelHistory();
  for (let i = 0; i < seconds; i += 1) history.add(liveSample({ calls: i, runP50Ms: i / 8 }), {});
  return history;
}

test('seconds come back in their order; a figure that was not measured is null', () => {
  const { columns } = filled(3).describe();
  assert.deepEqual(columns.calls, [0, 1, 2]);
  assert.deepEqual(columns.runP50Ms, [0, 0.13, 0.25]);
  assert.deepEqual(columns.memoryBytes, [null, null, null]);
});

test('only the last ten minutes are kept', () => {
  const { calls } = filled(SECONDS_KEPT + 50).describe().columns;
  assert.equal(calls.length, 600);
  assert.deepEqual([calls[0], calls.at(-1)], [50, 649]);
});

test('errors are as long as the columns, also with a code that is new, and leave with their second', () => {
  const history = filled(2);
  history.add(null, { SERVE_DEADLINE: 3 });
  history.add(null, {});
  assert.deepEqual(history.describe().errors, { SERVE_DEADLINE: [0, 0, 3, 0] });
  for (let i = 0; i < SECONDS_KEPT; i += 1) history.add(null, {});
  assert.deepEqual(history.describe().errors, {});
});

test('numbers have two decimals, and none of the digits that come from their 32 bits', () => {
  const history = new ModelHistory();
  history.add(liveSample({ queueP50Ms: 0.1, memoryBytes: 123_456_789 }), {});
  const { queueP50Ms, memoryBytes } = history.describe().columns;
  assert.deepEqual(queueP50Ms, [0.1]);
  assert.ok(Math.abs((memoryBytes[0] as number) - 123_456_789) < 10);
});
