/** Kills of a server that keeps its jobs in a folder. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeCues } from '../helpers/cues.js';
import { killedAgainAndAgain } from '../helpers/job-kills.js';
import { fixture, startServer } from '../helpers/server.js';

test(
  '4 kills of the server under load: every accepted job ends once, none begins twice',
  { timeout: 300_000 },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'banana-jobs-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const cues = makeCues(t);
    const args = ['--jobs', `local:${folder}/jobs`, '--drain-lag', '0s', '--workers', '2'];
    await killedAgainAndAgain({
      rounds: 4,
      pauseMs: 10,
      cues,
      start: () => startServer(fixture('jobs.mjs'), { t, env: cues.env, args }),
    });
  },
);
