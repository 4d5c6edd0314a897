/** The server's data, as the page keeps it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { History, MAX_SECONDS } from '../../../supervisor/page/live/history.js';
import type { LiveModelHistory, LiveSample } from '../../../supervisor/status/live-types.js';
import {
  liveCall,
  liveDeath,
  liveDescription,
  liveHistory,
  liveModel,
  liveSample,
  liveSnapshot,
} from '../../helpers/live-data.js';

function columnsOf(samples: readonly LiveSample[]): LiveModelHistory['columns'] {
  const names = Object.keys(liveSample()) as (keyof LiveSample)[];
  return Object.fromEntries(
    names.map((name) => [name, samples.map((sample) => sample[name])]),
  ) as unknown as LiveModelHistory['columns'];
}

const begun = (seconds: number): History =>
  new History(
    liveHistory({
      number: 5,
      models: [
        {
          key: 1,
          columns: columnsOf(Array.from({ length: seconds }, (_, i) => liveSample({ calls: i }))),
          errors: { SERVE_QUEUE_FULL: Array<number>(seconds).fill(0) },
        },
      ],
      descriptions: [liveDescription()],
      calls: Array.from({ length: 200 }, (_, i) => liveCall({ id: i + 1 })),
    }),
  );

test('a snapshot adds its second to the columns, and the oldest second leaves', () => {
  const history = begun(MAX_SECONDS);
  const model = liveModel({ sample: liveSample({ calls: 77 }), errors: { SERVE_WORKER_LOST: 2 } });
  history.add(liveSnapshot({ number: 6, models: [model] }));
  assert.equal(history.hasGap, false);
  const series = history.series.get(1);
  assert.deepEqual([series?.columns.calls.length, series?.columns.calls[0]], [MAX_SECONDS, 1]);
  assert.equal(series?.columns.calls.at(-1), 77);
  for (const [code, last] of [
    ['SERVE_QUEUE_FULL', 0],
    ['SERVE_WORKER_LOST', 2],
  ] as const) {
    const counts: (number | null)[] | undefined = series?.errors[code];
    assert.deepEqual([counts?.length, counts?.at(-1)], [MAX_SECONDS, last], code);
  }
});

test('calls and deaths are appended, and the oldest leave', () => {
  const history = begun(1);
  history.add(
    liveSnapshot({ number: 6, models: [liveModel()], calls: [liveCall({ id: 201 })], deaths: [liveDeath()] }),
  );
  assert.deepEqual([history.calls.length, history.calls[0]?.id, history.calls.at(-1)?.id], [200, 2, 201]);
  assert.deepEqual(
    history.deaths.map(({ id }) => id),
    [1],
  );
});

test('failed calls stay when other calls have pushed them out of the list', () => {
  const history = begun(1);
  history.add(
    liveSnapshot({ number: 6, calls: [liveCall({ id: 201, status: 500, code: 'SERVE_WORKER_LOST' })] }),
  );
  const busy = Array.from({ length: 200 }, (_, i) => liveCall({ id: 202 + i }));
  history.add(liveSnapshot({ number: 7, calls: busy }));
  assert.deepEqual([history.calls[0]?.id, history.failedCalls.map(({ id }) => id)], [202, [201]]);
});

test('a new model begins its own columns, and a model that leaves takes its own along', () => {
  const history = begun(3);
  history.add(
    liveSnapshot({ number: 6, models: [liveModel({ key: 2 })], descriptions: [liveDescription({ key: 2 })] }),
  );
  assert.deepEqual([...history.series.keys()], [2]);
  assert.deepEqual([...history.descriptions.keys()], [2]);
  assert.equal(history.series.get(2)?.columns.calls.length, 1);
});

test('the seconds of missing snapshots are empty', () => {
  const history = begun(3);
  history.add(liveSnapshot({ number: 8, models: [liveModel({ sample: liveSample({ calls: 9 }) })] }));
  assert.deepEqual(history.series.get(1)?.columns.calls, [0, 1, 2, null, null, 9]);
  assert.equal(history.hasGap, true);
});
