/** The metrics of Multi Model Server and TorchServe: lines of the log and of files, and names in a scrape. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { editedApp } from '../helpers/edited-app.js';
import { RawConnection } from '../helpers/raw-http.js';
import { startHere } from '../helpers/here.js';
import { call, eventually, fixture } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

const SERVICE = `import { Dimension } from 'banana-serve/mms';
export function handle(data, context) {
  if (data === null) {
    context.metrics.addSize('Labels', 2, null, 'kB', [new Dimension('Kind', 'file')]);
    return null;
  }
  context.metrics.addCounter('Texts', data.length);
  return data.map(() => 'ok');
}\n`;

const STORE = ['--model-store', 'store', '--management-port', '0', '--models', 'all'];

const IN_LOG = [
  /CPUUtilization\.Percent:[\d.]+\|#Level:Host\|#hostname:[^,]+,timestamp:\d{10}$/m,
  /MemoryUsed\.Megabytes:/,
  /DiskAvailable\.Gigabytes:/,
  /W-9000-texts\.Milliseconds:\d+\|#Level:Host/,
  /Requests2XX\.Count:1\|#Level:Host/,
  /Requests4XX\.Count:1\|#Level:Host/,
  /PredictionTime\.Milliseconds:[\d.]+\|#ModelName:texts,Level:Model\|#hostname:[^,]+,requestID:first,/,
];

/** The metric that is measured while the model loads, outside of any call. */
const OF_LOAD =
  /Labels\.Kilobytes:2\|#Kind:file,ModelName:texts,Level:Model\|#hostname:[^,]+,timestamp:\d{10}/;
const OF_MODEL = /Texts\.Count:1\|#ModelName:texts,Level:Model\|#hostname:[^,]+,requestID:first,/;

