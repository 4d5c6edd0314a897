/** Clients that try to hold up others, without a key and with one: the p99 of a caller beside them, and the front's memory. */
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';
import type { Bench, BenchCase } from '../case.js';
import { peakRssMbOf, resetPeakRss } from '../proc.js';
import type { Row } from '../report.js';
import { compiled, source, type ChildServer } from '../servers/child-server.js';
import type { Percentiles } from '../statistics.js';
import { jsonRequest } from './requests.js';

const KEY = 'bench-key';
const CALLED = 'called';
const MIN_SECONDS = 4;
const TAR_BLOCK_BYTES = 512;
/** An attack may cost a caller so many times as much as the control. */
const GOAL = 1.5;

const ARCHIVED_FILES = 30_000;
const REFUSED_ENTRIES = 200_000;

interface Attack {
  readonly kind: string;
  readonly connections: number;
  readonly what: string;
  readonly hasKey?: true;
  /** The attack is on another listener, or needs a store: flags and the address that is attacked, given a folder. */
  readonly setUp?: (folder: string) => { readonly flags: readonly string[]; readonly socketPath?: string };
}

const ATTACKS: readonly Attack[] = [
  { kind: 'pipelining', connections: 8, what: 'pipelined GET /livez' },
  { kind: 'pipelining', connections: 300, what: 'pipelined GET /livez' },
  { kind: 'upgrades', connections: 8, what: 'pipelined GET /livez with Upgrade' },
  { kind: 'headers', connections: 8, what: 'pipelined GET /livez with 200 headers' },
  { kind: 'noise', connections: 8, what: 'noise that is no HTTP' },
  { kind: 'chunks-401', connections: 8, what: 'refused bodies (401) in chunks of one byte' },
  { kind: 'chunks-404', connections: 8, what: 'refused bodies (404) in chunks of one byte', hasKey: true },
  { kind: 'chunks-200', connections: 8, what: 'accepted bodies in chunks of one byte', hasKey: true },
  { kind: 'chunks-livez', connections: 8, what: 'bodies in chunks of one byte behind the answer of /livez' },
  {
    kind: 'chunks-metrics',
    connections: 8,
    what: 'such bodies behind the answer of the listener for metrics',
    setUp: openMetrics,
  },
  { kind: 'openapi', connections: 8, what: 'pipelined GET /openapi.json', hasKey: true },
  { kind: 'job-list', connections: 8, what: 'pipelined lists of 100 jobs', hasKey: true },
  { kind: 'job-pages', connections: 8, what: 'pipelined pages of a job of 0.9 MB', hasKey: true },
  {
    kind: 'result-readers',
    connections: 150,
    what: 'a result of 20 MB that is not read',
    hasKey: true,
    setUp: storeJobs,
  },
  {
    kind: 'event-viewers',
    connections: 800,
    what: 'events of a job of 0.7 MB that are not read',
    hasKey: true,
    setUp: storeJobs,
  },
  {
    kind: 'waiting-readers',
    connections: 1500,
    what: 'pages of a job of 0.6 MB that are not read',
    hasKey: true,
    setUp: storeJobs,
  },
  { kind: 'probes', connections: 8, what: 'requests for a path that is not there' },
  { kind: 'ping', connections: 8, what: "probes of Multi Model Server's health" },
  {
    kind: 'chunks-404',
    connections: 8,
    what: 'such refused bodies on the listener for metrics',
    setUp: openMetrics,
  },
  {
    kind: 'archives',
    connections: 1,
    what: `an archive of ${ARCHIVED_FILES} files registered and unregistered`,
    hasKey: true,
    setUp: packStore,
  },
  {
    kind: 'refused-archives',
    connections: 1,
    what: `an archive of ${REFUSED_ENTRIES} entries refused`,
    hasKey: true,
    setUp: packStore,
  },
  { kind: 'large-bodies', connections: 2, what: 'bodies of 90 MB', hasKey: true },
  { kind: 'gzip-bombs', connections: 2, what: 'gzip bombs of 90 KB to 90 MB', hasKey: true },
  { kind: 'gateway', connections: 2, what: 'bodies of 40 MB in the gateway', hasKey: true },
];

/** They occupy the workers that the caller needs: what counts is the longest wait, at most `--run-timeout` each. */
const HOLDERS: readonly Attack[] = [
  { kind: 'slow-readers', connections: 2, what: 'an endless stream read at 2 kB/s', hasKey: true },
  { kind: 'silent-websockets', connections: 2, what: 'a silent WebSocket', hasKey: true },
];
const HOLD_LIMIT_SECONDS = 2;

export const fairness: BenchCase = {
  name: 'fairness',
  async run(bench) {
    const rows: Row[] = [];
    for (const attack of ATTACKS) rows.push(await measure(bench, attack));
    for (const attack of HOLDERS) rows.push(await measureHeldWorkers(bench, attack));
    return rows;
  },
};

