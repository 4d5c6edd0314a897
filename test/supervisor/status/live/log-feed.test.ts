/** The feed of the log: who gets which lines, and that viewers who read nothing cost nothing. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { collectNow } from '../../../../supervisor/memory/gc.js';
import { RecentLines } from '../../../../supervisor/observe/recent-lines.js';
import type { LiveLines } from '../../../../supervisor/status/live-types.js';
import { LogFeed } from '../../../../supervisor/status/live/live-feed.js';
import { FakeViewer } from './fake-server.js';

function feedOf(t: TestContext): { feed: LogFeed; lines: RecentLines } {
  const lines = new RecentLines();
  const feed = new LogFeed(lines);
  t.after(() => feed.stop());
  return { feed, lines };
}

function joined(feed: LogFeed): FakeViewer {
  const viewer = new FakeViewer();
  feed.join(viewer);
  return viewer;
}

const got = (viewer: FakeViewer): LiveLines[] =>
  viewer.events.flatMap((event) => (event.name === 'lines' ? event.data : []));
const texts = (viewer: FakeViewer): string[] =>
  got(viewer).flatMap(({ lines }) => lines.map(({ text }) => text));

test('a viewer gets the lines that are kept, then each new one once, then the end', (t) => {
  const { feed, lines } = feedOf(t);
  lines.addText('info', 'before');
  const viewer = joined(feed);
  feed.tick();
  lines.addText('info', 'after');
  feed.tick();
  lines.addText('info', 'last');
  feed.end(Buffer.from('event: end\ndata: {"reason":"drained"}\n\n'));
  assert.deepEqual(texts(viewer), ['before', 'after', 'last']);
  assert.equal(viewer.isEnded, true);
  assert.throws(() => joined(feed), { code: 'SERVE_SHUTTING_DOWN' });
});

test('a server without lines is not silent for ever', (t) => {
  const { feed } = feedOf(t);
  const viewer = joined(feed);
  const first = viewer.got.length;
  for (let i = 0; i < 30; i += 1) feed.tick();
  assert.equal(viewer.got.length, first + 1);
});

test('a viewer that did not read goes on where it was, or learns that lines are missing', (t) => {
  const { feed, lines } = feedOf(t);
  const viewer = joined(feed);
  viewer.reads = false;
  lines.addText('info', 'one');
  feed.tick();
  viewer.reads = true;
  feed.tick();
  assert.deepEqual([texts(viewer), got(viewer).at(-1)?.missed], [['one'], false]);
  viewer.reads = false;
  for (let i = 0; i < 5000; i += 1) lines.addText('info', `${i}`);
  feed.tick();
  viewer.reads = true;
  feed.tick();
  assert.deepEqual([texts(viewer).at(-1), got(viewer).at(-1)?.missed], ['4999', true]);
});

test('20 viewers that read nothing, and a million lines: no more is kept than without them', (t) => {
  const { feed, lines } = feedOf(t);
  const source = {
    label: () => '',
    worker: 0,
    mark: '',
    runningRequestId: () => '',
    pid: () => 7,
    lastRequestId: () => '',
  };
  const stream = lines.of('stdout', source);
  const chunk = Buffer.from(Array.from({ length: 500 }, (_, i) => `${i} ${'x'.repeat(60)}\n`).join(''));
  for (let i = 0; i < 200; i += 1) stream.push(chunk); // it is full
  const viewers = Array.from({ length: 20 }, () => joined(feed));
  for (const viewer of viewers) viewer.reads = false;
  const before = usedBytes();
  for (let i = 0; i < 2000; i += 1) {
    stream.push(chunk);
    if (i % 100 === 0) feed.tick();
  }
  const megabytes = (usedBytes() - before) / 1e6;
  assert.ok(megabytes < 3, `${megabytes.toFixed(2)} MB`);
});

function usedBytes(): number {
  for (let i = 0; i < 3; i += 1) collectNow(); // finalizers lag one collection behind
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
