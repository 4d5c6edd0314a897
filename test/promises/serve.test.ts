/** A server with two workers: calls, pages, the queue, limits, and clients that leave. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { call, fixture, type Answer } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

interface Echo {
  readonly input: unknown;
  readonly pid: number;
}

describe('a server with two workers', { timeout: 240_000 }, () => {
  const args = ['--workers', '2', '--queue-size', '2', '--max-body', '1kb', '--metrics'];
  const shared = shareServer(fixture('works.mjs'), { args });

  /** Two calls that run until the cue `go`, one in each worker. */
  async function occupy(): Promise<Promise<Answer>[]> {
    await shared.server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
    const running = ['a', 'b'].map((id) => ask(shared.server, { until: 'go' }, { id }));
    for (const id of ['a', 'b']) await shared.cues.untilNoted(`begun ${id}`);
    return running;
  }

  test('a POST is answered with what the app returns, as JSON, with its id and its times', async () => {
    const answer = await ask(shared.server, { text: 'ü' }, { id: 'my-id' });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.json<Echo>().input, { text: 'ü' });
    assert.equal(answer.headers.get('content-type'), 'application/json');
    assert.equal(answer.headers.get('x-request-id'), 'my-id');
    assert.match(answer.headers.get('server-timing') ?? '', /^queue;dur=[\d.]+, run;dur=[\d.]+$/);
    const another = await ask(shared.server, {});
    assert.match(another.headers.get('x-request-id') ?? '', /^[0-9a-f]{32}$/);
  });

  for (const [request, status, code] of [
    ['GET /livez', 200],
    ['GET /readyz', 200],
    ['GET /healthcheck', 200],
    ['GET /status', 200],
    ['GET /', 405, 'SERVE_METHOD_NOT_ALLOWED'],
    ['POST /livez', 405, 'SERVE_METHOD_NOT_ALLOWED'],
    ['POST /nowhere', 404, 'SERVE_NOT_FOUND'],
  ] as const)
    test(`${request} is ${status}${code === undefined ? '' : ` ${code}`}`, async () => {
      const [method = '', path = ''] = request.split(' ');
      const response = await fetch(shared.server.url + path, { method });
      const body = (await response.json()) as { error?: { code: string } };
      assert.deepEqual([response.status, body.error?.code], [status, code]);
    });

  test('two calls run at once, each in a worker of its own', async () => {
    const running = await occupy();
    shared.cues.give('go');
    const pids = (await Promise.all(running)).map((answer) => answer.json<Echo>().pid);
    assert.equal(new Set(pids).size, 2);
  });

  test('while all workers are busy, calls wait; those that the queue has no place for get 503', async () => {
    const running = await occupy();
    const waiting = ['c', 'd'].map((id) => ask(shared.server, { until: 'go' }, { id }));
    await shared.server.until(({ model }) => model.queue.waiting === 2);
    const refused = await ask(shared.server, {}, { id: 'refused' });
    assert.deepEqual([refused.status, errorOf(refused).code], [503, 'SERVE_QUEUE_FULL']);
    assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
    shared.cues.give('go');
    for (const answer of await Promise.all([...running, ...waiting])) assert.equal(answer.status, 200);
    const begun = shared.cues.notes().sort();
    assert.deepEqual(begun, ['begun a', 'begun b', 'begun c', 'begun d'], 'each once; the refused one never');
  });

  test('a call that runs past its deadline gets 504, and the app is asked to end it', async () => {
    const headers = { 'x-request-timeout-seconds': '0.2' };
    const late = await ask(shared.server, { until: 'never' }, { id: 'late', headers });
    assert.deepEqual([late.status, errorOf(late).code], [504, 'SERVE_DEADLINE']);
  });

  test('the app is asked to end a call whose client has left', async () => {
    const leaving = new AbortController();
    const left = ask(shared.server, { until: 'never' }, { id: 'left', signal: leaving.signal });
    await shared.cues.untilNoted('begun left');
    leaving.abort();
    await assert.rejects(left);
    await shared.cues.untilNoted(/^aborted left: the client/);
  });

  test('a body above --max-body is 413, and the app never sees it', async () => {
    const answer = await ask(shared.server, 'x'.repeat(2000), { id: 'large' });
    assert.deepEqual([answer.status, errorOf(answer).code], [413, 'SERVE_BODY_TOO_LARGE']);
    assert.deepEqual(shared.cues.notes(), []);
  });

  test('/status and /metrics count the calls', async () => {
    const before = (await shared.server.status()).replies['ok'] ?? 0;
    for (let i = 0; i < 3; i += 1) assert.equal((await call(shared.server.url, '{}')).status, 200);
    await shared.server.until(({ replies }) => replies['ok'] === before + 3);
    const metrics = await (await fetch(`${shared.server.url}/metrics`)).text();
    assert.match(metrics, new RegExp(`^banana_calls_total\\{.*code="ok".*\\} ${before + 3}$`, 'm'));
  });
});
