/** A trivial app from process start to its first answer. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchCase } from '../case.js';
import { postOnce } from '../post-once.js';
import type { Row } from '../report.js';
import { compiled, source } from '../servers/child-server.js';
import { median } from '../statistics.js';

export const STARTS = 7;
const LIMIT_MS = 20_000;

export const startup: BenchCase = {
  name: 'startup',
  async run(bench) {
    const apps = [source('bench/apps/trivial.ts'), source('bench/apps/small.mjs')] as const;
    const times: [number[], number[]] = [[], []];
    const bareNode: number[] = [];
    for (let i = 0; i < STARTS; i += 1) {
      times[0].push(await msToFirstAnswer(apps[0]));
      times[1].push(await msToFirstAnswer(apps[1]));
      bareNode.push(await msOfBareNode());
    }
    bench.note(
      `Start-up: \`node -e 0\` alone takes ${median(bareNode).toFixed(0)} ms here; a start runs two of it.`,
    );
    return [startRow('.ts', times[0]), startRow('.mjs', times[1])];
  },
};

function startRow(extension: string, timesMs: readonly number[]): Row {
  const sorted = [...timesMs].sort((a, b) => a - b);
  return {
    name: `trivial ${extension} app: process start to first 200`,
    ours: `${sorted[0]?.toFixed(0)} to ${sorted.at(-1)?.toFixed(0)} ms`,
    baseline: '',
    value: median(timesMs),
    goal: { must: 800, stretch: 500, better: 'lower', unit: 'ms' },
  };
}

/** From the start of the process to its first 200. */
export async function msToFirstAnswer(app: string, flags: readonly string[] = []): Promise<number> {
  const port = await freePort();
  const startedAtMs = performance.now();
  const args = [
    compiled('../front/cli.js'),
    app,
    '--port',
    String(port),
    '--gpus',
    'none',
    '--workers',
    '1',
    ...flags,
  ];
  const child = spawn(process.execPath, args, { stdio: 'ignore' });
  const gone = once(child, 'exit');
  try {
    while ((await statusOrRefused(port)) !== 200) {
      if (child.exitCode !== null) throw new Error(`the server of ${app} ended with code ${child.exitCode}`);
      if (performance.now() - startedAtMs > LIMIT_MS)
        throw new Error(`no answer of ${app} within ${LIMIT_MS} ms`);
      await delay(2);
    }
    return performance.now() - startedAtMs;
  } finally {
    child.kill('SIGKILL');
    await gone;
  }
}

async function statusOrRefused(port: number): Promise<number> {
  try {
    return (await postOnce(`http://127.0.0.1:${port}`, { prompt: 'hello' })).status;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ECONNREFUSED') return 0;
    throw thrown;
  }
}

async function msOfBareNode(): Promise<number> {
  const startedAtMs = performance.now();
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit');
  return performance.now() - startedAtMs;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
