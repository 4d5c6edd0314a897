/** Background calls: answered at once, run in their turn, asked for by id, and never dropped without a word. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { describe, test, type TestContext } from 'node:test';
import { errorOf, logLines } from '../helpers/ask.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import {
  endOf,
  jobIdOf,
  jobOf,
  post,
  potassiumStatus,
  startJob,
  untilPotassium,
} from '../helpers/potassium.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { startServer, type Server } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };

interface Started {
  readonly server: Server;
  readonly cues: Cues;
}

/** Each answer of a background function, with the state and the record of its job. */
const ENDS = [
  ['a status', 'succeeded', { status: 201, encoding: 'json', result: { made: true } }],
  ['bytes', 'succeeded', { encoding: 'base64', contentType: 'application/octet-stream', result: 'AQL/' }],
  ['text', 'succeeded', { encoding: 'base64', contentType: 'text/plain; charset=utf-8', result: 'dGV4dA==' }],
  ['late chunks', 'succeeded', { status: 203, encoding: 'base64', result: 'YWI=' }],
  ['empty', 'succeeded', { status: 200, result: '' }],
  ['a throw', 'failed', { result: null }],
  ['a throw after a chunk', 'failed', { result: null }],
] as const;

async function start(
  app: string,
  t: TestContext,
  args: readonly string[] = [],
  startOne = startHere,
): Promise<Started> {
  const cues = makeCues(t);
  const server = await startOne(app, { t, args, env: cues.env });
  return { server, cues };
}

withEachRuntime(({ potassium }) => {
  describe('on one server', () => {
    const shared = shareHere(potassium(), { args: ['--log-format', 'json'], expectedRestarts: 2 });

    test('every error line of a call has its route, method, path, client and status', LIMIT, async () => {
      const { server } = shared;
      await post(server, '/answer', 'a throw', 'thrown');
      await endOf(server, await startJob(server, '/later', { throws: 'x' }, 'failed-job'));
      await post(server, '/work', { dies: 'exit 7' }, 'died');
      await server.untilPrinted('worker 0 died');
      const ids: unknown[] = ['thrown', 'failed-job', 'died'];
      const lines = logLines(server).filter(({ requestId }) => ids.includes(requestId));
      assert.deepEqual(
        lines.map(({ requestId, route, method, path, client, status }) => [
          requestId,
          route,
          method,
          path,
          client,
          status,
        ]),
        [
          ['thrown', '/answer', 'POST', '/answer', '127.0.0.1', 500],
          ['failed-job', '/later', 'POST', '/later', '127.0.0.1', 500],
          ['failed-job', '/later', 'POST', '/later', '127.0.0.1', 500],
          ['died', '/work', 'POST', '/work', '127.0.0.1', undefined],
        ],
      );
      assert.match(String(lines[2]?.['msg']), /^the background job \S+ of \/later failed/);
      assert.match(String(lines[3]?.['msg']), /^worker 0 died .* while running call died of \/work/);
      await server.until(({ state }) => state === 'ready');
    });

    test('a job ends as what its function answers with, and keeps that', LIMIT, async () => {
      const { server } = shared;
      for (const [kind, state, facts] of ENDS) {
        const job = await endOf(server, await startJob(server, '/later-answer', kind));
        assert.equal(job.state, state, kind);
        for (const [name, value] of Object.entries(facts))
          assert.deepEqual(job[name as keyof typeof job], value, `${name} of ${kind}`);
        assert.equal(job.error?.code, state === 'failed' ? 'SERVE_INFERENCE_FAILED' : undefined, kind);
        assert.equal(job.error?.source, state === 'failed' ? 'app' : undefined, kind);
      }
      assert.equal((await post(server, '/', {})).status, 200, 'the server is well');
    });

    test('bad JSON too large to be read in the front fails the job', LIMIT, async () => {
      const { server } = shared;
      const reply = await fetch(`${server.url}/later`, {
        method: 'POST',
        body: `{${' '.repeat(1024 * 1024)}`,
        headers: { 'content-type': 'application/json' },
      });
      const job = await endOf(server, reply.headers.get('x-banana-job-id') as string);
      assert.deepEqual([job.state, job.error?.code], ['failed', 'SERVE_BAD_BODY']);
    });

    test('a job whose worker dies is lost, those behind it run', LIMIT, async () => {
      const { server } = shared;
      const first = await startJob(server, '/later', { dies: 'SIGKILL' }, 'doomed');
      const second = await startJob(server, '/later', { result: 5 }, 'behind');
      const lost = await endOf(server, first);
      assert.deepEqual([lost.state, lost.error?.code, lost.result], ['lost', 'SERVE_WORKER_LOST', null]);
      assert.equal(lost.error?.source, 'server');
      const behind = await endOf(server, second);
      assert.deepEqual([behind.state, behind.result], ['succeeded', 5]);
      await untilPotassium(server, ({ gpu_available }) => gpu_available);
    });
  });
});

