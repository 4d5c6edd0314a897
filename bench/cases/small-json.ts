/** Many small calls at once: what serving costs when the model costs nothing. */
import { checkSameAnswers } from '../answers.js';
import type { BenchCase } from '../case.js';
import type { Goal, Row } from '../report.js';
import { measureInTurn, type Round } from '../rounds.js';
import { cpuNote, frontCpuRow, rateRow, startSides } from '../sides.js';
import { smallJsonRequest } from './requests.js';

/** The place of the bare server among the sides. */
const BARE = 3;
/** 18 us where Koa takes 24, and Fastify's 17: what a machine with cores to spare can serve is bound by the front. */
const GOAL: Goal = { must: 0.75, stretch: 0.71, better: 'lower', unit: 'x' };

export const smallJson: BenchCase = {
  name: 'small-json',
  async run(bench) {
    const load = { request: smallJsonRequest(), connections: 32 };
    const sides = await startSides(bench, 'bench/apps/small.mjs', ['koa', 'fastify', 'bare']);
    await checkSameAnswers(sides.slice(0, BARE), load.request); // the bare server answers with a fixed text
    const results = await measureInTurn(bench.generator, sides, load, bench.duration);
    bench.note(cpuNote('200 B JSON, c=32', sides, results));
    const [ours = [], koa = [], fastify = [], bare = []] = results;
    return [
      ...cpuRows(ours, { koa, fastify, bare }),
      rateRow('200 B JSON, c=32, vs Koa', [ours, koa], null),
      rateRow('200 B JSON, c=32, vs Fastify', [ours, fastify], null),
    ];
  },
};

/** The rates depend on how many cores there are and what else they carry; these do not. */
function cpuRows(ours: Round[], { koa, fastify, bare }: Record<'koa' | 'fastify' | 'bare', Round[]>): Row[] {
  return [
    frontCpuRow('200 B JSON, c=32, vs Koa', [ours, koa], GOAL),
    frontCpuRow('200 B JSON, c=32, vs Fastify', [ours, fastify], null),
    frontCpuRow('200 B JSON, c=32, vs an echo on bare node:http', [ours, bare], null),
  ];
}