async function measure(bench: Bench, attack: Attack): Promise<Row> {
  const { kind, connections, what, hasKey, setUp } = attack;
  const app = source('bench/apps/small.mjs');
  const folder = mkdtempSync(join(tmpdir(), 'banana-fairness-'));
  try {
    const { flags = [], socketPath } = setUp?.(folder) ?? {};
    const server = await bench.startBanana(app, {
      key: KEY,
      models: { [CALLED]: app }, // a worker that reads a large body must not count
      flags: ['--api-key', KEY, ...flags],
    });
    const path = `/models/${CALLED}/`;
    await callAs(bench, server, path);
    const quiet = await callAs(bench, server, path);
    const control = await callBeside(bench, server, path, ['control', String(connections)]);
    resetPeakRss(server.pid);
    const key = hasKey === true ? KEY : '';
    const during = await callBeside(bench, server, path, [kind, String(connections), key, socketPath ?? '']);
    const peakMb = peakRssMbOf(server.pid);
    await server.stop();
    bench.note(
      `${connections} connections, ${what}: p99 quiet ${ms(quiet.p99)}, longest wait ${ms(during.max)} ` +
        `(control ${ms(control.max)}); the front takes at most ${peakMb.toFixed(0)} MB.`,
    );
    return {
      name: `p99 beside ${connections} connections: ${what}`,
      ours: ms(during.p99),
      baseline: `${ms(control.p99)} control`,
      value: during.p99 / control.p99,
      goal: { must: GOAL, better: 'lower', unit: 'x' },
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureHeldWorkers(bench: Bench, { kind, connections, what }: Attack): Promise<Row> {
  const server = await bench.startBanana(source('bench/apps/holds-workers.mjs'), {
    key: KEY,
    workers: connections,
    flags: ['--api-key', KEY, '--run-timeout', `${HOLD_LIMIT_SECONDS}s`],
  });
  const during = await callBeside(bench, server, '/', [kind, String(connections), KEY]);
  await server.stop();
  return {
    name: `longest wait while each of ${connections} workers has ${what}, against --run-timeout`,
    ours: ms(during.max),
    baseline: `${HOLD_LIMIT_SECONDS} s`,
    value: during.max / 1000 / HOLD_LIMIT_SECONDS,
    goal: { must: GOAL, better: 'lower', unit: 'x' },
  };
}

/** `attackers`: what attackers.ts takes behind the URL. */
async function callBeside(
  bench: Bench,
  server: ChildServer,
  path: string,
  attackers: readonly string[],
): Promise<Percentiles> {
  const child = fork(compiled('attackers.js'), [server.url, ...attackers]);
  const exited = once(child, 'exit');
  try {
    await Promise.race([once(child, 'message'), exited]);
    if (child.exitCode !== null) throw new Error(`the attackers of ${attackers[0]} could not begin`);
    return await callAs(bench, server, path);
  } finally {
    if (child.connected) child.disconnect();
    await exited;
  }
}

async function callAs(bench: Bench, server: ChildServer, path: string): Promise<Percentiles> {
  const { headers, body } = jsonRequest({ prompt: 'banana' });
  const { latencyMs, failed } = await bench.generator.runClosed({
    request: {
      headers: { ...headers, 'X-Banana-Api-Key': KEY },
      body,
      url: server.url + path,
    },
    connections: 1,
    durationMs: bench.secondsAtLeast(MIN_SECONDS) * 1000,
    maxRequests: Infinity,
  });
  if (failed > 0) bench.note(`${failed} calls of the caller failed.`);
  return latencyMs;
}

/** A listener for metrics on a socket in the folder. */
function openMetrics(folder: string) {
  const socketPath = join(folder, 'metrics.sock');
  return { flags: ['--metrics-port', socketPath], socketPath };
}

/** Jobs in the folder: each reader of a result would read it from there. */
function storeJobs(folder: string) {
  return { flags: ['--jobs', `local:${join(folder, 'jobs')}`] };
}

/** A store with an archive of many files and one of too many entries, and the management API on a socket; this is Multi Model Server's mode. */
function packStore(folder: string) {
  const content = join(folder, 'content');
  const store = join(folder, 'store');
  const socketPath = join(folder, 'management.sock');
  mkdirSync(content);
  mkdirSync(store);
  copyFileSync(source('bench/apps/echo.mjs'), join(content, 'echo.mjs'));
  for (let i = 0; i < ARCHIVED_FILES; i += 1) writeFileSync(join(content, `${i}.txt`), String(i));
  const named = ['--model-name', 'many', '--model-path', content, '--handler', 'echo.mjs'];
  execFileSync(process.execPath, [
    compiled('../supervisor/model-archiver.js'),
    ...named,
    '--export-path',
    store,
  ]);
  writeFileSync(join(store, 'entries.tar.gz'), tarOfEmptyFiles(REFUSED_ENTRIES));
  return { flags: ['--model-store', store, '--management-port', socketPath], socketPath };
}

function tarOfEmptyFiles(count: number): Buffer {
  const blocks = Buffer.alloc((count + 2) * TAR_BLOCK_BYTES); // two empty blocks are its end
  for (let i = 0; i < count; i += 1)
    new Header({ path: `${i}.txt`, type: 'File', size: 0, mode: 0o644 }).encode(blocks, i * TAR_BLOCK_BYTES);
  return gzipSync(blocks, { level: 1 });
}

function ms(value: number): string {
  return `${value.toFixed(1)} ms`;
}
