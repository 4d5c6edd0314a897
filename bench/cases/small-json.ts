/** Many small calls at once: what serving costs when the model costs nothing. */
import { checkSameAnswers } from '../answers.js';
import type { BenchCase } from '../case.js';
import { measureInTurn, medianRatio } from '../rounds.js';
import { cpuNote, rateText, startSides } from '../sides.js';
import { smallJsonRequest } from './requests.js';

export const smallJson: BenchCase = {
  name: 'small-json',
  async run(bench) {
    const load = { request: smallJsonRequest(), connections: 32 };
    const sides = await startSides(bench, 'bench/apps/small.mjs', ['koa', 'fastify']);
    await checkSameAnswers(sides, load.request);
    const results = await measureInTurn(bench.generator, sides, load, bench.duration);
    bench.note(cpuNote('200 B JSON, c=32', sides, results));
    const [ours = [], koa = [], fastify = []] = results;
    return [
      {
        name: '200 B JSON, c=32, vs Koa',
        ours: rateText(ours),
        baseline: rateText(koa),
        value: medianRatio(ours, koa, ({ perSecond }) => perSecond),
        goal: { must: 1.3, stretch: 1.7, better: 'higher', unit: 'x' },
      },
      {
        name: '200 B JSON, c=32, vs Fastify',
        ours: rateText(ours),
        baseline: rateText(fastify),
        value: medianRatio(ours, fastify, ({ perSecond }) => perSecond),
        goal: null,
      },
    ];
  },
};
