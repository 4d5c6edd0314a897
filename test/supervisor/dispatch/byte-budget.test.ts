import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import {
  Arrivals,
  type Admission,
  ByteBudget,
  Place,
  UnroutedBodies,
} from '../../../supervisor/dispatch/arrivals.js';
import { Lines } from '../../../supervisor/dispatch/lines.js';
import { newCall } from './calls.js';

/** Two models of one server; records whose bodies were refused. */
function twoModels(limitBytes: number): {
  budget: ByteBudget;
  first: Arrivals;
  second: Arrivals;
  refused: string[];
  arrive: (model: Arrivals, name: string) => Admission;
} {
  const budget = new ByteBudget(limitBytes);
  const full = (retryAfterS: number) => () => new ServeError('SERVE_QUEUE_FULL', undefined, { retryAfterS });
  const [first, second] = [new Arrivals(budget, full(1)), new Arrivals(budget, full(2))];
  const refused: string[] = [];
  const arrive = (model: Arrivals, name: string): Admission => {
    const place = new Place(model);
    place.begin((error) => refused.push(`${name}: ${error.code}, again in ${error.retryAfterS} s`));
    return place;
  };
  return { budget, first, second, refused, arrive };
}

test('the bytes of all models count against one bound', () => {
  const { budget, first, second, arrive } = twoModels(1000);
  const lines = new Lines(budget);
  const waits = newCall('waits', { bytes: 300 });
  lines.push(waits, 0);
  arrive(first, 'a').grow(300);
  const other = arrive(second, 'b');
  other.grow(400);
  assert.equal(budget.bytes, 1000);
  assert.throws(() => other.grow(1), { code: 'SERVE_QUEUE_FULL', retryAfterS: 2 });
  lines.remove(waits);
  other.grow(1);
  other.release();
  assert.equal(budget.bytes, 300);
});

test('when bytes run short the slowest body of the server is refused, with the Retry-After of its own model', (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const { first, second, refused, arrive } = twoModels(1000);
  const drips = arrive(first, 'drips');
  const flows = arrive(second, 'flows');
  drips.grow(200);
  flows.grow(700);
  nowMs = 2000;
  arrive(second, 'new').grow(300);
  assert.deepEqual(refused, ['drips: SERVE_QUEUE_FULL, again in 1 s']);
});

test('the bodies of a model that is gone do not count any more', (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const { budget, first, second, refused, arrive } = twoModels(1000);
  const left = arrive(first, 'left');
  left.grow(900);
  budget.arrivals.delete(first);
  nowMs = 2000;
  assert.throws(() => arrive(second, 'new').grow(300), { code: 'SERVE_QUEUE_FULL' });
  left.release();
  assert.deepEqual([budget.bytes, refused], [0, []]);
});

test('a body that moves to a queue counts there from then on, and may be refused there', (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const { budget, first, refused, arrive } = twoModels(1000);
  const place = new UnroutedBodies().admit();
  place.begin((error) => refused.push(`moved: ${error.code}`));
  place.grow(400);
  assert.deepEqual([budget.bytes, first.bytes], [0, 0]);
  arrive(first, 'other').grow(100);
  place.moveTo(() => new Place(first));
  place.grow(50);
  assert.deepEqual([budget.bytes, first.bytes, first.places.length], [550, 550, 2]);
  nowMs = 2000;
  arrive(first, 'new').grow(500);
  assert.deepEqual(refused, ['other: SERVE_QUEUE_FULL, again in 1 s']);
  arrive(first, 'next').grow(100);
  assert.deepEqual(refused.slice(1), ['moved: SERVE_QUEUE_FULL']);
  place.release();
  assert.deepEqual([budget.bytes, first.bytes, first.places.length], [600, 600, 2]);
});
