import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import { BatchRun } from '../../../supervisor/dispatch/service-time.js';
import type { Call } from '../../../supervisor/dispatch/call.js';
import type { RequestContext, CountedRequest } from '../../../supervisor/http/request/request-context.js';
import { hostReader, type HostFigures } from '../../../supervisor/machine/host-figures.js';
import { MmsEvents } from '../../../supervisor/metrics/mms-events.js';
import { MmsLines, serviceLines } from '../../../supervisor/metrics/mms-lines.js';
import { TORCHSERVE_NAMES, TorchServeText, asDouble } from '../../../supervisor/metrics/torchserve-text.js';
import type { Model } from '../../../supervisor/models/model.js';
import { LINES_PER_S } from '../../../supervisor/observe/line-limit.js';
import type { AppMetric } from '../../../supervisor/processes/worker-listener.js';

const MODEL = { spec: { name: 'digits', version: '1.0' } } as Model;
const ASKED = { model: MODEL } as unknown as CountedRequest;
const GIB = 1024 ** 3;
const HOST: HostFigures = {
  cpuPercent: 12.345,
  memoryUsedBytes: 2 * GIB,
  memoryAvailableBytes: GIB,
  memoryPercent: 66.6,
  diskUsedBytes: 10 * GIB,
  diskAvailableBytes: 30 * GIB,
  diskPercent: 25,
};

function newsTo(lines: MmsLines | null, text: TorchServeText | null): MmsEvents {
  return new MmsEvents(
    lines,
    text,
    () => Promise.resolve(HOST),
    60_000,
    () => {},
  );
}

function call(requestId: string, batch: BatchRun | null = null, runMs = 7.5): Call {
  const facts = { acceptedAtMs: performance.now() - 20, runMs, hasBegun: true, batch };
  return { ...facts, queueMs: () => 3, message: { requestId } } as unknown as Call;
}

/** Lines without time and host name. */
function linesOf(tell: (events: MmsEvents, lines: MmsLines) => void): string[] {
  const lines: string[] = [];
  const log = new MmsLines((line) => lines.push(line));
  tell(newsTo(log, null), log);
  return lines.map((line) => line.replace(hostname(), 'h').replace(/,timestamp:\d{10}$/, ''));
}

const H = '|#Level:Host|#hostname:h';

test('each answer is a line by its class; 1xx and 3xx are not counted', () => {
  const lines = linesOf((events) => {
    const never = { ...call('a'), queueMs: () => 0, hasBegun: false } as unknown as Call;
    events.settled(ASKED, never, 200, null);
    events.settled(ASKED, never, 302, null);
    events.settled(ASKED, never, 503, new ServeError('SERVE_INFERENCE_FAILED'));
    events.settled(ASKED, never, 200, new ServeError('SERVE_CANCELLED'));
    events.refused(ASKED, new ServeError('SERVE_MODEL_NOT_FOUND'), 404);
  });
  assert.deepEqual(lines, [`Requests2XX.Count:1${H}`, `Requests5XX.Count:1${H}`, `Requests4XX.Count:1${H}`]);
});

test('answers to clients without a key have so many lines a second, and repeated probes none; all are counted', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const probe = { ...ASKED, path: '/ping', isProbe: true } as RequestContext;
  const lines = linesOf((events, log) => {
    for (let i = 0; i < 1000; i += 1) events.refused(ASKED, new ServeError('SERVE_UNAUTHORIZED'), 401);
    events.settled(ASKED, call('a'), 200, null);
    t.mock.timers.tick(1000);
    for (let i = 0; i < 5; i += 1) events.answered(probe, 200);
    log.hostRead(HOST);
    events.answered(probe, 200);
    events.stop();
  }).filter((line) => line.startsWith('Requests'));
  assert.deepEqual(lines, [
    ...Array.from({ length: LINES_PER_S }, () => `Requests4XX.Count:1${H}`),
    `Requests2XX.Count:1${H}`,
    `Requests4XX.Count:${1000 - LINES_PER_S}${H}`,
    `Requests2XX.Count:1${H}`,
    `Requests2XX.Count:4${H}`,
    `Requests2XX.Count:1${H}`,
  ]);
});

test('a batch with a successful call is one line, with the ids of successful requests', () => {
  const batch = new BatchRun(3);
  const lines = linesOf((events) => {
    events.settled(ASKED, call('a', batch), 200, null);
    events.settled(ASKED, call('b', batch), 500, new ServeError('SERVE_INFERENCE_FAILED'));
    events.settled(ASKED, call('c', batch, 8), 200, null);
    events.settled(ASKED, call('d'), 200, null);
  }).filter((line) => line.startsWith('PredictionTime'));
  const of = 'Milliseconds';
  assert.deepEqual(lines, [
    `PredictionTime.${of}:8|#ModelName:digits,Level:Model|#hostname:h,requestID:a,c`,
    `PredictionTime.${of}:7.5|#ModelName:digits,Level:Model|#hostname:h,requestID:d`,
  ]);
});

