/**
 * kill -9 of a worker, idle or in a call: how long the management API still describes it as ready. The model is described
 * again and again, on one connection; what counts is the time from the signal to the last answer that was wrong.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchCase } from '../case.js';
import { postOnce } from '../post-once.js';
import type { Row } from '../report.js';
import { source } from '../servers/child-server.js';
import { median } from '../statistics.js';

const KILLS_PER_ROUND = 10;
/** Long enough that only the kill can end the call. */
const BUSY_MS = 60_000;
/** An answer that is wrong for longer is a defect, and ends the case. */
const LIMIT_MS = 10_000;

export const describeCase: BenchCase = {
  name: 'describe',
  async run(bench) {
    const folder = mkdtempSync(join(tmpdir(), 'banana-bench-describe-'));
    const socketPath = join(folder, 'management.sock');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    try {
      const flags = ['--management-port', socketPath];
      const { url } = await bench.startBanana(source('bench/apps/dies.mjs'), { flags });
      const isReady = readiness({ socketPath, agent });
      const kills = bench.duration.rounds * KILLS_PER_ROUND;
      const rows: Row[] = [];
      for (const isBusy of [false, true]) {
        const wrongMs: number[] = [];
        for (let i = 0; i < kills; i += 1) wrongMs.push(await killOnce(url, isBusy, isReady));
        rows.push(rowOf(isBusy, wrongMs));
      }
      return rows;
    } finally {
      agent.destroy();
      rmSync(folder, { recursive: true });
    }
  },
};

/** A worker that has finished a call is replaced at once, however many have died before it. */
async function killOnce(
  url: string,
  isBusy: boolean,
  isReady: (pid: number) => Promise<boolean>,
): Promise<number> {
  const { pid } = JSON.parse((await postOnce(url, { busyMs: 0 })).text) as { pid: number };
  const doomed = isBusy ? postOnce(url, { busyMs: BUSY_MS }) : null;
  if (isBusy) await delay(50); // the call runs: a worker that computes reports nothing else
  if (!(await isReady(pid))) throw new Error(`worker ${pid} is not described as ready before it is killed`);
  process.kill(pid, 'SIGKILL');
  const killedAtMs = performance.now();
  let wrongMs = 0;
  while (await isReady(pid)) {
    wrongMs = performance.now() - killedAtMs;
    if (wrongMs > LIMIT_MS)
      throw new Error(`worker ${pid} is described as ready ${LIMIT_MS} ms after its death`);
  }
  await doomed;
  return wrongMs;
}

interface Described {
  readonly workers: readonly { readonly pid?: number; readonly status: string }[];
}

/** Whether a worker is described as one that takes calls. */
function readiness(place: { socketPath: string; agent: Agent }): (pid: number) => Promise<boolean> {
  return async (pid) => {
    const { workers } = JSON.parse(await get({ ...place, path: '/models/dies' })) as Described;
    return workers.some((worker) => worker.pid === pid && worker.status === 'READY');
  };
}

function get(options: { socketPath: string; agent: Agent; path: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({ ...options, headers: { host: 'localhost' } }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => (text += chunk));
      answer.on('end', () => resolve(text));
      answer.on('error', reject);
    });
    asked.on('error', reject);
    asked.end();
  });
}

function rowOf(isBusy: boolean, wrongMs: readonly number[]): Row {
  const longest = Math.max(...wrongMs);
  return {
    name: `kill -9 of ${isBusy ? 'a busy' : 'an idle'} worker, ${wrongMs.length} times: longest wrong description`,
    ours: `${longest.toFixed(1)} ms, median ${median(wrongMs).toFixed(1)} ms`,
    baseline: '',
    value: longest,
    goal: { must: 100, better: 'lower', unit: 'ms' },
  };
}
