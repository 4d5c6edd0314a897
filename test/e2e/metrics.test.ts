/** `GET /metrics` of a real server: where it is, who may ask, and that it counts what happens. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import { tableRows } from '../helpers/doc-page.js';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { holdPort } from '../helpers/held-port.js';
import { startManagedCommand } from '../helpers/managed-command.js';
import { withNvidiaSmi } from '../helpers/fake-gpu.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { scrape, untilScraped } from '../helpers/scrape.js';
import { call, fixture, runCommand, type Server, type StartOptions } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const ECHO = fixture('echoes.mjs');
const DIGITS = { model: 'echoes', version: '1' };

async function start(t: TestContext, app: string, options: StartOptions = {}): Promise<Server> {
  const server = await startHere(app, { t, ...options });
  await server.until(({ state }) => state === 'ready');
  return server;
}

async function urlIn(server: Server, line: RegExp): Promise<string> {
  await server.untilPrinted(line);
  return line.exec(server.stderr())?.[1] as string;
}

const OWN_LISTENER = /metrics are on (\S+)\/metrics/;

describe('the address of metrics', LIMIT, () => {
  describe('--metrics-port', () => {
    let server: Server;
    let url: string;
    before(async () => {
      const args = ['--metrics-port', String(await holdPort()), '--api-key', 's3cret', '--cors-origin', '*'];
      server = await startHere(ECHO, { args });
      url = await urlIn(server, OWN_LISTENER);
    }, LIMIT);
    after(() => void server.process.kill('SIGKILL'));

    test('no page in a browser reads them on their own listener, neither by its origin nor by a name of its own', async () => {
      const cross = await fetch(`${url}/metrics`, { headers: { origin: 'https://evil.example' } });
      assert.equal(cross.headers.get('access-control-allow-origin'), null);
      for (const [host, status] of [
        ['evil.example', 403],
        ['evil.example:8082', 403],
        ['localhost:8082', 200],
      ] as const) {
        const request = `GET /metrics HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
        assert.equal((await RawConnection.ask({ url }, request)).status, status, host);
      }
    });

    test('shows them on a listener of their own, without a key, and nothing else there', async () => {
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
      assert.equal((await scrape(url)).sum('banana_info'), 1);
      const statusOf = async (path: string, method: string): Promise<number> =>
        (await fetch(`${url}${path}`, { method })).status;
      assert.equal(await statusOf('/', 'POST'), 404);
      assert.equal(await statusOf('/status', 'GET'), 404);
      assert.equal(await statusOf('/metrics', 'POST'), 405);
      assert.equal(await statusOf('/', 'OPTIONS'), 200);
      assert.equal(await statusOf('/metrics', 'OPTIONS'), 200);
      const headers = { 'X-BANANA-API-KEY': 's3cret' };
      assert.equal((await fetch(`${server.url}/metrics`, { headers })).status, 404, 'not on the main port');
      await server.stop();
      await assert.rejects(fetch(`${url}/metrics`), 'it closes with the server');
    });
  });

  test('a port for metrics that is taken starts nothing, and names the flag', async () => {
    const { ended, stderr } = runCommand([
      ECHO,
      '--port',
      '0',
      '--metrics-host',
      '192.0.2.1',
      '--metrics-port',
      '0',
    ]);
    assert.equal((await ended).code, 4);
    assert.match(stderr(), /--metrics-host and --metrics-port/);
  });

  test('--metrics shows them on the main port, to clients with the key of /status; a route of the app with the same path is still called by POST', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'banana-metrics-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const app = join(folder, 'app.mjs');
    writeFileSync(
      app,
      `import { Potassium, Response } from 'banana-serve/potassium';
const app = new Potassium('own');
app.handler('/metrics', () => new Response({ json: { own: true } }));
export default app;\n`,
    );
    const server = await startHere(app, { t, args: ['--metrics', '--api-key', 's3cret'] });
    await server.until(({ state }) => state === 'ready');
    assert.equal((await fetch(`${server.url}/metrics`)).status, 401);
    const key = { 'X-BANANA-API-KEY': 's3cret' };
    assert.equal((await scrape(server.url, key)).sum('banana_info'), 1);
    const headers = { Authorization: 'Bearer s3cret' };
    assert.equal((await fetch(`${server.url}/metrics`, { method: 'HEAD', headers })).status, 200);
    const answer = await call(`${server.url}/metrics`, '{}', { ...key, 'content-type': 'application/json' });
    assert.deepEqual(answer.json(), { own: true });
    assert.equal((await scrape(server.url, key)).sum('banana_calls_total', { code: 'ok' }), 1);
    await server.stop();
  });
});

withOneRuntime(({ app }) => {
  describe('metrics count', LIMIT, () => {
    test('calls, by model, version, dialect and code, and their times', async (t) => {
      const server = await startHere(app('echoes'), {
        t,
        args: ['--metrics', '--model', `second=${app('echoes')}`],
      });
      await server.until(({ models }) => models.every(({ state }) => state === 'ready'));
      for (let i = 0; i < 3; i += 1) await ask(server, {});
      await call(`${server.url}/predictions/second`, '{}');
      await call(`${server.url}/`, '{ not JSON');
      await call(`${server.url}/models/nobody/`, '{}');
      const found = await untilScraped(server.url, (one) => one.sum('banana_calls_total') === 6);
      const counted = found.find('banana_calls_total').map(({ labels, value }) => ({ ...labels, value }));
      assert.deepEqual(counted, [
        { ...DIGITS, dialect: 'banana', code: 'ok', value: 3 },
        { ...DIGITS, dialect: 'banana', code: 'SERVE_BAD_BODY', value: 1 },
        { model: 'second', version: '1', dialect: 'mms', code: 'ok', value: 1 },
        { model: '', version: '', dialect: 'banana', code: 'SERVE_MODEL_NOT_FOUND', value: 1 },
      ]);
      for (const name of ['queue', 'run', 'duration']) {
        const histogram = `banana_call_${name}_seconds`;
        const count = found.sum(`${histogram}_count`, DIGITS) as number;
        assert.ok(count >= 3, histogram);
        assert.equal(found.sum(`${histogram}_bucket`, { ...DIGITS, le: '+Inf' }), count);
        assert.ok((found.sum(`${histogram}_sum`, DIGITS) as number) > 0);
      }
      assert.equal(found.sum('banana_batch_size_sum', { model: 'second' }), 1);
      assert.equal(found.sum('banana_workers', { model: 'second', state: 'idle' }), 1);
      assert.equal(found.sum('banana_workers', { model: 'second', state: 'busy' }), 0);
      await server.stop();
    });

    test('calls that wait, and batches', async (t) => {
      const cues = makeCues(t);
      const args = ['--metrics', '--batch-size', '8'];
      const server = await startHere(app('batches'), { t, args, env: cues.env });
      const model = { model: 'batches' };
      const first = ask(server, { name: 'first', until: 'go' });
      await untilScraped(server.url, (one) => one.sum('banana_workers', { ...model, state: 'busy' }) === 1);
      const others = [1, 2, 3].map((i) => ask(server, { name: `${i}` }));
      const found = await untilScraped(server.url, (one) => one.sum('banana_queue_calls', model) === 3);
      assert.ok((found.sum('banana_queue_bytes', model) as number) > 0);
      assert.equal(found.sum('banana_in_flight_calls', model), 1);
      cues.give('go');
      for (const one of [first, ...others]) assert.equal((await one).status, 200);
      const after = await untilScraped(server.url, (one) => one.sum('banana_batch_size_sum', model) === 4);
      assert.equal(after.sum('banana_batch_size_count', model), 2);
      assert.equal(after.sum('banana_queue_bytes', model), 0);
      await server.stop();
    });

    test('a model that is unregistered takes its metrics with it', async (t) => {
      const { server, management } = await startManagedCommand(
        t,
        { args: ['--metrics'] },
        dirname(app('echoes')),
      );
      await management.manage(
        `POST /models?url=${basename(app('echoes'))}&initial_workers=1&synchronous=true`,
      );
      assert.equal((await management.infer('echoes')).status, 200);
      const model = { model: 'echoes' };
      await untilScraped(server.url, (one) => one.sum('banana_calls_total', model) === 1);
      assert.equal((await management.manage('DELETE /models/echoes')).status, 200);
      const found = await untilScraped(server.url, (one) => one.sum('banana_workers', model) === null);
      assert.deepEqual(
        found.samples.filter(({ labels }) => labels['model'] === 'echoes'),
        [],
      );
      await server.stop();
    });

    test('exactly those of docs/metrics.md: restarts by their cause, and the cards of the machine among them', async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'banana-metrics-'));
      t.after(() => rmSync(folder, { recursive: true }));
      const asked = join(folder, 'asked');
      const startedAtMs = performance.now();
      const budget = process.platform === 'linux' ? ['--memory-budget', '90%'] : [];
      const server = await start(t, app('killable'), {
        args: ['--metrics', ...budget],
        expectedRestarts: 1,
        env: withNvidiaSmi(t, asked),
      });
      process.kill((await server.status()).model.workers[0]?.pid as number, 'SIGKILL');
      await untilScraped(server.url, (one) => one.sum('banana_worker_restarts_total') === 1);
      await server.until(({ state }) => state === 'ready');
      for (let i = 0; i < 10; i += 1) await ask(server, {}); // enough to predict by
      const found = await untilScraped(
        server.url,
        (one) =>
          one.sum('banana_predicted_wait_seconds') !== null &&
          (budget.length === 0 || one.sum('banana_start_memory_bytes') !== null) &&
          one.sum('banana_gpu_utilization_ratio') !== null,
      );
      const rows = tableRows('metrics.md', 'What is measured', 'name');
      assert.deepEqual(
        [...found.types].sort(),
        rows.map(({ name, type }) => [name, type] as [string, string]).sort(),
      );
      for (const { name = '', type, labels = '' } of rows) {
        const one = found.find(type === 'histogram' ? `${name}_count` : name)[0];
        if (name === 'banana_scaling_changes_total') continue; // a model whose number of workers is fixed has none
        if (budget.length === 0 && /_memory_(?:budget|evictions|bytes)/.test(name)) continue;
        assert.deepEqual(Object.keys(one?.labels ?? {}), labels === '-' ? [] : labels.split(', '), name);
      }
      assert.equal(found.sum('banana_worker_restarts_total', { model: 'killable', cause: 'signal' }), 1);

      const card = { gpu: '0', uuid: 'GPU-aaaa', name: 'NVIDIA A100' };
      assert.deepEqual(found.find('banana_gpu_utilization_ratio'), [
        { name: 'banana_gpu_utilization_ratio', labels: card, value: 0.37 },
      ]);
      assert.equal(found.sum('banana_gpu_memory_used_bytes', card), 1024 ** 3);
      assert.equal(found.sum('banana_gpu_memory_total_bytes', card), 40 * 1024 ** 3);

      await t.test('name[] asks for some of them', async () => {
        const two = 'name[]=banana_info&name[]=banana_call_run_seconds_count';
        const some = await scrape(`${server.url}/metrics?${two}`);
        assert.deepEqual([...some.types.keys()], ['banana_call_run_seconds', 'banana_info']);
        assert.deepEqual((await scrape(`${server.url}/metrics?name[]=nothing`)).samples, []);
      });

      await t.test('nvidia-smi is asked every 10 seconds at most, and by no scrape', async () => {
        for (let i = 0; i < 50; i += 1) await scrape(server.url);
        const questions = readFileSync(asked, 'utf8').split('\n').length - 1;
        const periods = Math.floor((performance.now() - startedAtMs) / 10_000);
        assert.ok(questions >= 1 && questions <= 1 + periods, `${questions} questions`);
      });
      await server.stop();
    });
  });
});
