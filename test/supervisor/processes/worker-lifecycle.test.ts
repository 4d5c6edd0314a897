import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ServeError } from '../../../protocol/errors.js';
import {
  WORKER_EVENTS,
  WORKER_STATES,
  nextState,
  type LifeEvent,
  type WorkerState,
} from '../../../supervisor/processes/worker-lifecycle.js';

const STATES = Object.keys(WORKER_STATES) as WorkerState[];
const EVENTS = Object.keys(WORKER_EVENTS) as LifeEvent[];

/** Every state times every event, written down a second time; `-` makes no sense. */
const GRID = `
              hello     loaded        warmUp    ready     fatal     retireRequested stopRequested killRequested ended
spawning      loading   -             -         -         stopping  finishing       stopping      killing       gone
loading       -         initializing  -         -         stopping  finishing       stopping      killing       gone
initializing  -         -             warming   ready     stopping  finishing       stopping      killing       gone
warming       -         -             -         ready     stopping  finishing       stopping      killing       gone
ready         -         -             -         -         stopping  finishing       stopping      killing       gone
finishing     -         -             -         -         stopping  finishing       stopping      killing       gone
stopping      stopping  stopping      stopping  stopping  stopping  stopping        stopping      killing       gone
killing       killing   killing       killing   killing   killing   killing         killing       killing       gone
gone          -         -             -         -         -         gone            gone          gone          -
`;

const [header = [], ...rows] = GRID.trim()
  .split('\n')
  .map((line) => line.trim().split(/ +/));

test('the grid covers every state and every event of a worker', () => {
  assert.deepEqual(header, EVENTS);
  assert.deepEqual(
    rows.map(([state]) => state),
    STATES,
  );
});

for (const [state, ...nexts] of rows) {
  for (const [i, next] of nexts.entries()) {
    const event = EVENTS[i] as LifeEvent;
    const outcome = next === '-' ? 'is a broken protocol' : `leads to ${next}`;
    test(`a worker that is ${state}: ${event} ${outcome}`, () => {
      if (next !== '-') {
        assert.equal(nextState(state as WorkerState, event), next);
        return;
      }
      assert.throws(
        () => nextState(state as WorkerState, event),
        (error) =>
          error instanceof ServeError && error.code === 'SERVE_PROTOCOL' && error.detail.includes(event),
      );
    });
  }
}

test('in any order of events a worker takes calls only between ready and the first sign of its end', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...EVENTS), { maxLength: 30 }), (events) => {
      let state: WorkerState = 'spawning';
      let ending = false;
      for (const event of events) {
        try {
          state = nextState(state, event);
        } catch {
          continue; // a broken protocol changes nothing by itself
        }
        ending ||= ['fatal', 'retireRequested', 'stopRequested', 'killRequested', 'ended'].includes(event);
        if (ending) assert.notEqual(state, 'ready');
        if (state === 'gone') assert.ok(events.includes('ended'));
      }
    }),
  );
});
