/** Compares the cost of the Potassium form with that of the Banana form, and checks background calls for leaks. */
import { checkSameAnswers } from '../answers.js';
import type { Bench, BenchCase } from '../case.js';
import { readAfterGc, type Reading } from '../memory.js';
import type { Row } from '../report.js';
import { measureInTurn, medianRatio, type Side } from '../rounds.js';
import { pidsOf } from '../servers/banana.js';
import { source } from '../servers/child-server.js';
import { cpuNote, cpuText, rateRow, serverCpuUs, sideOf } from '../sides.js';
import { smallJsonRequest } from './requests.js';

const CALLS = 10_000;

/** A few more jobs than the server keeps: from then on every new one takes an old one's place. */
const WARM_UP_CALLS = 30_000;

export const potassium: BenchCase = {
  name: 'potassium',
  async run(bench) {
    return [...(await adapterCost(bench)), ...(await growth(bench))];
  },
};

async function adapterCost(bench: Bench): Promise<Row[]> {
  const load = { request: smallJsonRequest(), connections: 32 };
  const sides = [
    await startSide(bench, 'Potassium form', 'bench/apps/potassium.mjs'),
    await startSide(bench, 'Banana form', 'bench/apps/small.mjs'),
  ];
  await checkSameAnswers(sides, load.request);
  const results = await measureInTurn(bench.generator, sides, load, bench.duration);
  bench.note(cpuNote('Potassium form, c=32', sides, results));
  const [potassiumRounds = [], banana = []] = results;
  const name = 'Potassium form, 200 B JSON, c=32, vs the Banana form';
  return [
    {
      name: `${name}: CPU per request, front and worker`,
      ours: cpuText(potassiumRounds),
      baseline: cpuText(banana),
      value: medianRatio(potassiumRounds, banana, serverCpuUs),
      goal: { must: 1.05, better: 'lower', unit: 'x' },
    },
    rateRow(name, [potassiumRounds, banana], null),
  ];
}

async function startSide(bench: Bench, name: string, app: string): Promise<Side> {
  return sideOf(name, await bench.startBanana(source(app)));
}

async function growth(bench: Bench): Promise<Row[]> {
  const server = await bench.startBanana(source('bench/apps/potassium.mjs'), {
    preload: 'servers/preload-gc.js',
    // Background calls are answered at once: where others want the cores they come faster than they run.
    env: { BANANA_QUEUE_SIZE: String(Math.max(WARM_UP_CALLS, CALLS)) },
  });
  const pids = await pidsOf(server);
  await sendBoth(bench, server.url, WARM_UP_CALLS);
  const before = await Promise.all(pids.map(readAfterGc));
  await sendBoth(bench, server.url, CALLS);
  const after = await Promise.all(pids.map(readAfterGc));
  return ['front', 'worker'].flatMap((who, i) => rows(who, before[i] as Reading, after[i] as Reading));
}

async function sendBoth(bench: Bench, url: string, calls: number): Promise<void> {
  for (const path of ['/', '/background']) {
    const { ok, failed } = await bench.generator.runClosed({
      request: { ...smallJsonRequest(), url: `${url}${path}` },
      connections: 32,
      durationMs: Infinity,
      maxRequests: calls,
    });
    if (ok !== calls) throw new Error(`${path}: ${ok} of ${calls} calls were answered, ${failed} failed`);
  }
}

function rows(who: string, before: Reading, after: Reading): Row[] {
  return [
    {
      name: `10k calls and 10k background calls, ${who}: RSS after GC, growth`,
      ours: `${before.rssMb.toFixed(1)}, ${after.rssMb.toFixed(1)} MB`,
      baseline: '',
      value: after.rssMb - before.rssMb,
      goal: { must: 5, better: 'lower', unit: 'MB' },
    },
    {
      name: `10k calls and 10k background calls, ${who}: open files, growth`,
      ours: `${before.files}, ${after.files}`,
      baseline: '',
      value: after.files - before.files,
      goal: { must: 0, better: 'lower', unit: 'fds' },
    },
  ];
}
