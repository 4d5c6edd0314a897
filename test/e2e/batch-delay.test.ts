/** When calls are put together: `--batch-size` and `--max-batch-delay`, of a flag and of an app's config. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { editedApp } from '../helpers/edited-app.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { type Answer } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

/** Number of calls that ran together with this one. */
function sizeOf(answer: Answer): number {
  return answer.json<{ of: number }>().of;
}

/** An app whose batches are of 2, however long that takes. */
const OF_TWO = `export const config = { batchSize: 2, maxBatchDelay: '1h' };
export const inferenceBatch = (inputs) => inputs.map(() => ({ of: inputs.length }));`;

withEachRuntime(({ app, batchFunction }) => {
  test(
    'an app that takes neither batches nor several calls at once causes a warning when they are set',
    LIMIT,
    async (t) => {
      const server = await startHere(app('answers'), {
        t,
        args: ['--batch-size', '8', '--concurrency', '4'],
      });
      await server.untilPrinted(
        new RegExp(`WARN: --batch-size is 8, but no route takes batches: .*\\b${batchFunction}\\b`),
      );
      await server.untilPrinted(
        /WARN: --concurrency is 4, but the calls run one after the other: .* does not set concurrency/,
      );
      await server.stop();
    },
  );
});

withOneRuntime(() => {
  test("size and delay of an app's config hold", LIMIT, async (t) => {
    const server = await startHere(editedApp(t, { 'app.mjs': OF_TWO }).path('app.mjs'), { t });
    await server.until(({ state }) => state === 'ready');
    const first = ask(server, {});
    await server.until(({ model }) => model.queue.waiting === 1);
    assert.deepEqual((await Promise.all([first, ask(server, {})])).map(sizeOf), [2, 2]);
    await server.stop();
  });
});

withOneRuntime(({ app }) => {
  test(
    'with no delay calls run alone while the worker is free, and gather while it is busy',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startHere(app('batches'), { t, args: ['--batch-size', '8'], env: cues.env });
      await server.until(({ state }) => state === 'ready');
      const first = ask(server, { name: 'first', until: 'go' });
      await cues.untilNoted('run first');
      const others = ['a', 'b', 'c'].map((name) => ask(server, { name }));
      await server.until(({ model }) => model.queue.waiting === 3);
      cues.give('go');
      assert.equal(sizeOf(await first), 1);
      assert.deepEqual((await Promise.all(others)).map(sizeOf), [3, 3, 3]);
      await server.stop();
    },
  );

  test('calls wait beside an idle worker until the delay of the first one is over', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--batch-size', '8', '--max-batch-delay', '5s'];
    const server = await startHere(app('batches'), { t, args, env: cues.env });
    await server.until(({ state }) => state === 'ready');
    const first = ask(server, { name: 'a' });
    await server.until(({ model }) => model.queue.waiting === 1);
    assert.deepEqual(cues.notes(), [], 'the worker is idle');
    const second = ask(server, { name: 'b' });
    assert.deepEqual((await Promise.all([first, second])).map(sizeOf), [2, 2]);
    await server.stop();
  });

  test(
    'a call with a deadline is not kept waiting for others beyond it, whatever the delay',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--batch-size', '8', '--max-batch-delay', '1h'];
      const server = await startHere(app('batches'), { t, args, env: cues.env });
      const headers = { 'X-Request-Timeout-Seconds': '50' };
      const answer = await ask(server, { name: 'a' }, { headers });
      assert.deepEqual([answer.status, sizeOf(answer)], [200, 1]);
      await server.stop();
    },
  );
});