withOneRuntime(({ potassium }) => {
  test('--run-timeout ends a background job as any other', LIMIT, async (t) => {
    const { server } = await start(potassium(), t, ['--run-timeout', '300ms']);
    const job = await endOf(server, await startJob(server, '/later', { until: 'never' }));
    assert.deepEqual([job.state, job.error?.code], ['failed', 'SERVE_INFERENCE_TIMEOUT']);
    await untilPotassium(server, ({ gpu_available }) => gpu_available);
    await server.stop();
  });

  describe('on one server', () => {
    const shared = shareHere(potassium());

    test('a job is queued, running, succeeded; its result is kept', LIMIT, async () => {
      const { server, cues } = shared;
      const first = await startJob(server, '/later', { until: 'first', result: { a: 'é' } }, 'first');
      const second = await startJob(server, '/later', {}, 'second');
      assert.notEqual(first, second);
      await cues.untilNoted('begun first');
      assert.deepEqual(
        [(await jobOf(server, first)).state, (await jobOf(server, second)).state],
        ['running', 'queued'],
      );
      const busy = await untilPotassium(server, ({ inference_time }) => inference_time > 0);
      assert.deepEqual([busy.gpu_available, busy.idle_time], [false, 0]);
      cues.give('first');
      const ended = await endOf(server, first);
      assert.deepEqual([ended.state, ended.result, ended.error], ['succeeded', { a: 'é' }, null]);
      assert.deepEqual(
        [ended.requestId, ended.route, ended.status, ended.encoding],
        ['first', '/later', 200, 'json'],
      );
      assert.equal(
        (await endOf(server, second)).result,
        null,
        'a function that returns nothing has no result',
      );
      await untilPotassium(server, ({ gpu_available }) => gpu_available);
    });

    test('a client that leaves, and a deadline that passes, do not end a background job', LIMIT, async () => {
      const { server, cues } = shared;
      const id = await new Promise<string>((resolve, reject) => {
        const headers = { 'content-type': 'application/json', 'x-request-timeout-seconds': '4' };
        const call = httpRequest(`${server.url}/later`, { method: 'POST', headers }, (response) => {
          resolve(response.headers['x-banana-job-id'] as string);
          response.destroy();
        });
        call.on('error', reject);
        call.end('{"until":"go on","result":1}');
      });
      // Its own deadline is the proof that a deadline of 4 s that began before it has passed.
      const other = await post(server, '/work', {}, 'other', { 'x-request-timeout-seconds': '4.1' });
      assert.equal(errorOf(other).code, 'SERVE_DEADLINE');
      assert.equal((await jobOf(server, id)).state, 'running');
      cues.give('go on');
      assert.deepEqual([(await endOf(server, id)).state, (await endOf(server, id)).result], ['succeeded', 1]);
      assert.deepEqual(
        cues.notes().filter((line) => line.startsWith('aborted')),
        [],
      );
    });
  });

  test(
    'cold start of several workers: background calls are answered once the routes are known, not when a worker is ready',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('import may not end');
      cues.give('init may not end');
      const options = { t, env: cues.env, args: ['--workers', '3'] };
      const server = await startHere(potassium(), options);
      const early = [1, 2, 3].map((i) => post(server, '/later', { result: i }, `early-${i}`));
      const lost = post(server, '/nope', {});
      const wrong = post(server, '/later', {}, 'wrong', { 'content-type': 'text/plain' });
      await server.until(({ model }) => model.queue.arriving === 5);
      cues.give('import may end');
      const ids = (await Promise.all(early)).map(jobIdOf);
      assert.equal((await lost).status, 404);
      assert.equal((await wrong).status, 400);
      assert.equal((await potassiumStatus(server)).workers_ready, 0, 'init still runs');
      assert.equal((await jobOf(server, ids[0] as string)).state, 'queued');
      assert.equal((await potassiumStatus(server)).sequence_number, 5);
      cues.give('init may end');
      const results: unknown[] = [];
      for (const id of ids) results.push((await endOf(server, id)).result);
      assert.deepEqual(results, [1, 2, 3]);
      await untilPotassium(server, ({ workers_ready }) => workers_ready === 3);
      await server.stop();
      assert.doesNotMatch(server.stderr(), /ERR_HTTP_HEADERS_SENT|a request handler failed/);
    },
  );

  test('a client that leaves before the routes are known takes its call along', LIMIT, async (t) => {
    const cues = makeCues(t);
    cues.give('import may not end');
    const server = await startHere(potassium(), { t, env: cues.env });
    const call = httpRequest(`${server.url}/later`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    call.on('error', () => {});
    call.end('{}');
    await once(call, 'finish');
    await server.until(({ model }) => model.queue.arriving === 1);
    call.destroy();
    await server.until(({ model }) => model.queue.arriving === 0);
    cues.give('import may end');
    assert.equal((await post(server, '/work', {}, 'next')).status, 200);
    assert.deepEqual(cues.notes(), ['begun next', 'done next']);
    await server.stop();
  });

  test('SIGTERM: background jobs are run to their end, waiting ones too', LIMIT, async (t) => {
    const { server, cues } = await start(potassium(), t, ['--drain-lag', '0s']);
    await startJob(server, '/later', { until: 'go on' }, 'running');
    await cues.untilNoted('begun running');
    await startJob(server, '/later', {}, 'waiting');
    server.process.kill('SIGTERM');
    await server.until(({ state }) => state === 'draining');
    const refused = await post(server, '/later', {}, 'late');
    assert.deepEqual([refused.status, errorOf(refused).code], [503, 'SERVE_SHUTTING_DOWN']);
    cues.give('go on');
    assert.deepEqual(await server.ended, { code: 0, signal: null });
    assert.deepEqual(cues.notes(), ['begun running', 'done running', 'begun waiting', 'done waiting']);
  });

  test('SIGTERM: what --drain-timeout cuts is reported by id', LIMIT, async (t) => {
    const args = ['--drain-lag', '0s', '--drain-timeout', '1s', '--log-format', 'json'];
    const { server, cues } = await start(potassium(), t, args);
    const running = await startJob(server, '/later', { until: 'never' }, 'running');
    await cues.untilNoted('begun running');
    const waiting = await startJob(server, '/later', {}, 'waiting');
    server.process.kill('SIGTERM');
    assert.equal((await server.ended).code, 5);
    const line = logLines(server).find(({ jobs }) => jobs !== undefined);
    assert.deepEqual(line?.['jobs'], [running, waiting]);
    assert.match(String(line?.['msg']), /background jobs cut off: /);
  });

  test('a second SIGTERM reports by id what it cuts', LIMIT, async (t) => {
    const { server, cues } = await start(
      potassium(),
      t,
      ['--drain-lag', '0s', '--log-format', 'json'],
      startServer,
    );
    const running = await startJob(server, '/later', { until: 'never' }, 'running');
    await cues.untilNoted('begun running');
    server.process.kill('SIGTERM');
    await server.until(({ state }) => state === 'draining');
    server.process.kill('SIGTERM');
    assert.equal((await server.ended).code, 143);
    const line = logLines(server).find(({ jobs }) => jobs !== undefined);
    assert.deepEqual(line?.['jobs'], [running]);
  });
});
