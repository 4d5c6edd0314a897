/** Two models that do not fit together, called in turn: each call needs a start, and the other's worker goes first. */
import type { BenchCase } from '../case.js';
import { postOnce } from '../post-once.js';
import { significant } from '../report.js';
import { source } from '../servers/child-server.js';
import { median } from '../statistics.js';

const ALTERNATIONS = 200;
const MODEL_MB = 100;
const BUDGET_MB = 200;

export const memoryAlternate: BenchCase = {
  name: 'memory-alternate',
  async run(bench) {
    const options = { app: source('bench/apps/sized.mjs'), minWorkers: 0, maxWorkers: 1, idleTimeout: '1h' };
    const { url } = await bench.startBanana(source('bench/apps/small.mjs'), {
      config: { models: { a: options, b: options }, workers: 1 },
      workers: null,
      env: { BENCH_FILL_MB: String(MODEL_MB) },
      flags: ['--memory-budget', `${BUDGET_MB}MB`],
    });
    const tookMs: number[] = [];
    const pids = new Set<number>();
    let failed = 0;
    for (let i = 0; i < ALTERNATIONS; i += 1) {
      const beganMs = performance.now();
      const { status, text } = await postOnce(`${url}/models/${i % 2 === 0 ? 'a' : 'b'}/`, {});
      tookMs.push(performance.now() - beganMs);
      if (status === 200) pids.add((JSON.parse(text) as { pid: number }).pid);
      else failed += 1;
    }
    bench.note(
      `${ALTERNATIONS} calls to two models of ${MODEL_MB} MB in turn under ${BUDGET_MB} MB: ${pids.size} workers, median ${significant(median(tookMs))} ms, slowest ${significant(Math.max(...tookMs))} ms.`,
    );
    return [
      {
        name: `${ALTERNATIONS} alternations of two models that do not fit together: calls that failed`,
        ours: `${ALTERNATIONS} calls`,
        baseline: '',
        value: failed,
        goal: { must: 0, better: 'lower', unit: '' },
      },
    ];
  },
};
