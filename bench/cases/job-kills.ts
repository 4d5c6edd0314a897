/** A hundred kills of a server that keeps its jobs on a disk, under load: every accepted job ends once, and none begins twice. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCues } from '../../test/helpers/cues.js';
import { killedAgainAndAgain } from '../../test/helpers/job-kills.js';
import { fixture, startServer } from '../../test/helpers/server.js';
import type { BenchCase } from '../case.js';

const KILLS = 100;

export const jobKills: BenchCase = {
  name: 'job-kills',
  async run(bench) {
    const folder = mkdtempSync(join(tmpdir(), 'banana-bench-'));
    const atEnd = (then: () => void): void => void bench.keep({ stop: () => Promise.resolve(then()) });
    atEnd(() => rmSync(folder, { recursive: true, force: true }));
    const cues = makeCues({ after: atEnd });
    const args = ['--jobs', `local:${folder}/jobs`, '--workers', '2'];
    const start = (): ReturnType<typeof startServer> =>
      startServer(fixture('jobs.mjs'), { env: cues.env, args });
    const { accepted, states } = await killedAgainAndAgain({ rounds: KILLS, cues, start });
    const counts = Array.from(states, ([state, count]) => `${count} ${state}`).join(', ');
    bench.note(
      `${KILLS} kills: of ${accepted} accepted jobs every one ended once, and none began twice: ${counts}.`,
    );
    return [];
  },
};
