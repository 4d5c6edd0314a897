/** Predictions in Cog's form: calls whose client waits, and jobs; whose paths they are; the published client of Replicate. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import Replicate from 'replicate';
import { makeCues } from '../helpers/cues.js';
import { cancelJob } from '../helpers/jobs.js';
import { startReceiver, type Receiver } from '../helpers/receiver.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { eventually, fixture, startServer, type Server } from '../helpers/server.js';
import { startHere } from '../helpers/here.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const ASYNC = { prefer: 'respond-async' };

interface Prediction {
  readonly id?: string;
  readonly status?: string;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly error?: string | null;
  readonly logs?: string;
  readonly created_at?: string;
  readonly started_at?: string | null;
  readonly completed_at?: string | null;
  readonly metrics?: { readonly predict_time: number };
  readonly detail?: unknown;
}

async function ask(
  { url }: { readonly url: string },
  line: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; headers: Headers; json: Prediction }> {
  const [method = '', path = ''] = line.split(' ');
  const reply = await fetch(url + path, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  });
  return { status: reply.status, headers: reply.headers, json: (await reply.json()) as Prediction };
}

/** Whether these are dates, in this order. */
function areInOrder(...dates: readonly (string | null | undefined)[]): boolean {
  const times = dates.map((date) => Date.parse(date ?? ''));
  return times.every((time, i) => time >= (times[i - 1] ?? 0));
}

function posted(receiver: Receiver): Prediction[] {
  return receiver.arrivals.map(({ body }) => JSON.parse(String(body)) as Prediction);
}

withEachRuntime(({ app }) => {
  describe('an app called as Cog calls its own', LIMIT, () => {
    const shared = shareHere(app('tiny-format'));
    const send = (line: string, body?: unknown, headers = {}) => ask(shared.server, line, body, headers);

    test('answers a client that waits with the prediction, and gets an empty input without one', async () => {
      const input = { a: ['é'] };
      const { status, json } = await send('POST /predictions', { input });
      const { id, created_at, started_at, completed_at, metrics, ...rest } = json;
      assert.equal(status, 200);
      assert.deepEqual(rest, { status: 'succeeded', input, output: input, error: null });
      assert.ok(id !== undefined && areInOrder(created_at, started_at, completed_at));
      assert.ok((metrics?.predict_time ?? -1) >= 0);
      assert.equal((await send('POST /predictions', { id: 'mine', input })).json.id, 'mine');
      assert.deepEqual((await send('POST /predictions')).json.input, {});
    });

    const rows: readonly (readonly [way: string, output: unknown])[] = [
      ['a value', { way: 'a value' }],
      ['a Response', { way: 'a Response' }],
      ['a Response of bytes', 'plain'],
      ['a stream', ['a']],
      ['a stream of bytes', ['data:application/octet-stream;base64,YQ==']],
    ];
    for (const [way, output] of rows)
      test(`${way} is the output, for a client that waits and in a job`, async () => {
        for (const headers of [{}, { prefer: 'wait' }]) {
          const { json } = await send('POST /predictions', { input: { way } }, headers);
          assert.deepEqual([json.status, json.output], ['succeeded', output]);
        }
      });

    test('tells a prediction that fails as one, with status 200, whether its client waits or not', async () => {
      for (const headers of [{}, { prefer: 'wait=20' }]) {
        const { status, json } = await send(
          'POST /predictions',
          { input: { way: 'a thrown Response' } },
          headers,
        );
        assert.deepEqual([status, json.status, json.output], [200, 'failed', null]);
        assert.equal(json.error, '{"way":"a thrown Response"}');
      }
      const thrown = await send('POST /predictions', { input: { way: 'an error' } }, { prefer: 'wait' });
      assert.deepEqual([thrown.json.status, thrown.json.error], ['failed', 'The model failed on this call.']);
    });
  });
});

