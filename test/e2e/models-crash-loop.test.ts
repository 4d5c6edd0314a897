/** A model whose workers do not start takes nothing from the others of its server. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { eventually } from '../helpers/server.js';

/** More than the good model has workers. */
const KILLS = 6;
const LIMIT = { timeout: 240_000 };

withOneRuntime(({ app }) => {
  test(
    'beside a model that fails and hangs in init, another gets its workers, and new ones for those that die',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startHere(app('killable'), {
        t,
        env: cues.env,
        args: [
          '--model',
          `loops=${app('hangs-after-failing')}`,
          '--workers',
          '4',
          '--spawn-concurrency',
          '2',
          '--restart-limit',
          '1000',
        ],
      });
      const failed = (): boolean =>
        [0, 1, 2, 3].every((index) => existsSync(join(cues.folder, `died ${index}`)));
      await eventually(failed, 60_000, server.stderr);
      await cues.untilNoted(/^hangs/);
      for (let i = 0; i < KILLS; i += 1) assert.equal((await ask(server, { dies: 'exit 7' })).status, 500);
      assert.equal((await ask(server, {})).status, 200);
      const hanging = cues.notes().filter((note) => note.startsWith('hangs'));
      assert.equal(hanging.length, 1, 'one turn of two is all that a failing model gets');
      await server.stop('SIGINT', 4 + KILLS);
    },
  );
});
