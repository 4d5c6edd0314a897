/** Hundreds of thousands of calls: does anything stay behind in the front or in the worker? */
import type { Bench, BenchCase } from '../case.js';
import { readAfterGc, type Reading } from '../memory.js';
import type { Row } from '../report.js';
import { pidsOf } from '../servers/banana.js';
import { source } from '../servers/child-server.js';
import { smallJsonRequest } from './requests.js';

const STEP_CALLS = 100_000;
const STEPS = 3;

export const soak: BenchCase = {
  name: 'soak',
  async run(bench) {
    const server = await bench.startBanana(source('bench/apps/small.mjs'), {
      preload: 'servers/preload-gc.js',
    });
    const [front = NaN, worker = NaN] = await pidsOf(server);
    const readings: { front: Reading; worker: Reading }[] = [];
    for (let step = 0; step < STEPS; step += 1) {
      await sendCalls(bench, server.url);
      readings.push({ front: await readAfterGc(front), worker: await readAfterGc(worker) });
    }
    return (['front', 'worker'] as const).flatMap((who) =>
      growthRows(
        who,
        readings.map((reading) => reading[who]),
      ),
    );
  },
};

async function sendCalls(bench: Bench, url: string): Promise<void> {
  const { ok, failed } = await bench.generator.runClosed({
    request: { ...smallJsonRequest(), url },
    connections: 32,
    durationMs: Infinity,
    maxRequests: STEP_CALLS,
  });
  if (ok !== STEP_CALLS) throw new Error(`${ok} of ${STEP_CALLS} calls were answered, ${failed} failed`);
}

/** Growth of memory after the first reading; until then caches fill and code is compiled. */
function growthRows(who: string, readings: readonly Reading[]): Row[] {
  const first = readings[0] as Reading;
  const last = readings.at(-1) as Reading;
  return [
    {
      name: `300k calls, ${who}: RSS after GC, growth over the last 200k`,
      ours: `${readings.map(({ rssMb }) => rssMb.toFixed(1)).join(', ')} MB`,
      baseline: '',
      value: last.rssMb - first.rssMb,
      goal: { must: 5, better: 'lower', unit: 'MB' },
    },
    {
      name: `300k calls, ${who}: open files, growth over the last 200k`,
      ours: readings.map(({ files }) => files).join(', '),
      baseline: '',
      value: last.files - first.files,
      goal: { must: 0, better: 'lower', unit: 'fds' },
    },
  ];
}
