/** The promises of docs/metrics.md: a real Prometheus scrapes the server, and the dashboard's queries find their metrics. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { ask } from '../helpers/ask.js';
import { withNvidiaSmi } from '../helpers/fake-gpu.js';
import { needs } from '../helpers/needs.js';
import { scrape, untilScraped, type Scrape } from '../helpers/scrape.js';
import { ROOT, call, eventually, fixture, runCommand, startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
}

const DASHBOARD = JSON.parse(readFileSync(`${ROOT}docs/grafana-dashboard.json`, 'utf8')) as Dashboard;
const TARGETS = DASHBOARD.panels.flatMap(({ title, targets }) =>
  targets.map((target) => ({ title, ...target })),
);

/** A server that has a value for each metric: a worker was lost, enough calls have run to predict by, one has failed, there is a card. */
async function startMeasured(t: TestContext): Promise<Server> {
  const options = { t, args: ['--metrics'], env: withNvidiaSmi(t), expectedRestarts: 1 };
  const server = await startServer(fixture('killable.mjs'), options);
  await server.until(({ state }) => state === 'ready');
  process.kill((await server.status()).model.workers[0]?.pid as number, 'SIGKILL');
  await server.until(({ state, model }) => state === 'ready' && model.workers[0]?.restarts === 1);
  for (let i = 0; i < 10; i += 1) assert.equal((await ask(server, {})).status, 200);
  assert.equal((await call(`${server.url}/`, '{ not JSON')).status, 400);
  await untilScraped(server.url, isComplete);
  return server;
}

function isComplete(found: Scrape): boolean {
  const late = [
    'banana_predicted_wait_seconds',
    'banana_gpu_utilization_ratio',
    'banana_worker_restarts_total',
  ];
  return late.every((name) => found.sum(name) !== null) && found.sum('banana_calls_total') === 11;
}

/** Names of samples, and the labels that stand beside each of them: in its braces, or in a `by` before it. */
function askedFor(expr: string): { names: string[]; labels: string[] } {
  const names = expr.match(/\bbanana_\w+/g) ?? [];
  const inBraces = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(
    ([, text = '']) => text.match(/\w+(?=\s*[!=]~?)/g) ?? [],
  );
  const by = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, text = '']) => text.split(/,\s*/));
  return { names, labels: [...inBraces, ...by] };
}

describe('the dashboard', LIMIT, () => {
  test('asks only for metrics and labels that a scrape has', async (t) => {
    const server = await startMeasured(t);
    const found = await untilScraped(server.url, isComplete);
    assert.ok(TARGETS.length > 15);
    for (const { title, expr, legendFormat } of TARGETS) {
      const { names, labels } = askedFor(expr);
      assert.ok(names.length > 0, `${title}: ${expr}`);
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
      for (const name of names) {
        const [sample] = found.find(name);
        assert.ok(sample !== undefined, `${title}: there is no ${name} in\n${found.text}`);
        for (const label of [...labels, ...shown])
          assert.ok(label in sample.labels, `${title}: ${name} has no label ${label}`);
      }
    }
    await server.stop();
  });

  test('shows every metric of calls, queues and workers', () => {
    const asked = new Set(TARGETS.flatMap(({ expr }) => askedFor(expr).names));
    for (const name of [
      'banana_calls_total',
      'banana_queue_calls',
      'banana_workers',
      'banana_batch_size_sum',
    ])
      assert.ok(asked.has(name), name);
  });
});

interface Answer<T> {
  readonly status: string;
  readonly error?: string;
  readonly data: T;
}

interface Target {
  readonly health: string;
  readonly lastError: string;
}

interface Found {
  readonly result: readonly { readonly metric: Record<string, string>; readonly value: [number, string] }[];
}

/** A Prometheus that scrapes this server every second; it ends with the test. */
async function startPrometheus(t: TestContext, { url }: Server): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'banana-prometheus-'));
  const config = `global:
  scrape_interval: 1s
scrape_configs:
  - job_name: banana-serve
    static_configs:
      - targets: ['${new URL(url).host}']
`;
  writeFileSync(join(folder, 'prometheus.yml'), config);
  const args = [
    `--config.file=${folder}/prometheus.yml`,
    `--storage.tsdb.path=${folder}/data`,
    '--web.listen-address=127.0.0.1:0',
  ];
  const program = runCommand(args, { t, command: 'prometheus' });
  t.after(async () => {
    program.process.kill('SIGKILL');
    await program.ended;
    rmSync(folder, { recursive: true, force: true });
  });
  const listening = /msg="Listening on" .*?address=(\S+)/;
  await eventually(
    () => listening.test(program.stderr()),
    60_000,
    () => program.stderr(),
  );
  return `http://${listening.exec(program.stderr())?.[1]}/api/v1`;
}

async function query(api: string, expr: string): Promise<Found['result']> {
  const response = await fetch(`${api}/query?${new URLSearchParams({ query: expr }).toString()}`);
  const answer = (await response.json()) as Answer<Found>;
  assert.equal(answer.status, 'success', `${expr}: ${answer.error ?? ''}`);
  return answer.data.result;
}

describe('a real Prometheus', { ...LIMIT, skip: needs('prometheus') }, () => {
  test('finds the server up, its values, and an answer to every query of the dashboard', async (t) => {
    const server = await startMeasured(t);
    const { text } = await scrape(server.url);
    const lint = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
    assert.deepEqual([lint.status, lint.stderr], [0, '']);
    const api = await startPrometheus(t, server);
    let said = '';
    await eventually(
      async () => {
        const response = await fetch(`${api}/targets`);
        if (!response.ok) return false; // it is not ready yet
        const { data } = (await response.json()) as Answer<{ activeTargets: readonly Target[] }>;
        said = JSON.stringify(data.activeTargets);
        return data.activeTargets[0]?.health === 'up';
      },
      60_000,
      () => `the target is not up: ${said}`,
    );
    for (const [expr, value] of [
      ['banana_calls_total{model="killable", code="ok"}', '10'],
      ['up{job="banana-serve"}', '1'],
    ] as const) {
      let found: Found['result'] = [];
      await eventually(
        async () => (found = await query(api, expr)).length > 0, // a scrape is found a moment after its target is up
        60_000,
        () => `nothing is found by ${expr}`,
      );
      assert.equal(found[0]?.value[1], value);
    }
    for (const { title, expr } of TARGETS) {
      const asked = expr.replaceAll('$__rate_interval', '1h').replaceAll('$model', '.*');
      await eventually(
        async () => {
          await ask(server, {}); // a rate is one of calls that still come
          await call(`${server.url}/`, '{ not JSON');
          return (await query(api, asked)).some(({ value: [, text] }) => Number.isFinite(Number(text)));
        },
        60_000,
        () => `${title}: nothing is found by ${asked}`,
      );
    }
    await server.stop();
  });
});
