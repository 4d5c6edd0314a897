/**
 * Measures the cost of a change per call: another build of this server and the present one run in turn under the same load. The
 * other build runs twice, so that the difference of two equal servers stands beside that of the two builds.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { BenchCase } from '../case.js';
import type { Row } from '../report.js';
import { measureInTurn, medianRatio, type Load, type Round, type Side } from '../rounds.js';
import { source } from '../servers/child-server.js';
import { cpuText, serverCpuUs, sideOf } from '../sides.js';
import { jsonRequest, smallJsonRequest } from './requests.js';

/** The model sends back what it gets. */
const LOADS: Readonly<Record<string, Load>> = {
  '200 B JSON, c=32': { request: smallJsonRequest(), connections: 32 },
  '200 B JSON, c=1': { request: smallJsonRequest(), connections: 1 },
  '1 MB JSON, c=8': { request: jsonRequest({ prompt: 'banana '.repeat(150_000) }), connections: 8 },
};

/** `folder`: another checkout, built (`npm run build`). */
export function before(folder: string): BenchCase {
  return {
    name: 'before',
    async run(bench) {
      const app = source('bench/apps/small.mjs');
      const commands = ['front', 'supervisor'].map((room) => join(folder, 'dist', room, 'cli.js'));
      const old = { cli: commands.find((path) => existsSync(path)) ?? '' };
      const sides: Side[] = [
        await sideOf('the other build', await bench.startBanana(app, old)),
        await sideOf('this build', await bench.startBanana(app)),
        await sideOf('the other build again', await bench.startBanana(app, old)),
      ];
      const rows: Row[] = [];
      for (const [what, load] of Object.entries(LOADS))
        rows.push(...rowsOf(what, await measureInTurn(bench.generator, sides, load, bench.duration)));
      return rows;
    },
  };
}

function rowsOf(what: string, [old = [], ours = [], again = []]: readonly Round[][]): Row[] {
  const row = (name: string, left: readonly Round[], right: readonly Round[]): Row => ({
    name: `${what}, CPU per request, ${name}`,
    ours: cpuText(left),
    baseline: cpuText(right),
    value: medianRatio(left, right, serverCpuUs),
    goal: null,
  });
  return [row('this build, vs the other', ours, old), row('the other build, vs itself', again, old)];
}
