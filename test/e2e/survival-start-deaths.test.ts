/** A worker that dies before it is ready is started again, and the calls that wait for it are answered. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';

const LIMIT = { timeout: 240_000 };

/** The front sees exits and signals, whatever the language. */
withOneRuntime(({ app }) => {
  for (const step of ['import', 'init']) {
    test(
      `an app that dies in ${step}, in four ways: each worker is restarted and the calls held meanwhile are answered`,
      LIMIT,
      async (t) => {
        const cues = makeCues(t);
        const ways = ['SIGKILL', 'abort', 'exit 0', 'throw'];
        const env = { ...cues.env, DIE_BY: ways.join(',') };
        const server = await startHere(app(`dies-in-${step}`), {
          t,
          env,
          args: ['--workers', '4', '--spawn-concurrency', '4'],
        });
        const answers = await Promise.all(ways.map((_, i) => ask(server, i)));
        for (const [i, answer] of answers.entries()) {
          assert.equal(answer.status, 200, answer.text);
          assert.equal(answer.json<{ input: number }>().input, i);
        }
        await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
        for (const way of ways) await server.untilPrinted(`armed: dies in ${step} by ${way}`);
        await server.stop('SIGINT', ways.length);
      },
    );
  }
});
