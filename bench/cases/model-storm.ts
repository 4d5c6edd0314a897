/** Twenty clients that register, scale, call and unregister one model for a minute: what is left when they have stopped? */
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchCase } from '../case.js';
import { holdings, modelStorm, type Holdings } from '../../test/helpers/model-storm.js';
import { source } from '../servers/child-server.js';

const CLIENTS = 20;
const SECONDS = 60;
const NAME = 'storm';
/** Longest that a descriptor may take to be closed behind a process that has ended. */
const SETTLE_MS = 10_000;

export const modelStormCase: BenchCase = {
  name: 'model-storm',
  async run(bench) {
    const { serve } = await import('../../supervisor/serve.js');
    const app = source('bench/apps/killable.mjs');
    const quiet = { host: '127.0.0.1', port: 0, gpus: 'none', logLevel: 'silent' } as const;
    const server = await serve({ ...quiet, models: { stays: app } });
    try {
      await server.ready;
      const storm = { app, name: NAME, clients: CLIENTS };
      await modelStorm(server, { ...storm, ms: 1000 }); // what is loaded once is loaded now
      const before = holdings();
      const { accepted, answers, surprises } = await modelStorm(server, { ...storm, ms: SECONDS * 1000 });
      if (surprises.length > 0) throw new Error(surprises.slice(0, 5).join('\n'));
      const left = await leftOf(before);
      const described = server.models.describe().map(({ name, state }) => `${name} ${state}`);
      bench.note(
        `${CLIENTS} clients at one model for ${SECONDS} s: ${textOf(accepted)}; calls by status ${textOf(answers)}; ` +
          `left behind: ${textOf(left)}; described afterwards: ${described.join(', ')}.`,
      );
      const count = Object.values(left).reduce((sum, each) => sum + each, 0) + described.length - 1;
      return [
        {
          name: `${CLIENTS} clients register, scale, call, unregister a model, ${SECONDS} s: left behind`,
          ours: textOf(left),
          baseline: '',
          value: count,
          goal: { must: 0, better: 'lower', unit: '' },
        },
      ];
    } finally {
      await server.close();
    }
  },
};

interface Left extends Record<string, number> {
  readonly processes: number;
  readonly descriptors: number;
  readonly files: number;
}

async function leftOf(before: Holdings): Promise<Left> {
  const endAtMs = performance.now() + SETTLE_MS;
  for (;;) {
    const now = holdings();
    const left = {
      processes: now.processes.filter((pid) => !before.processes.includes(pid)).length,
      descriptors: Math.max(0, now.descriptors - before.descriptors),
      files: now.files.length,
    };
    const isNothing = left.processes + left.descriptors + left.files === 0;
    if (isNothing || performance.now() > endAtMs) return left;
    await delay(50);
  }
}

function textOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([what, count]) => `${count} ${what}`)
    .join(', ');
}
