/** The cost of a schema: zod and pydantic beside the same check by hand, for 200 B and for 1 MB. `python3` must have pydantic 2. */
import { checkSameAnswers } from '../answers.js';
import type { Bench, BenchCase } from '../case.js';
import type { Row } from '../report.js';
import { measureInTurn, type Side } from '../rounds.js';
import { source } from '../servers/child-server.js';
import { cpuNote, rateRow, sideOf, workerCpuRow } from '../sides.js';
import { bigJsonRequest, smallJsonRequest } from './requests.js';

const BODIES = [
  ['200 B', smallJsonRequest, 32],
  ['1 MB', bigJsonRequest, 4],
] as const;

export const schemas: BenchCase = {
  name: 'schemas',
  async run(bench) {
    const zod = await sidesOf(bench, { zod: 'checked-by-zod.mjs', hand: 'checked-by-hand.mjs' });
    const pydantic = await sidesOf(bench, {
      pydantic: 'python/checked_by_pydantic.py',
      hand: 'python/checked_by_hand.py',
    });
    return [...(await rowsOf(bench, 'zod', zod)), ...(await rowsOf(bench, 'pydantic', pydantic))];
  },
};

async function sidesOf(bench: Bench, apps: Readonly<Record<string, string>>): Promise<Side[]> {
  const sides: Side[] = [];
  for (const [name, app] of Object.entries(apps))
    sides.push(await sideOf(name, await bench.startBanana(source(`bench/apps/${app}`))));
  return sides;
}

async function rowsOf(bench: Bench, library: string, sides: readonly Side[]): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [size, request, connections] of BODIES) {
    const load = { request: request(), connections };
    await checkSameAnswers(sides, load.request);
    const results = await measureInTurn(bench.generator, sides, load, bench.duration);
    const title = `${size} checked by ${library}, c=${connections}, vs by hand`;
    bench.note(cpuNote(title, sides, results));
    const [checked = [], hand = []] = results;
    rows.push(workerCpuRow(title, [checked, hand], null), rateRow(title, [checked, hand], null));
  }
  return rows;
}
