/** The memory that the live data takes at most, for 20 models with 40 workers each. docs/http.md states it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ERRORS, ServeError, type ErrorCode } from '../../../../protocol/errors.js';
import type { CountedRequest } from '../../../../supervisor/http/request/request-context.js';
import { collectNow } from '../../../../supervisor/memory/gc.js';
import type { Model } from '../../../../supervisor/models/model.js';
import type { WorkerDeath } from '../../../../supervisor/processes/worker-death.js';
import { LiveFeed } from '../../../../supervisor/status/live/live-feed.js';
import { ROOT } from '../../../helpers/server.js';
import { FakeViewer, fakeModel, fakeServer, type FakeServer } from './fake-server.js';

const BOUND_MB = 8;
const CODES = Object.keys(ERRORS) as ErrorCode[];

function usedBytes(): number {
  for (let i = 0; i < 3; i += 1) collectNow(); // finalizers lag one collection behind
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Ten minutes and more in which every call fails, in every way, and every worker dies with long last words. */
function fill(feed: LiveFeed, { models, counts }: FakeServer): void {
  const viewer = new FakeViewer();
  feed.join(viewer);
  for (let second = 0; second < 650; second += 1) {
    for (const model of models) {
      const calls = counts.of(model);
      calls.ended('banana', CODES[second % CODES.length] as ErrorCode);
      calls.runSeconds.add(second / 10);
      calls.began(1 + (second % 8));
    }
    for (let call = 0; call < 3; call += 1) feed.calls.refused(...longCall(second));
    die(feed, models[second % models.length] as Model, second);
    feed.tick();
    viewer.got.length = 0; // it has read
  }
}

function longCall(i: number): [CountedRequest, ServeError, number] {
  const request = { method: 'POST', url: `/${i}${'x'.repeat(8000)}` };
  const counted = { model: null, request, requestId: `${i}`.padEnd(128, 'r'), counts: true };
  return [
    counted as unknown as CountedRequest,
    new ServeError('SERVE_NOT_FOUND', `${i}`, { detail: `${i}${'€'.repeat(60_000)}` }),
    404,
  ];
}

function die(feed: LiveFeed, model: Model, i: number): void {
  const stderrTail = Array.from({ length: 20 }, (_, line) => `${i} ${line} ${'€'.repeat(3000)}`);
  const fatal = { message: `${i} ${'€'.repeat(60_000)}` };
  const death = {
    at: new Date(),
    call: null,
    how: 'exit code 1',
    hint: '',
    stderrTail,
    fatal,
    wanted: false,
  };
  feed.deaths.died(model, { index: i % 40 }, death as unknown as WorkerDeath);
}

test(`it takes at most ${BOUND_MB} MB, however much happens`, () => {
  const server = fakeServer(Array.from({ length: 20 }, (_, i) => fakeModel(`m${i}`, 40, 1000 * (i + 1))));
  // Compiled code and what V8 notes for it must not count: all of it has run before.
  const warmServer = fakeServer([fakeModel('w', 40, 500)]);
  fill(new LiveFeed(warmServer, false), warmServer);
  const before = usedBytes();
  const feed = new LiveFeed(server, false);
  fill(feed, server);
  const megabytes = (usedBytes() - before) / 1e6;
  assert.ok(megabytes < BOUND_MB, `${megabytes.toFixed(2)} MB`);
  assert.ok(megabytes > 0.5, `the test measures something: ${megabytes.toFixed(2)} MB`);
  feed.tick(); // it is still there
});

test('docs/http.md states that bound', () => {
  const page = readFileSync(`${ROOT}docs/http.md`, 'utf8');
  assert.ok(page.includes(`at most ${BOUND_MB} MB for 20 models with 40 workers each`));
});
