/** The feed of the page: what a viewer gets and when, what is made once for all, and who must go when there are too many. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import type { CountedRequest } from '../../../../supervisor/http/request/request-context.js';
import type { Model } from '../../../../supervisor/models/model.js';
import type { WorkerDeath } from '../../../../supervisor/processes/worker-death.js';
import { LiveFeed, MOST_VIEWERS } from '../../../../supervisor/status/live/live-feed.js';
import { FakeViewer, eventsIn, fakeModel, fakeServer, type FakeServer } from './fake-server.js';

function feedOf(models: Model[] = [fakeModel('m')]): { feed: LiveFeed; server: FakeServer } {
  const server = fakeServer(models);
  return { feed: new LiveFeed(server, false), server };
}

function joined(feed: LiveFeed, ...args: ConstructorParameters<typeof FakeViewer>): FakeViewer {
  const viewer = new FakeViewer(...args);
  feed.join(viewer);
  return viewer;
}

function refusedCall(requestId: string): [CountedRequest, ServeError, number] {
  const request = { method: 'POST', url: '/' };
  const counted = { model: null, request, requestId, counts: true } as unknown as CountedRequest;
  return [counted, new ServeError('SERVE_NOT_FOUND'), 404];
}

function die(feed: LiveFeed, model: Model): void {
  const death = { at: new Date(), call: null, stderrTail: ['last words'], wanted: false };
  const fatal = { message: 'thrown' };
  feed.deaths.died(model, { index: 0 }, { ...death, fatal } as unknown as WorkerDeath);
}

test('a viewer first learns about itself, then gets the samples, then a snapshot every second', () => {
  const { feed } = feedOf();
  feed.tick();
  feed.tick();
  const viewer = joined(feed, 'remote');
  feed.tick();
  feed.tick();
  assert.deepEqual(
    viewer.events.map(({ name }) => name),
    ['viewer', 'samples', 'snapshot', 'snapshot'],
  );
  assert.deepEqual(viewer.last('viewer'), { needsKey: false, hidden: 'remote', management: null });
  assert.equal(viewer.last('samples')?.number, 2);
  assert.deepEqual(viewer.last('samples')?.models[0]?.columns.readyWorkers, [1, 1]);
  assert.equal(viewer.last('snapshot')?.number, 4);
});

test('what happened is in the history or in one snapshot, and in no other', () => {
  const { feed } = feedOf();
  feed.calls.refused(...refusedCall('before'));
  feed.tick();
  feed.calls.refused(...refusedCall('this second'));
  const viewer = joined(feed);
  feed.calls.refused(...refusedCall('also this second'));
  feed.tick();
  feed.tick();
  const ids = viewer.events.map((event) =>
    event.name === 'samples' || event.name === 'snapshot'
      ? event.data.calls.map((one) => one.requestId)
      : null,
  );
  assert.deepEqual(ids.slice(1), [['before'], ['this second', 'also this second'], []]);
});

test('a snapshot is made once for each kind of viewer, and a history once in a second', () => {
  const { feed, server } = feedOf();
  feed.tick();
  die(feed, server.models[0] as Model);
  const [one, other, hidden] = [joined(feed), joined(feed), joined(feed, 'remote')];
  feed.tick();
  assert.equal(one.got[1], other.got[1]);
  assert.notEqual(one.got[1], hidden.got[1]);
  const deathOf = (viewer: FakeViewer): unknown[] =>
    viewer.last('snapshot')?.deaths.map(({ why, stderr }) => [why, stderr]) ?? [];
  assert.deepEqual(deathOf(one), [['thrown', ['last words']]]);
  assert.deepEqual(deathOf(hidden), [['', []]]);
  assert.deepEqual(
    joined(feed, 'remote')
      .last('samples')
      ?.deaths.map(({ why, stderr }) => [why, stderr]),
    [['', []]],
  );
});

test('a viewer that does not read misses snapshots, and sees by their numbers that it has', () => {
  const { feed } = feedOf();
  const viewer = joined(feed);
  feed.tick();
  viewer.reads = false;
  feed.tick();
  feed.tick();
  viewer.reads = true;
  feed.tick();
  const numbers = viewer.events.flatMap((event) => (event.name === 'snapshot' ? event.data.number : []));
  assert.deepEqual(numbers, [1, 4]);
});

test('the system is read only while there are viewers', () => {
  const { feed, server } = feedOf([fakeModel('m', 3)]);
  feed.tick();
  assert.deepEqual(server.reads, { memory: 0, gpus: 0 });
  const viewer = joined(feed);
  feed.tick();
  assert.deepEqual(server.reads, { memory: 3, gpus: 1 });
  assert.equal(viewer.last('snapshot')?.models[0]?.sample.memoryBytes, 3000);
  viewer.leave();
  feed.tick();
  assert.deepEqual(server.reads, { memory: 3, gpus: 1 });
  assert.deepEqual(joined(feed).last('samples')?.models[0]?.columns.memoryBytes, [null, 3000, null]);
});

test('of many workers some are read in each second; a model has its memory once all of its were read', () => {
  const { feed, server } = feedOf([fakeModel('a', 60, 100), fakeModel('b', 60, 1000)]);
  const viewer = joined(feed);
  const memory = (): unknown[] =>
    viewer.last('snapshot')?.models.map(({ sample }) => sample.memoryBytes) ?? [];
  feed.tick();
  assert.deepEqual([server.reads.memory, memory()], [64, [60_000, null]]);
  feed.tick();
  assert.deepEqual([server.reads.memory, memory()], [128, [60_000, 60_000]]);
});

test('a description is sent once, and again when it has changed', () => {
  const { feed, server } = feedOf();
  feed.tick();
  const viewer = joined(feed);
  assert.deepEqual(viewer.last('samples')?.descriptions[0]?.routes[0]?.paths, [
    { path: '/', dialect: 'banana', isDeprecated: false },
  ]);
  feed.tick();
  assert.deepEqual(viewer.last('snapshot')?.descriptions, []);
  const [model] = server.models as unknown as [{ info: object }];
  model.info = { ...model.info, example: '{"new":1}' };
  feed.tick();
  assert.equal(viewer.last('snapshot')?.descriptions[0]?.example, '{"new":1}');
});

test('a model that leaves takes its samples along; one of the same name that comes later is another', () => {
  const { feed, server } = feedOf([fakeModel('a'), fakeModel('b')]);
  feed.tick();
  server.models.pop();
  feed.tick();
  server.models.push(fakeModel('b'));
  feed.tick();
  const { models } = joined(feed).last('samples') ?? { models: [] };
  assert.deepEqual(
    models.map(({ key, columns }) => [key, columns.calls.length]),
    [
      [1, 3],
      [3, 1],
    ],
  );
});

test('there are at most 100 viewers: the oldest from elsewhere without a key leaves, then newcomers are refused', () => {
  const { feed } = feedOf();
  const viewers = Array.from({ length: MOST_VIEWERS }, (_, i) => joined(feed, null, i === 3 || i === 5));
  const [remote, next] = [viewers[3] as FakeViewer, viewers[5] as FakeViewer];
  joined(feed);
  assert.deepEqual([remote.isCut, next.isCut], [true, false]);
  joined(feed);
  assert.equal(next.isCut, true);
  const refused = { code: 'SERVE_OVERLOADED', retryAfterS: 10 };
  assert.throws(() => joined(feed, 'remote', true), refused);
  (viewers[0] as FakeViewer).leave();
  joined(feed);
  feed.tick();
  assert.equal((viewers[1] as FakeViewer).last('snapshot')?.server.viewers, 100);
});

test('what happened since the last second is sent before the end', () => {
  const { feed, server } = feedOf();
  const viewer = joined(feed);
  feed.tick();
  die(feed, server.models[0] as Model);
  feed.end('failed');
  assert.deepEqual(
    eventsIn(viewer.got.at(-1)?.toString() ?? '').map(({ name }) => name),
    ['snapshot', 'end'],
    'in one piece: a viewer that has not read the bytes before is cut',
  );
  assert.equal(viewer.last('snapshot')?.deaths.length, 1);
});

test('when the server ends every viewer gets the end, and new ones are refused', () => {
  const { feed } = feedOf();
  const viewer = joined(feed);
  feed.end('drained');
  assert.deepEqual([viewer.last('end'), viewer.isEnded], [{ reason: 'drained' }, true]);
  assert.throws(() => joined(feed), { code: 'SERVE_SHUTTING_DOWN' });
});
