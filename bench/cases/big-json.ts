/** A megabyte of JSON in and out: the front must not make a large body dearer than parsing it already is. */
import { checkSameAnswers } from '../answers.js';
import type { BenchCase } from '../case.js';
import { measureInTurn } from '../rounds.js';
import { cpuNote, frontCpuRow, rateRow, startSides } from '../sides.js';
import { bigJsonRequest } from './requests.js';

export const bigJson: BenchCase = {
  name: 'big-json',
  async run(bench) {
    const load = { request: bigJsonRequest(), connections: 4 };
    const sides = await startSides(bench, 'bench/apps/echo.mjs', ['koa']);
    await checkSameAnswers(sides, load.request);
    const results = await measureInTurn(bench.generator, sides, load, bench.duration);
    bench.note(cpuNote('1 MB JSON, c=4', sides, results));
    const [ours = [], koa = []] = results;
    return [
      frontCpuRow('1 MB JSON in and out, c=4, vs Koa', [ours, koa], null),
      rateRow('1 MB JSON in and out, c=4', [ours, koa], {
        must: 1.0,
        stretch: 1.3,
        better: 'higher',
        unit: 'x',
      }),
    ];
  },
};
