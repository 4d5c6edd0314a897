/** A .onnx model of 268 MB: the memory of eight workers of it and the start of one, before and after `optimize`. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { HEAVY_ROW, heavyModel } from '../../test/helpers/heavy-model.js';
import { writeOnnx } from '../../test/helpers/onnx-model.js';
import type { BenchCase } from '../case.js';
import type { RequestSpec } from '../load/plan.js';
import { cpuSecondsOf } from '../proc.js';
import { pidsOf, startBanana } from '../servers/banana.js';
import { compiled, source } from '../servers/child-server.js';
import { median } from '../statistics.js';
import { jsonRequest, smallJsonRequest } from './requests.js';

const WORKERS = 8;
const STARTS = 5;
/** Width of the inner layer, whose two matrices are the weights. */
const WIDTH = 2 ** 19;
const WEIGHTS_MB = (2 * HEAVY_ROW.length * WIDTH * 4) / 1e6;

export const sharedWeights: BenchCase = {
  name: 'shared-weights',
  async run(bench) {
    const folder = await mkdtemp(join(tmpdir(), 'banana-bench-'));
    try {
      const model = writeOnnx(join(folder, 'm.onnx'), heavyModel(1, WIDTH));
      const without = Math.max(
        ...(await ownMbOfWorkers(source('bench/apps/small.mjs'), smallJsonRequest().body)),
      );
      const before = await measure(model);
      await promisify(execFile)(process.execPath, [compiled('../supervisor/cli.js'), 'optimize', model]);
      const after = await measure(model);
      bench.note(
        `${WEIGHTS_MB.toFixed(0)} MB of weights, one worker, spawn to ready and CPU of the worker by then: ` +
          `optimized ${after.start}, as it is ${before.start}. A worker without a model has ${without.toFixed(0)} MB.`,
      );
      const added = after.ownMb - without;
      return [
        {
          name: `${WORKERS} workers of a ${WEIGHTS_MB.toFixed(0)} MB model, optimized: memory of one alone, more than without a model`,
          ours: `${after.ownMb.toFixed(0)} MB`,
          baseline: `${before.ownMb.toFixed(0)} MB as it is`,
          value: (100 * added) / WEIGHTS_MB,
          goal: { must: 10, better: 'lower', unit: '%' },
        },
      ];
    } finally {
      await rm(folder, { recursive: true });
    }
  },
};

interface Measured {
  /** Most memory that one worker has for itself. */
  readonly ownMb: number;
  /** Median times of a start. */
  readonly start: string;
}

async function measure(model: string): Promise<Measured> {
  const [wallMs, cpuMs]: [number[], number[]] = [[], []];
  for (let i = 0; i < STARTS; i += 1) {
    const beganMs = performance.now();
    const server = await startBanana(model);
    wallMs.push(performance.now() - beganMs);
    const [, worker = NaN] = await pidsOf(server);
    cpuMs.push(cpuSecondsOf(worker) * 1000);
    await server.stop();
  }
  const start = `${median(wallMs).toFixed(0)} ms, ${median(cpuMs).toFixed(0)} ms`;
  return { ownMb: Math.max(...(await ownMbOfWorkers(model, jsonRequest({ x: [HEAVY_ROW] }).body))), start };
}

/**
 * After some calls, one at a time: rows that run together take memory for their inner layer. `Private_Dirty` would count
 * pages of a file that are not written back yet.
 */
async function ownMbOfWorkers(app: string, body: RequestSpec['body']): Promise<number[]> {
  const server = await startBanana(app, { workers: WORKERS, flags: ['--batch-size', '1'] });
  try {
    const calls = Array.from({ length: 4 * WORKERS }, () => fetch(server.url, { method: 'POST', body }));
    for (const { status, url } of await Promise.all(calls))
      if (status !== 200) throw new Error(`${url} answered ${status}`);
    const [, ...workers] = await pidsOf(server);
    return workers.map(anonymousMbOf);
  } finally {
    await server.stop();
  }
}

function anonymousMbOf(pid: number): number {
  const [, kb] = /^Anonymous: +(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')) ?? [];
  return (Number(kb) * 1024) / 1e6;
}
