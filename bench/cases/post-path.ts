/**
 * The way of one small POST through the front, by V8's precise coverage of its unbundled modules: how many of our files and
 * functions each of ten warm calls runs, on one connection, with the page open to viewers. `BENCH_LIST=1` names them.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchCase } from '../case.js';
import type { Goal, Row } from '../report.js';
import { compiled, source } from '../servers/child-server.js';

const BODY = '{"a": 1}';
const WARM_UP_CALLS = 2000;
const CALLS = 10;
/** The window with the fewest functions counts: a timer rings in some of them. */
const WINDOWS = 5;
const LIMIT_MS = 10_000;

export const postPath: BenchCase = {
  name: 'post-path',
  async run(bench) {
    const folder = mkdtempSync(join(tmpdir(), 'banana-bench-coverage-'));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    try {
      const { url, pid } = await bench.startBanana(source('bench/apps/echo.mjs'), {
        preload: 'servers/preload-coverage.js',
        cli: compiled('../supervisor/cli.js'),
        env: { BENCH_COVERAGE_DIR: folder },
      });
      for (let i = 0; i < WARM_UP_CALLS; i += 1) await post(url, agent);
      const windows: Map<string, string[]>[] = [];
      for (let i = 0; i < WINDOWS; i += 1)
        windows.push(await coverCalls(join(folder, String(pid)), pid, url, agent));
      const [functions = new Map<string, string[]>()] = windows.sort((a, b) => totalOf(a) - totalOf(b));
      bench.note(`One POST, functions by folder: ${byFolder(functions)}.`);
      if (process.env['BENCH_LIST'] === '1')
        for (const [path, names] of functions) bench.note(`${path}: ${names.join(', ')}`);
      return [
        row('files of ours in the front', functions.size, { must: 60, stretch: 45, unit: 'files' }),
        row('functions of ours in the front', totalOf(functions), {
          must: 240,
          stretch: 200,
          unit: 'functions',
        }),
      ];
    } finally {
      agent.destroy();
      rmSync(folder, { recursive: true });
    }
  },
};

/** The functions that ran for each of some calls. `path`: where the front writes its coverage. */
async function coverCalls(
  path: string,
  pid: number,
  url: string,
  agent: Agent,
): Promise<Map<string, string[]>> {
  process.kill(pid, 'SIGUSR2');
  await untilThere(`${path}.started`);
  for (let i = 0; i < CALLS; i += 1) await post(url, agent);
  process.kill(pid, 'SIGUSR2');
  await untilThere(`${path}.json`);
  const scripts = JSON.parse(readFileSync(`${path}.json`, 'utf8')) as ScriptCoverage[];
  rmSync(`${path}.started`);
  rmSync(`${path}.json`);
  return functionsPerFile(scripts);
}

function totalOf(functions: ReadonlyMap<string, readonly string[]>): number {
  return [...functions.values()].reduce((sum, { length }) => sum + length, 0);
}

/** Sends one call on the agent's connection and reads its answer. */
function post(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': BODY.length };
    const outgoing = request(url, { method: 'POST', headers, agent }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`a call was answered with ${answer.statusCode}`));
      answer.resume().on('end', resolve).on('error', reject);
    });
    outgoing.on('error', reject);
    outgoing.end(BODY);
  });
}

async function untilThere(path: string): Promise<void> {
  const limitMs = performance.now() + LIMIT_MS;
  while (!existsSync(path)) {
    if (performance.now() > limitMs) throw new Error(`${path} was not written within ${LIMIT_MS} ms`);
    await delay(2);
  }
}

/** A script in the reply of `Profiler.takePreciseCoverage`. */
interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly count: number }[];
  }[];
}

const OURS = /\/dist\/((?:supervisor|protocol)\/.+)$/;

/** The functions of our files that ran at least once for each call: timers of the server run less often meanwhile. */
function functionsPerFile(scripts: readonly ScriptCoverage[]): Map<string, string[]> {
  const named = new Map<string, string[]>();
  for (const { url, functions } of scripts) {
    const path = OURS.exec(url)?.[1];
    const run = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) >= CALLS);
    const names = run.map(({ functionName }) => functionName || '(anonymous)');
    if (path !== undefined && names.length > 0) named.set(path, names);
  }
  return named;
}

/** Lists the folders with the most functions first: `supervisor/dispatch 40 in 9 files`. */
function byFolder(functions: ReadonlyMap<string, readonly string[]>): string {
  const folders = new Map<string, { files: number; functions: number }>();
  for (const [path, { length: count }] of functions) {
    const folder = path.slice(0, path.lastIndexOf('/'));
    const { files, functions: before } = folders.get(folder) ?? { files: 0, functions: 0 };
    folders.set(folder, { files: files + 1, functions: before + count });
  }
  const sorted = [...folders].sort(([, a], [, b]) => b.functions - a.functions);
  return sorted
    .map(([folder, { files, functions: count }]) => `${folder} ${count} in ${files} files`)
    .join(', ');
}

function row(what: string, value: number, goal: Omit<Goal, 'better'>): Row {
  return {
    name: `one warm POST of ${BODY.length} bytes: ${what}`,
    ours: String(value),
    baseline: '',
    value,
    goal: { ...goal, better: 'lower' },
  };
}
