/** A real model, its work a good part of each call: our worker against the same session in Koa's process. */
import { isDeepStrictEqual } from 'node:util';
import { checkSameAnswers } from '../answers.js';
import type { BenchCase } from '../case.js';
import { measureInTurn } from '../rounds.js';
import { statusOf } from '../servers/banana.js';
import { cpuNote, frontCpuRow, rateRow, startSides } from '../sides.js';
import { digitRequest } from './requests.js';

export const digits: BenchCase = {
  name: 'digits',
  async run(bench) {
    const load = { request: digitRequest(), connections: 8 };
    const sides = await startSides(bench, 'examples/digits/app.ts', ['koa', 'fastify']);
    await checkSameAnswers(sides, load.request, sameDigit);
    const results = await measureInTurn(bench.generator, sides, load, bench.duration);
    bench.note(cpuNote('digits, c=8', sides, results));
    const [ours = [], koa = []] = results;
    return [
      frontCpuRow('digits model, c=8, vs Koa', [ours, koa], null),
      rateRow('digits model, c=8', [ours, koa], { must: 1.0, better: 'higher', unit: 'x' }),
      {
        name: 'digits model, c=8: event-loop delay p99 of the front meanwhile',
        ours: '',
        baseline: '',
        value: (await statusOf(sides[0]?.url ?? '')).front.eventLoopDelayMs.p99,
        goal: { must: 10, better: 'lower', unit: 'ms' },
      },
    ];
  },
};

interface Answer {
  readonly label: number;
  readonly probabilities: Readonly<Record<string, number>>;
}

/** Koa and Fastify write a Float32Array as an object with the keys `0` to `9`: the same numbers. */
function sameDigit(a: unknown, b: unknown): boolean {
  const [one, other] = [a as Answer, b as Answer];
  return (
    isDeepStrictEqual(Object.values(one.probabilities), Object.values(other.probabilities)) &&
    one.label === other.label
  );
}
