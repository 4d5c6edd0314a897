/** One caller with one small call at a time: what the way through two processes adds. */
import { checkSameAnswers } from '../answers.js';
import type { BenchCase } from '../case.js';
import { measureInTurn, medianOf, medianRatio, type Round } from '../rounds.js';
import { cpuNote, frontCpuRow, startSides } from '../sides.js';
import { smallJsonRequest } from './requests.js';

export const latency: BenchCase = {
  name: 'latency',
  async run(bench) {
    const load = { request: smallJsonRequest(), connections: 1 };
    const sides = await startSides(bench, 'bench/apps/small.mjs', ['koa', 'fastify']);
    await checkSameAnswers(sides, load.request);
    const results = await measureInTurn(bench.generator, sides, load, bench.duration);
    bench.note(cpuNote('200 B JSON, c=1', sides, results));
    const p99 = sides.map(
      ({ name }, i) => `${name} ${inUs(results[i] ?? [], ({ latencyMs }) => latencyMs.p99)}`,
    );
    bench.note(`200 B JSON, c=1, p99: ${p99.join('; ')}.`);
    const [ours = [], koa = [], fastify = []] = results;
    return [
      frontCpuRow('200 B JSON, c=1, vs Koa', [ours, koa], null),
      {
        name: '200 B JSON, c=1, p50, vs Koa',
        ours: inUs(ours, p50),
        baseline: inUs(koa, p50),
        value: medianRatio(ours, koa, p50),
        goal: { must: 1.6, stretch: 1.3, better: 'lower', unit: 'x' },
      },
      {
        name: '200 B JSON, c=1, p50, vs Fastify',
        ours: inUs(ours, p50),
        baseline: inUs(fastify, p50),
        value: medianRatio(ours, fastify, p50),
        goal: null,
      },
    ];
  },
};

function p50({ latencyMs }: Round): number {
  return latencyMs.p50;
}

function inUs(rounds: readonly Round[], metricMs: (round: Round) => number): string {
  return `${(medianOf(rounds, metricMs) * 1000).toFixed(0)} us`;
}