/** The front's alone: pages, webhooks, cancelling and refusals. */
withOneRuntime(({ app }) => {
  describe('one server', LIMIT, () => {
    const shared = shareHere(app('jobs'), { args: ['--openapi-all'] });
    const send = (line: string, body?: unknown, headers = {}) => ask(shared.server, line, body, headers);

    test('has a page for a prediction whose client does not wait', async () => {
      const { cues } = shared;
      const input = { until: 'go', result: 7 };
      const started = await send('POST /predictions', { input }, ASYNC);
      const { id, status, created_at } = started.json;
      assert.deepEqual([started.status, status, started.json.output], [202, 'starting', null]);
      assert.equal(started.headers.get('location'), `/predictions/${id}`);
      await cues.untilNoted(/^begun/);
      const running = (await send(`GET /predictions/${id}`)).json;
      assert.deepEqual([running.status, running.created_at], ['processing', created_at]);
      cues.give('go');
      const ended = await send(`PUT /predictions/x-${id}`, { input: { result: 8 } });
      assert.equal(ended.json.output, 8, 'the only worker was free again');
      const page = (await send(`GET /predictions/${id}`)).json;
      assert.deepEqual([page.id, page.status, page.input, page.output], [id, 'succeeded', input, 7]);
      assert.ok(areInOrder(page.created_at, page.started_at, page.completed_at));
    });

    test('makes a prediction once for an id, and answers who repeats it with its state', async () => {
      const { cues } = shared;
      const input = { until: 'go', result: 1 };
      const first = send('PUT /predictions/once', { input });
      await cues.untilNoted(/^begun/);
      const again = await send('PUT /predictions/once', { input });
      assert.deepEqual([again.status, again.json.id, again.json.status], [202, 'once', 'processing']);
      cues.give('go');
      const { status, json } = await first;
      assert.deepEqual([status, json.id, json.output], [200, 'once', 1]);
      const late = await send('PUT /predictions/once', { input }, ASYNC);
      assert.deepEqual([late.status, late.json.output], [200, 1]);
      assert.equal((await send('GET /predictions/once')).json.output, 1);
      assert.equal(cues.notes().filter((note) => note.startsWith('begun')).length, 1);
      const other = await send('PUT /predictions/once', { input: {} });
      assert.equal(other.status, 422);
    });

    test('cancels a prediction that waits or runs, and none that it does not know', async () => {
      const { cues } = shared;
      await send('PUT /predictions/runs', { input: { until: 'never' } }, ASYNC);
      await cues.untilNoted(/^begun/);
      await send('PUT /predictions/waits', { input: {} }, ASYNC);
      const waiting = await send('POST /predictions/waits/cancel');
      assert.deepEqual([waiting.status, waiting.json.id, waiting.json.status], [200, 'waits', 'canceled']);
      assert.equal((await send('POST /predictions/runs/cancel')).status, 200);
      await cues.untilNoted(/^aborted/);
      const { json } = await send('PUT /predictions/after', { input: { result: 1 } });
      assert.equal(json.status, 'succeeded');
      assert.equal((await send('GET /predictions/runs')).json.status, 'canceled');
      assert.equal((await send('POST /predictions/unknown/cancel')).status, 404);
    });

    test('posts the begin and the end to the webhook of a prediction, as far as its filter says', async (t) => {
      const receiver = await startReceiver(t);
      const { url: webhook } = receiver;
      const filtered = (webhook_events_filter: unknown, input: object) =>
        send('POST /predictions', { input, webhook, webhook_events_filter }, { prefer: 'wait=20' });
      const { json } = await filtered(['start', 'completed'], { result: 1 });
      await receiver.until(2);
      const both = posted(receiver).sort((a, b) => (a.status ?? '').localeCompare(b.status ?? ''));
      assert.deepEqual(
        both.map(({ id, status, output }) => [id, status, output]),
        [
          [json.id, 'processing', null],
          [json.id, 'succeeded', 1],
        ],
      );
      await filtered(['output'], { status: 400 }); // has no output
      await filtered([], { result: 2 });
      await filtered(null, { failing: 1 });
      await receiver.until(4);
      await filtered(['output', 'logs'], { result: 3 });
      await receiver.until(5);
      assert.deepEqual(
        posted(receiver)
          .slice(2)
          .map(({ status, output }) => [status, output])
          .sort(),
        [
          ['failed', null],
          ['processing', null],
          ['succeeded', 3],
        ],
      );
    });

    test('a webhook of a client that waits is posted as well, wherever it is in the body', async (t) => {
      const receiver = await startReceiver(t);
      const input = { result: 'x'.repeat(3 * 2 ** 20) };
      const { status, json } = await send('POST /predictions', { input, webhook: receiver.url });
      assert.deepEqual([status, json.status, json.output], [200, 'succeeded', input.result]);
      await receiver.until(2);
      const told = posted(receiver).map(({ id, status: state, output }) => [id, state, output]);
      assert.deepEqual(told.sort(), [
        [json.id, 'processing', null],
        [json.id, 'succeeded', input.result],
      ]);
      assert.equal((await send(`GET /predictions/${json.id}`)).status, 200);
      const failed = await send('POST /predictions', { webhook: receiver.url, input: { failing: 1 } });
      assert.deepEqual([failed.status, failed.json.status], [200, 'failed']);
      await receiver.until(4);
    });

    test('a client that leaves while the front looks for a webhook in its body keeps no worker', async () => {
      const body = `{"input":{"until":"never","more":[${'1,'.repeat(4 * 2 ** 20)}1]}}`;
      const { url, until } = shared.server;
      const arriving = (count: number) => until(({ models }) => models[0]?.queue.arriving === count);
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      socket.write(`POST /predictions HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`);
      await arriving(1);
      await new Promise((resolve) => socket.write(body, resolve));
      socket.destroy();
      await arriving(0);
      const { json } = await send('POST /predictions', { input: { result: 1 } });
      assert.equal(json.output, 1);
    });

    const webhook = 'http://127.0.0.1:9';
    const rows: readonly (readonly [line: string, body: object, prefer: string, field: string | null])[] = [
      ['POST', [], '', null],
      ['POST', { webhook: 'ftp://x' }, '', 'webhook'],
      ['POST', [], 'respond-async', null],
      ['POST', { webhook: 'ftp://x' }, 'respond-async', 'webhook'],
      ['POST', { webhook: 1 }, 'respond-async', 'webhook'],
      ['POST', { webhook, webhook_events_filter: ['begin'] }, 'respond-async', 'webhook_events_filter'],
      ['POST', { webhook, webhook_events_filter: 'start' }, 'respond-async', 'webhook_events_filter'],
      ['POST', { id: 'a b' }, 'respond-async', 'id'],
      ['PUT', { id: 'other' }, '', 'id'],
    ].map((row) => row as never);
    for (const [method, body, prefer, field] of rows)
      test(`${method} with ${JSON.stringify(body)} ${prefer} is 422, and names ${field ?? 'the body'}`, async () => {
        const path = method === 'PUT' ? '/predictions/mine' : '/predictions';
        const { status, json } = await send(`${method} ${path}`, body, { prefer });
        const [{ loc } = { loc: null }] = json.detail as { loc: unknown }[];
        assert.deepEqual([status, loc], [422, field === null ? ['body'] : ['body', field]]);
      });

    test('events are not streamed', async () => {
      const { status } = await send('POST /predictions', {}, { accept: 'text/event-stream' });
      assert.equal(status, 406);
    });

    test('a body that is not valid JSON is refused by the worker, with a webhook before the mistake, too', async () => {
      const [without, named] = await Promise.all(
        ['{"a":1,oops', '{"webhook":"http://127.0.0.1:9","b":1,oops'].map(async (body) => {
          const reply = await fetch(`${shared.server.url}/predictions`, { method: 'POST', body });
          return [reply.status, (await reply.text()).replace(/\d+/g, '0')];
        }),
      );
      assert.equal(without?.[0], 422);
      assert.deepEqual(named, without);
    });

    test('only who may read the words of the app may name a webhook', async () => {
      for (const prefer of [ASYNC, {}]) {
        const headers = { ...prefer, 'x-forwarded-for': '203.0.113.9' };
        const { status } = await send('POST /predictions', { webhook }, headers);
        assert.equal(status, 403);
      }
    });

    test('a page of another origin cancels nothing', async () => {
      const headers = { origin: 'http://elsewhere.example' };
      const { status } = await send('POST /predictions/x/cancel', undefined, headers);
      assert.equal(status, 403);
    });

    test('health-check is READY, and BUSY while its worker has a call', async () => {
      const { cues } = shared;
      const word = async () => (await send('GET /health-check')).json.status;
      assert.equal(await word(), 'READY');
      const running = send('POST /predictions', { input: { until: 'go' } });
      await cues.untilNoted(/^begun/);
      assert.equal(await word(), 'BUSY');
      cues.give('go');
      await running;
      assert.equal(await word(), 'READY');
    });

    test('jobs of others are no predictions', async () => {
      const { server } = shared;
      const headers = { ...ASYNC, 'content-type': 'application/json' };
      const started = await fetch(server.url, { method: 'POST', body: '{}', headers });
      const id = started.headers.get('x-banana-job-id') ?? '';
      assert.equal((await send(`GET /predictions/${id}`)).status, 404);
      await cancelJob(server, id);
    });

    test('openapi.json describes predictions, with --openapi-all', async () => {
      const document = (await (await fetch(`${shared.server.url}/openapi.json`)).json()) as { paths: object };
      assert.ok('/predictions' in document.paths);
    });

    const client = (): Replicate => new Replicate({ auth: 'any', baseUrl: shared.server.url });

    test("Replicate's client runs a model, and rejects with the error of one that fails", async () => {
      for (const wait of [{ mode: 'block' }, { mode: 'poll', interval: 10 }] as const)
        assert.deepEqual(await client().run('me/jobs:1', { input: { result: [1] }, wait }), [1]);
      await assert.rejects(client().run('me/jobs:1', { input: { failing: 1 } }), /Prediction failed/);
    });

    test("Replicate's client polls a prediction that does not end while it is held", async () => {
      const { cues } = shared;
      const { predictions } = client();
      const created = await predictions.create({ version: '1', input: { until: 'go', result: 1 }, wait: 1 });
      assert.equal(created.status, 'starting');
      await cues.untilNoted(/^begun/);
      assert.equal((await predictions.get(created.id)).status, 'processing');
      cues.give('go');
      assert.equal((await client().wait(created, { interval: 10 })).output, 1);
    });

    test("Replicate's client cancels a prediction", async () => {
      const { predictions } = client();
      const { id } = await predictions.create({ version: '1', input: { until: 'never' }, wait: 1 });
      assert.equal((await predictions.cancel(id)).id, id);
      const ended = await send('POST /predictions', { input: {} });
      assert.equal(ended.status, 200);
      assert.equal((await predictions.get(id)).status, 'canceled');
    });
  });

  test(
    'a job has what the app printed in it, for those who may read the words of the app',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startHere(app('prints-in-turns'), { t, env: cues.env });
      const page = async (id: string, headers = {}): Promise<string | undefined> =>
        (await ask(server, `GET /predictions/${id}`, undefined, headers)).json.logs;
      const untilLogged = (id: string, logs: string): Promise<void> =>
        eventually(
          async () => (await page(id)) === logs,
          60_000,
          () => id,
        );
      await ask(server, 'PUT /predictions/one', { input: { says: 'first', until: 'go' } }, ASYNC);
      await untilLogged('one', 'first\n'); // while it runs
      cues.give('go');
      await ask(server, 'PUT /predictions/two', { input: { says: 'second' } });
      await untilLogged('two', 'second\n');
      assert.equal(await page('one'), 'first\n');
      assert.equal(await page('one', { 'x-forwarded-for': '203.0.113.9' }), '');
      await server.stop();
    },
  );

  test('an input that its schema, or the app, refuses: 422, and the list of FastAPI', LIMIT, async (t) => {
    const server = await startHere(app('schemas'), { t });
    const { status, json } = await ask(server, 'POST /predictions', { input: { prompt: 1 } });
    const [{ loc, msg, type } = { loc: null, msg: '', type: '' }, ...more] = json.detail as {
      loc: unknown;
      msg: string;
      type: string;
    }[];
    assert.deepEqual([status, loc, type, more], [422, ['body', 'input', 'prompt'], 'value_error', []]);
    assert.match(msg, /string/);
    const refused = await ask(server, 'POST /predictions', { input: { prompt: 'a', how: 'refuses' } });
    assert.deepEqual(refused.json.detail, [
      { loc: ['body', 'input', 'prompt', 0], msg: 'unkind', type: 'value_error' },
    ]);
    const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: object };
    assert.ok(!('/predictions' in document.paths), 'only with --openapi-all');
    await server.stop();
  });

  test('health-check of an app that cannot load is SETUP_FAILED', LIMIT, async (t) => {
    const args = ['--model', `works=${app('works')}`, '--restart-limit', '0'];
    const broken = await startHere(app('throws-in-init'), { t, args });
    await broken.until(({ models }) => models.some(({ state }) => state === 'unhealthy'));
    assert.equal((await ask(broken, 'GET /health-check')).json.status, 'SETUP_FAILED');
    await broken.stop();
  });
});

test('predictions and their webhooks outlive the server with --jobs local', LIMIT, async (t) => {
  const receiver = await startReceiver(t);
  const folder = mkdtempSync(join(tmpdir(), 'banana-cog-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const cues = makeCues(t);
  const start = (): Promise<Server> =>
    startServer(fixture('jobs.mjs'), { t, args: ['--jobs', `local:${folder}`], env: cues.env });
  const killed = await start();
  const body = { input: { until: 'never' }, webhook: receiver.url };
  assert.equal((await ask(killed, 'PUT /predictions/lost', body, ASYNC)).status, 202);
  await cues.untilNoted(/^begun/);
  await receiver.until(1);
  killed.process.kill('SIGKILL');
  await killed.ended;
  const next = await start();
  const told = (): (string | undefined)[] => posted(receiver).map(({ status }) => status);
  await eventually(
    () => told().includes('failed'),
    60_000,
    () => told().join(', '),
  );
  assert.deepEqual([...new Set(told())], ['processing', 'failed'], 'a kill may send one again');
  const { status, json } = await ask(next, 'PUT /predictions/lost', body);
  assert.deepEqual(
    [status, json.error],
    [200, 'The server ended while this job ran; it may have run to any point.'],
  );
  await next.stop();
});