test('the start of a worker and the figures of the machine are lines with the original names', () => {
  const lines = linesOf((events, log) => {
    events.told(MODEL, { type: 'ready', worker: 1, startMs: 1234.5 });
    log.hostRead(HOST);
  });
  assert.deepEqual(lines, [
    `W-9001-digits.Milliseconds:1235${H}`,
    `CPUUtilization.Percent:12.35${H}`,
    `DiskAvailable.Gigabytes:30${H}`,
    `DiskUsage.Gigabytes:10${H}`,
    `DiskUtilization.Percent:25${H}`,
    `MemoryAvailable.Megabytes:1024${H}`,
    `MemoryUsed.Megabytes:2048${H}`,
    `MemoryUtilization.Percent:66.6${H}`,
  ]);
});

test('among the metrics of apps, only those of services are lines', () => {
  const metric = (name: string, dimensions: string): AppMetric => {
    return { kind: 'counter', name, value: 2, unit: 'count', dimensions, requestIds: ['r'] };
  };
  const metrics = [metric('Texts', 'ModelName\ndigits\nLevel\nModel'), metric('words', 'language\nen')];
  const lines = serviceLines(metrics);
  assert.equal(lines.length, 1);
  assert.match(
    lines[0] as string,
    /^Texts\.Count:2\|#ModelName:digits,Level:Model\|#hostname:.*,requestID:r,/,
  );
});

test("TorchServe's metrics have its form: a comma after each label, a point in each number", () => {
  const text = new TorchServeText();
  const events = newsTo(null, text);
  for (const id of ['a', 'b']) events.settled(ASKED, call(id), 200, null);
  events.told(MODEL, { type: 'ready', worker: 0, startMs: 1500 });
  text.host = HOST;
  const gpu = {
    index: '0',
    uuid: 'GPU-a',
    name: 'A100',
    totalBytes: 4 * GIB,
    usedBytes: GIB,
    utilization: 0.5,
  };
  const written = text.write([MODEL], [gpu], []).replaceAll(hostname(), 'h');
  for (const line of [
    'Requests2XX{Level="Host",Hostname="h",} 2.0',
    'Requests5XX{Level="Host",Hostname="h",} 0.0',
    'ts_inference_requests_total{model_name="digits",model_version="1.0",hostname="h",} 2.0',
    'ts_queue_latency_microseconds{model_name="digits",model_version="1.0",hostname="h",} 6000.0',
    'QueueTime{Level="Host",Hostname="h",} 3.0',
    'WorkerLoadTime{WorkerName="W-9000-digits",Level="Host",Hostname="h",} 1500.0',
    'CPUUtilization{Level="Host",Hostname="h",} 12.345',
    'MemoryUsed{Level="Host",Hostname="h",} 2048.0',
    'GPUUtilization{Level="Host",DeviceId="0",Hostname="h",} 50.0',
    'GPUMemoryUsed{Level="Host",DeviceId="0",Hostname="h",} 1024.0',
    'PredictionTime{ModelName="digits",Level="Model",Hostname="h",} 7.5',
  ])
    assert.ok(written.split('\n').includes(line), `${line} in\n${written}`);
  const types = [...written.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
  assert.deepEqual(types.sort(), [...TORCHSERVE_NAMES].sort(), 'TORCHSERVE_NAMES lists all of them');
  assert.equal(
    text
      .write([MODEL], [], ['QueueTime'])
      .split('\n')
      .filter((line) => !line.startsWith('#')).length,
    2,
  );
});

test('numbers are formatted as Java formats doubles', () => {
  const written = [0, 8, -1.5, 1e7, 12_345_678, 0.0005, 9_999_999].map(asDouble);
  assert.deepEqual(written, ['0.0', '8.0', '-1.5', '1.0E7', '1.2345678E7', '5.0E-4', '9999999.0']);
});

test('hostReader reads plausible figures of this machine', async () => {
  const figures = await hostReader('/')();
  for (const [name, value] of Object.entries(figures)) assert.ok(value >= 0 && Number.isFinite(value), name);
  for (const name of ['cpuPercent', 'memoryPercent', 'diskPercent'] as const)
    assert.ok(figures[name] <= 100, name);
  assert.ok(figures.memoryUsedBytes > 0 && figures.diskUsedBytes > 0);
});