describe('the metrics of Multi Model Server', LIMIT, () => {
  test('without an app they are lines of the log, and of files in METRICS_LOCATION', async (t) => {
    const { folder } = editedApp(t, { 'store/texts.mjs': SERVICE });
    const env = { METRICS_LOCATION: 'measured' };
    const server = await startHere(null, { t, cwd: folder, args: STORE, env });
    await server.until(({ models }) => models[0]?.state === 'ready');
    await call(`${server.url}/predictions/texts`, 'a', { 'x-request-id': 'first' });
    await call(`${server.url}/predictions/nobody`, 'a');
    for (const line of [...IN_LOG, OF_LOAD, OF_MODEL]) await server.untilPrinted(line);
    const read = (name: string): string => readFileSync(join(folder, 'measured', name), 'utf8');
    for (const [name, lines] of [
      ['mms_metrics.log', IN_LOG],
      ['model_metrics.log', [OF_LOAD, OF_MODEL]],
    ] as const)
      await eventually(
        () => lines.every((line) => line.test(read(name))),
        60_000,
        () => read(name),
      );
    assert.doesNotMatch(read('mms_metrics.log'), OF_MODEL);
    await server.stop();
  });

  test('each answer is a line: pages, probes when their answer changes, management, and answers to bytes that are not a request', async (t) => {
    const { folder } = editedApp(t, { 'store/texts.mjs': SERVICE });
    const args = [...STORE, '--access-log', '--cors-origin', '*'];
    const server = await startHere(null, { t, cwd: folder, args });
    await server.untilPrinted(/Model texts loaded\./);
    const count = (what: string): number =>
      (server.stderr().match(new RegExp(`Requests${what}\\.Count:1`, 'g')) ?? []).length;
    const before = ['2XX', '4XX', '5XX'].map(count);
    assert.deepEqual(before, [0, 0, 0]);
    const management = /the management API is on (\S+)/.exec(server.stderr())?.[1] ?? '';
    const ask = async (url: string, method: string, headers = {}): Promise<number> =>
      (await call(url, null, headers, { method })).status;
    assert.equal(await ask(`${server.url}/ping`, 'GET'), 200);
    assert.equal(await ask(`${server.url}/ping`, 'HEAD'), 200);
    assert.equal(await ask(`${server.url}/`, 'OPTIONS'), 200);
    assert.equal(await ask(`${management}/models`, 'GET'), 200);
    assert.equal(await ask(`${management}/models/nobody`, 'GET'), 404);
    assert.equal(await ask(`${server.url}/nowhere`, 'GET'), 404);
    const preflight = { Origin: 'https://a.example.com', 'Access-Control-Request-Method': 'POST' };
    assert.equal(await ask(`${server.url}/predictions/texts`, 'OPTIONS', preflight), 204);
    assert.equal((await RawConnection.ask(server, 'what\r\n\r\n')).status, 400);
    await call(`${server.url}/predictions/texts`, 'a', { 'x-request-id': 'last' });
    await server.untilPrinted(/PredictionTime.*requestID:last,/);
    assert.deepEqual(['2XX', '4XX', '5XX'].map(count), [5, 3, 0], server.stderr()); // HEAD /ping is answered as GET
    assert.doesNotMatch(
      server.stderr(),
      /(?:GET|HEAD) \/ping|OPTIONS/,
      'probes and pages have no access line',
    );
    await server.stop();
  });

  test('metrics_mode=legacy, and metrics_address, are what TorchServe meant by them', async (t) => {
    const { folder } = editedApp(t, {
      'store/texts.mjs': SERVICE,
      'config.properties': `inference_address=http://127.0.0.1:0
management_address=http://127.0.0.1:0
metrics_address=http://127.0.0.1:0
metrics_mode=legacy
model_store=store
load_models=ALL`,
    });
    const server = await startHere(null, { t, cwd: folder, isAddressGiven: true });
    await server.until(({ models }) => models[0]?.state === 'ready');
    const page = /metrics are on (http:\S+\/metrics)/.exec(server.stderr())?.[1] ?? '';
    await call(`${server.url}/predictions/texts`, '"a"', { 'x-request-id': 'first' });
    for (const line of [...IN_LOG.filter((one) => !one.source.includes('4XX')), OF_MODEL])
      await server.untilPrinted(line);
    let text = '';
    await eventually(
      async () => {
        text = await (await fetch(page)).text();
        return /^ts_inference_requests_total\{model_name="texts",[^}]+\} 1\.0$/m.test(text);
      },
      60_000,
      () => text,
    );
    const names = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
    const others = names.filter((name) => !name.startsWith('banana_'));
    assert.deepEqual(others.sort(), [
      'Labels',
      'Texts',
      'ts_inference_latency_microseconds',
      'ts_inference_requests_total',
      'ts_queue_latency_microseconds',
    ]);
    const elsewhere = [`${server.url}/metrics`, `${new URL(page).origin}/ping`];
    for (const url of elsewhere) assert.equal((await fetch(url)).status, 404, url);
    await server.stop();
  });

  test('they come again after each --metric-interval', async (t) => {
    const { folder } = editedApp(t, { 'store/texts.mjs': SERVICE });
    const args = [...STORE, '--metric-interval', '50ms'];
    const server = await startHere(null, { t, cwd: folder, args });
    await eventually(
      () => (server.stderr().match(/CPUUtilization/g) ?? []).length >= 3,
      60_000,
      () => server.stderr(),
    );
    await server.stop();
  });

  test('with an app there are none unless they are asked for', async (t) => {
    const server = await startHere(fixture('echoes.mjs'), { t });
    await call(`${server.url}/`, '{}');
    assert.doesNotMatch(server.stderr(), /Requests2XX|CPUUtilization/);
    await server.stop();
  });

  test("--metrics-mode prometheus adds TorchServe's names to a scrape, and writes no lines", async (t) => {
    const { folder } = editedApp(t, { 'store/texts.mjs': SERVICE });
    const args = [...STORE, '--metrics', '--metrics-mode', 'prometheus'];
    const server = await startHere(null, { t, cwd: folder, args });
    await server.until(({ models }) => models[0]?.state === 'ready');
    await call(`${server.url}/predictions/texts`, '"a"');
    const wanted = [
      /^Requests2XX\{Level="Host",Hostname="[^"]+",\} [1-9]\d*\.0$/m,
      /^ts_inference_requests_total\{model_name="texts",model_version="1(?:\.0)?",hostname="[^"]+",\} 1\.0$/m,
      /^PredictionTime\{ModelName="texts",Level="Model",Hostname="[^"]+",\} [\d.E-]+$/m,
      /^CPUUtilization\{Level="Host",Hostname="[^"]+",\} [\d.E-]+$/m,
      /^banana_calls_total\{model="texts",version="1(?:\.0)?",dialect="mms",code="ok"\} 1$/m,
      /^Texts\{model="texts",version="1(?:\.0)?"\} 1$/m,
    ];
    let text = '';
    await eventually(
      async () => {
        text = await (await fetch(`${server.url}/metrics`)).text();
        return wanted.every((line) => line.test(text));
      },
      60_000,
      () => text,
    );
    assert.doesNotMatch(server.stderr(), /Requests2XX|Texts\.Count/);
    await server.stop();
  });
});
