/** Thousands of models that are registered and unregistered over the management API: does anything of them stay behind? */
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BenchCase } from '../case.js';
import { readAfterGc, type Reading } from '../memory.js';
import { source } from '../servers/child-server.js';

const STEP_MODELS = 2000;
const STEPS = 4;

export const registrations: BenchCase = {
  name: 'registrations',
  async run(bench) {
    const folder = mkdtempSync(join(tmpdir(), 'banana-registrations-'));
    const socketPath = join(folder, 'management.sock');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    try {
      const { pid } = await bench.startBanana(source('bench/apps/small.mjs'), {
        flags: ['--model-store', source('bench/apps'), '--management-port', socketPath],
        preload: 'servers/preload-gc.js',
      });
      const readings: Reading[] = [];
      for (let step = 0; step < STEPS; step += 1) {
        for (let i = 0; i < STEP_MODELS; i += 1) await registerAndUnregister(agent, socketPath);
        readings.push(await readAfterGc(pid));
      }
      return [rowOf(readings)];
    } finally {
      agent.destroy();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** Calls before the first reading fill caches and compile code. */
function rowOf(readings: readonly Reading[]) {
  const growthMb = (readings.at(-1) as Reading).rssMb - (readings[0] as Reading).rssMb;
  const later = (STEPS - 1) * STEP_MODELS;
  return {
    name: `${STEPS * STEP_MODELS} models registered and unregistered: RSS of the front after GC, growth over the last ${later}`,
    ours: `${readings.map(({ rssMb }) => rssMb.toFixed(1)).join(', ')} MB`,
    baseline: '',
    value: growthMb,
    goal: { must: 5, better: 'lower', unit: 'MB' } as const,
  };
}

async function registerAndUnregister(agent: Agent, socketPath: string): Promise<void> {
  await manage(agent, socketPath, 'POST', '/models?url=echo.mjs&model_name=passes');
  await manage(agent, socketPath, 'DELETE', '/models/passes');
}

function manage(agent: Agent, socketPath: string, method: string, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request({ agent, socketPath, method, path }, (response) => {
      response.resume().once('end', () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`${method} ${path} was answered with ${response.statusCode}`));
      });
    });
    asked.once('error', reject).end();
  });
}
