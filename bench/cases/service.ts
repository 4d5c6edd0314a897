/** A custom service of Multi Model Server, called by that server's path: what it costs beside an app of the house, and beside Koa. */
import { checkSameAnswers } from '../answers.js';
import type { BenchCase } from '../case.js';
import type { Row } from '../report.js';
import { measureInTurn, medianRatio, type Round, type Side } from '../rounds.js';
import { source } from '../servers/child-server.js';
import { cpuNote, cpuText, rateRow, serverCpuUs, sideOf, startSides } from '../sides.js';
import { smallJsonRequest } from './requests.js';

/** Answers per second of Multi Model Server 1.1, and of Koa on the same machine. Measured once, with a handler that does nothing. */
const [ORIGINAL_PER_SECOND, KOA_PER_SECOND] = [3800, 17_300];

export const service: BenchCase = {
  name: 'service',
  async run(bench) {
    const load = { request: smallJsonRequest(), connections: 32 };
    const started = await sideOf('service', await bench.startBanana(source('bench/apps/service.mjs')));
    const called: Side = { ...started, url: `${started.url}/predictions/service` };
    const sides = [called, ...(await startSides(bench, 'bench/apps/small.mjs', ['koa']))];
    await checkSameAnswers(sides, load.request);
    const results = await measureInTurn(bench.generator, sides, load, bench.duration);
    bench.note(cpuNote('custom service, c=32', sides, results));
    return rowsOf(results as [Round[], Round[], Round[]]);
  },
};

function rowsOf([ours, house, koa]: readonly [Round[], Round[], Round[]]): Row[] {
  const name = 'custom service, 200 B JSON, c=32';
  const original = (ORIGINAL_PER_SECOND / KOA_PER_SECOND).toFixed(2);
  return [
    {
      name: `${name}, vs the Banana form: CPU per request, front and worker`,
      ours: cpuText(ours),
      baseline: cpuText(house),
      value: medianRatio(ours, house, serverCpuUs),
      goal: { must: 1.15, better: 'lower', unit: 'x' },
    },
    rateRow(`${name}, vs Koa; Multi Model Server's own ratio was ${original}`, [ours, koa], null),
  ];
}
