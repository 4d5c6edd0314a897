/** The live data of the page, from the real server: what viewers see of calls, deaths, starts, jobs and the end. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import type { LiveLine } from '../../supervisor/status/live-types.js';
import { LiveViewer } from '../helpers/live.js';
import { RawConnection } from '../helpers/raw-http.js';
import { call, eventually, fixture } from '../helpers/server.js';
import { startHere } from '../helpers/here.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const KEY = 's3cret';

describe('a viewer', LIMIT, () => {
  const shared = shareHere(fixture('works.mjs'), { expectedRestarts: 2 });

  test('gets the samples, then one snapshot a second, as server-sent events that no proxy holds back', async (t) => {
    const viewer = await LiveViewer.open(t, shared.server);
    const { headers } = viewer.response;
    assert.equal(headers.get('content-type'), 'text/event-stream');
    assert.equal(headers.get('cache-control'), 'no-store, no-transform');
    assert.ok(headers.has('x-request-id'));
    await viewer.snapshot();
    await viewer.snapshot(({ number }) => number >= viewer.last('samples').number + 2);
    assert.deepEqual(
      viewer.events.slice(0, 4).map(({ name }) => name),
      ['viewer', 'samples', 'snapshot', 'snapshot'],
    );
    assert.deepEqual(viewer.last('viewer'), { needsKey: false, hidden: null, management: null });
  });

  test('of the log gets lines of the server and of its app, each with its level and worker, and nothing else', async (t) => {
    const viewer = await LiveViewer.open(t, shared.server, {}, '?log');
    const lines = (): LiveLine[] =>
      viewer.events.flatMap((event) => (event.name === 'lines' ? [...event.data.lines] : []));
    await viewer.until(() => lines().some(({ text }) => text.startsWith('worker 0 is ready')));
    const print = lines().find(({ text }) => text === 'armed: works');
    assert.deepEqual([print?.level, print?.worker], ['stdout', 0]);
    assert.deepEqual(
      viewer.events.filter(({ name }) => name !== 'lines'),
      [],
    );
  });

  test('sees what it would need to try the app', async (t) => {
    const viewer = await LiveViewer.open(t, shared.server);
    await viewer.until(() => viewer.all('descriptions').length > 0);
    const [described] = viewer.all('descriptions');
    assert.deepEqual(described?.routes, [
      {
        path: '/',
        kind: 'handler',
        input: 'any',
        schema: '',
        paths: [
          { path: '/', dialect: 'banana', isDeprecated: false },
          { path: '/models/works/', dialect: 'banana', isDeprecated: false },
          { path: '/v1/models/works:predict', dialect: 'kserve-v1', isDeprecated: false },
          { path: '/predictions', dialect: 'cog', isDeprecated: false },
          { path: '/predictions/works', dialect: 'mms', isDeprecated: false },
          { path: '/predictions/works/1', dialect: 'mms', isDeprecated: false },
          { path: '/models/works/invoke', dialect: 'mms', isDeprecated: false },
          { path: '/works/predict', dialect: 'mms', isDeprecated: true },
          { path: '/v2/models/works/infer', dialect: 'open-inference', isDeprecated: false },
          { path: '/v2/models/works/versions/1/infer', dialect: 'open-inference', isDeprecated: false },
        ],
      },
    ]);
    const paths = described.routes[0]?.paths ?? [];
    // These have bodies of their own; the app answers with no tensors, which is all that a call in Open Inference needs.
    for (const { path } of paths.filter(({ dialect }) => !['open-inference', 'kserve-v1'].includes(dialect)))
      assert.equal((await call(`${shared.server.url}${path}`, '{}')).status, 200, path);
  });

  test('sees each call with its outcome, and the counts of its second', async (t) => {
    const { server } = shared;
    const viewer = await LiveViewer.open(t, server);
    await ask(server, { ms: 30 }, { id: 'mine', headers: {} });
    await call(`${server.url}/nowhere?secret=1`, '{}');
    const of = (id: string): boolean => viewer.all('calls').some(({ requestId }) => requestId === id);
    await viewer.until(() => of('mine'));
    const mine = viewer.all('calls').find(({ requestId }) => requestId === 'mine');
    assert.deepEqual(
      [mine?.model, mine?.route, mine?.method, mine?.path, mine?.status, mine?.code, mine?.worker],
      ['works', '/', 'POST', '/', 200, 'ok', 0],
    );
    assert.ok(
      (mine?.runMs ?? 0) >= 29 && (mine?.outBytes ?? 0) > 0 && mine?.inBytes === 9,
      JSON.stringify(mine),
    );
    await viewer.until(() =>
      viewer.all('calls').some(({ path, code }) => path === '/nowhere' && code === 'SERVE_NOT_FOUND'),
    );
    const busy = await viewer.snapshot(({ models }) => (models[0]?.sample.calls ?? 0) > 0);
    assert.ok((busy.models[0]?.sample.runP50Ms ?? 0) > 0);
    assert.ok(busy.models[0]?.batches.some(([size, count]) => size === 1 && count > 0));
  });

  test('sees the running call, its worker and its memory', async (t) => {
    const { server, cues } = shared;
    const viewer = await LiveViewer.open(t, server);
    const held = ask(server, { until: 'let go' }, { id: 'held' });
    const { models } = await viewer.snapshot(({ models }) => models[0]?.workers[0]?.requestId === 'held');
    const [worker] = models[0]?.workers ?? [];
    assert.deepEqual([worker?.state, worker?.held, worker?.device], ['busy', 1, 'cpu']);
    assert.ok((worker?.memoryBytes ?? 0) > 1e6 && (worker?.runningMs ?? -1) >= 0, JSON.stringify(worker));
    assert.equal(models[0]?.sample.running, 1);
    cues.give('let go');
    await held;
  });

  test('sees a killed worker with its last words, and what became of its call', async (t) => {
    const { server, cues } = shared;
    const viewer = await LiveViewer.open(t, server);
    const { models } = await viewer.snapshot(({ models }) => models[0]?.workers[0]?.state === 'idle');
    const pid = models[0]?.workers[0]?.pid as number;
    const lost = ask(server, { until: 'never' }, { id: 'lost' });
    await cues.untilNoted('begun lost');
    process.kill(pid, 'SIGKILL');
    assert.equal((await lost).status, 500);
    await viewer.until(() => viewer.all('deaths').some((death) => death.pid === pid));
    const death = viewer.all('deaths').find((one) => one.pid === pid);
    assert.deepEqual([death?.how, death?.during, death?.requestId], ['signal SIGKILL', 'call', 'lost']);
    await viewer.until(() =>
      viewer.all('calls').some(({ requestId, code }) => requestId === 'lost' && code === 'SERVE_WORKER_LOST'),
    );
    const after = await viewer.snapshot(({ models }) => models[0]?.workers[0]?.lastDeath === death?.id);
    assert.ok((after.models[0]?.workers[0]?.restarts ?? 0) > 0);
    await server.until(({ state }) => state === 'ready');
  });

  test('sees what is starting, and for how long', async (t) => {
    const { server, cues } = shared;
    const viewer = await LiveViewer.open(t, server);
    cues.give('init may not end');
    const { models } = await viewer.snapshot(({ models }) => models[0]?.workers[0]?.state === 'idle');
    process.kill(models[0]?.workers[0]?.pid as number, 'SIGKILL');
    const starting = await viewer.snapshot(({ models }) => models[0]?.workers[0]?.state === 'initializing');
    const since = starting.models[0]?.workers[0]?.since as number;
    assert.ok(since > starting.at - 20_000 && since <= starting.at + 1000);
    assert.equal(starting.models[0]?.state, 'unhealthy');
    cues.give('init may end');
    await viewer.snapshot(({ models, number }) => number > starting.number && models[0]?.state === 'ready');
  });

  test('that does not read holds up no other, and nothing is queued for it', async (t) => {
    const { server } = shared;
    const idle = await RawConnection.open(server);
    t.after(() => idle.destroy());
    idle.socket.pause();
    idle.get('/_k/live');
    const viewer = await LiveViewer.open(t, server);
    const { server: facts } = await viewer.snapshot(({ server }) => server.viewers === 2);
    assert.equal(facts.unsent.bytes, 0);
    idle.destroy();
    await viewer.snapshot(({ server }) => server.viewers === 1);
  });

  test('is no call: it starts no worker and takes no place', async (t) => {
    const { server } = shared;
    const before = await server.status();
    await (await LiveViewer.open(t, server)).snapshot();
    const after = await server.status();
    assert.deepEqual([after.replies, after.model.queue], [before.replies, before.model.queue]);
    const head = await fetch(`${server.url}/_k/live`, { method: 'HEAD' });
    assert.deepEqual([head.status, await head.text()], [200, '']);
    assert.equal((await call(`${server.url}/_k/live`, '{}')).status, 404);
  });
});

test(
  'a worker that dies of an exception leaves its last lines of stderr, which only some may read',
  LIMIT,
  async (t) => {
    const args = ['--model', `broken=${fixture('throws-in-init.mjs')}`, '--restart-limit', '0'];
    const server = await startHere(fixture('works.mjs'), { t, args });
    await server.until(({ models }) => models[1]?.state === 'unhealthy');
    const isDead = (viewer: LiveViewer) => (): boolean => viewer.all('deaths').length > 0;
    const near = await LiveViewer.open(t, server);
    await near.until(isDead(near));
    const [death] = near.all('deaths');
    assert.match(death?.why ?? '', /the weights are missing/);
    const latched = await near.snapshot(({ models }) => models[1]?.isLatched === true);
    assert.match(latched.models[1]?.workers[0]?.failure?.message ?? '', /the weights are missing/);
    assert.deepEqual([latched.server.state, latched.models[1]?.state], ['ready', 'unhealthy']);
    const proxied = await LiveViewer.open(t, server, { 'x-forwarded-for': '10.0.0.7' });
    await proxied.until(isDead(proxied));
    assert.deepEqual(proxied.last('viewer'), { needsKey: false, hidden: 'proxied', management: null });
    const snapshot = await proxied.snapshot();
    const text = JSON.stringify([proxied.all('deaths'), snapshot]);
    assert.doesNotMatch(text, /weights/);
    assert.match(text, /SERVE_INIT_FAILED|SERVE_APP_INVALID|SERVE_CRASH_LOOP/);
    await server.stop();
  },
);

test('the last lines of stderr are there, such as the native stack of a crash', LIMIT, async (t) => {
  const cues = makeCues(t);
  const server = await startHere(fixture('killable.mjs'), { t, expectedRestarts: 1, env: cues.env });
  await server.until(({ state }) => state === 'ready');
  const viewer = await LiveViewer.open(t, server);
  await ask(server, { dies: 'abort' });
  await viewer.until(() => viewer.all('deaths').length > 0);
  assert.match(viewer.all('deaths')[0]?.stderr.join('\n') ?? '', /Native stack trace|libc|node::|v8::/i);
  await server.stop();
});

test('jobs are listed by state, newest first', LIMIT, async (t) => {
  const server = await startHere(fixture('refuses-potassium.mjs'), { t });
  await server.until(({ state }) => state === 'ready');
  const viewer = await LiveViewer.open(t, server);
  const body = JSON.stringify({ how: 'throws an HttpError' });
  await call(`${server.url}/later`, body);
  const { jobs } = await viewer.snapshot(({ jobs }) => jobs?.[0]?.state === 'failed');
  const [job] = jobs ?? [];
  assert.deepEqual([job?.route, job?.state, job?.error?.code], ['/later', 'failed', 'SERVE_HTTP_ERROR']);
  const later = await LiveViewer.open(t, server);
  await later.snapshot();
  assert.equal(later.last('samples').jobs[0]?.id, job?.id);
  const behindProxy = await LiveViewer.open(t, server, { 'x-forwarded-for': '10.0.0.7' });
  await behindProxy.snapshot();
  const [hidden] = behindProxy.last('samples').jobs;
  assert.deepEqual([hidden?.id, hidden?.state, hidden?.error?.message], ['', 'failed', '']);
  await server.stop();
});

test('with a key the data needs it', LIMIT, async (t) => {
  const server = await startHere(fixture('works.mjs'), { t, args: ['--api-key', KEY] });
  assert.equal((await fetch(`${server.url}/_k/live`)).status, 401);
  const headers = { authorization: `Bearer ${KEY}`, 'x-forwarded-for': '10.0.0.7' };
  const viewer = await LiveViewer.open(t, server, headers);
  await viewer.snapshot();
  assert.deepEqual(viewer.last('viewer'), { needsKey: true, hidden: null, management: null });
  await server.stop();
});

test('there are at most 100 viewers, and the next gets 503 with Retry-After', LIMIT, async (t) => {
  const server = await startHere(fixture('works.mjs'), { t });
  const viewers = await Promise.all(Array.from({ length: 100 }, () => RawConnection.open(server)));
  t.after(() => viewers.forEach((viewer) => viewer.destroy()));
  for (const viewer of viewers) viewer.get('/_k/live');
  await Promise.all(viewers.map((viewer) => viewer.received('event: samples')));
  const refused = await fetch(`${server.url}/_k/live`);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '10']);
  assert.match(await refused.text(), /SERVE_OVERLOADED/);
  viewers[0]?.destroy();
  await eventually(
    async () => {
      const leaving = new AbortController();
      const { status } = await fetch(`${server.url}/_k/live`, { signal: leaving.signal });
      leaving.abort();
      return status === 200;
    },
    60_000,
    () => 'no place is free',
  );
  await server.stop();
});

describe('a drain', LIMIT, () => {
  test('is seen by viewers, is not held up by them, and its end is shown', async (t) => {
    const cues = makeCues(t);
    const server = await startHere(fixture('works.mjs'), { t, env: cues.env });
    await server.until(({ state }) => state === 'ready');
    const viewer = await LiveViewer.open(t, server);
    await viewer.snapshot();
    const held = ask(server, { until: 'let go' }, { id: 'held' });
    await cues.untilNoted('begun held');
    server.process.kill('SIGTERM');
    await viewer.snapshot(({ server }) => server.state === 'draining');
    cues.give('let go');
    assert.equal((await held).status, 200);
    await viewer.ended;
    assert.deepEqual(viewer.last('end'), { reason: 'drained' });
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });
});

test('--no-page takes away the data', LIMIT, async (t) => {
  const server = await startHere(fixture('works.mjs'), { t, args: ['--no-page'] });
  await server.until(({ state }) => state === 'ready');
  assert.equal((await fetch(`${server.url}/_k/live`)).status, 404);
  await server.stop();
});
