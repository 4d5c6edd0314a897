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
import { smallJsonRequest } from './requests.js';

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
      for (const connections of [32, 1]) {
        const load: Load = { request: smallJsonRequest(), connections };
        rows.push(...rowsOf(connections, await measureInTurn(bench.generator, sides, load, bench.duration)));
      }
      return rows;
    },
  };
}

function rowsOf(connections: number, [old = [], ours = [], again = []]: readonly Round[][]): Row[] {
  const row = (name: string, left: readonly Round[], right: readonly Round[]): Row => ({
    name: `200 B JSON, c=${connections}, CPU per request, ${name}`,
    ours: cpuText(left),
    baseline: cpuText(right),
    value: medianRatio(left, right, serverCpuUs),
    goal: null,
  });
  return [row('this build, vs the other', ours, old), row('the other build, vs itself', again, old)];
}
