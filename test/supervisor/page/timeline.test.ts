/** The list of calls with the deaths among them, and its filter. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFailed } from '../../../supervisor/page/live/history.js';
import { timelineOf } from '../../../supervisor/page/watch/timeline.js';
import { liveCall, liveDeath, START } from '../../helpers/live-data.js';

const CALLS = [
  liveCall({ id: 1, at: START, requestId: 'first' }),
  liveCall({ id: 2, at: START + 50, status: 500, code: 'SERVE_WORKER_LOST', requestId: 'lost', worker: 0 }),
  liveCall({ id: 3, at: START + 90, requestId: 'again', worker: 1, route: '/generate', path: '/generate' }),
  liveCall({
    id: 4,
    at: START + 95,
    status: null,
    code: 'SERVE_CANCELLED',
    requestId: 'gone',
    model: 'words',
  }),
];
const DEATHS = [
  liveDeath({ id: 1, at: START - 60_000, requestId: 'old' }),
  liveDeath({ id: 2, at: START + 50, requestId: 'lost' }),
];

for (const [title, text, failedOnly, expected] of [
  [
    'newest first, a death before the call that it cost',
    '',
    false,
    ['gone', 'again', 'lost', '†lost', 'first', '†old'],
  ],
  ['failed calls, with the deaths', '', true, ['gone', 'lost', '†lost', '†old']],
  ['a route', '/generate', false, ['again']],
  ['a status', '500', false, ['lost']],
  ['a code, in small letters', 'worker_lost', false, ['lost']],
  ['the death by its signal', 'sigsegv', false, ['†lost', '†old']],
  ['a request id gives the call and the death', 'lost', false, ['lost', '†lost']],
  ['all words count, and one may be excluded', 'digits !lost', false, ['again', 'first', '†old']],
  ['a client that left', 'left', false, ['gone']],
] as const)
  test(`the timeline shows ${title}`, () => {
    const entries = timelineOf(
      { calls: CALLS, failedCalls: CALLS.filter(isFailed), deaths: DEATHS },
      text,
      failedOnly,
    );
    assert.deepEqual(
      entries.map((entry) => ('how' in entry ? `†${entry.requestId}` : entry.requestId)),
      expected,
    );
  });
