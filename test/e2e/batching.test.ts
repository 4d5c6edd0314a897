/** Calls that run together: what each of their callers sees. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { askTogether, batchServer, fullBatches, statuses } from '../helpers/batch-server.js';
import { makeCues } from '../helpers/cues.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, fixture, runCommand, type Answer } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import { startBy } from '../helpers/starters.js';

const LIMIT = { timeout: 240_000 };

type Entry = readonly [gives: string, status: number, text: RegExp, isPrinted?: true];

/** Each kind of entry that an app may return, and the answer to its input's caller. */
const ENTRIES: Readonly<Record<Language, readonly Entry[]>> = {
  TypeScript: [
    ['Error', 500, /SERVE_INFERENCE_FAILED/, true],
    ['Response', 418, /^Response$/],
    ['stream', 200, /^stream in parts$/],
    ['BigInt', 500, /SERVE_OUTPUT_INVALID.*output\.huge is a BigInt/],
    ['rejection', 500, /SERVE_INFERENCE_FAILED/, true],
    ['value', 200, /"of":3/],
  ],
  Python: [
    ['Error', 500, /SERVE_INFERENCE_FAILED/, true],
    ['bytes', 200, /^bytes$/],
    ['stream', 200, /^stream in parts$/],
    ['async stream', 200, /^async stream in parts$/],
    ['object', 500, /SERVE_OUTPUT_INVALID.*output\[\\"huge\\"\] is an object/],
    ['value', 200, /"of":3/],
  ],
};

/** The hint in the log, once, by which one bad input fails alone. */
const REPEATABLE: Readonly<Record<Language, string>> = {
  TypeScript: 'repeatable: true',
  Python: '"repeatable": True',
};

withEachRuntime(({ language, app }) => {
  const APP = app('batches');

  describe('on one server', LIMIT, () => {
    const shared = shareHere(APP, { args: fullBatches(3), expectedRestarts: 1 });
    after(() => {
      const { server } = shared;
      assert.equal(server.stderr().split(REPEATABLE[language]).length, 2, server.stderr());
    });

    test(
      'calls that come together run together, and each caller gets the entry of its own input',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        const answers = await askTogether(server, [{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
        assert.deepEqual(statuses(answers), [200, 200, 200]);
        assert.deepEqual(
          answers
            .map((answer) => answer.json<{ name: string; id: string; of: number }>())
            .map(({ name, id, of }) => [name, id, of]),
          [
            ['a', 'id-0', 3],
            ['b', 'id-1', 3],
            ['c', 'id-2', 3],
          ],
        );
        assert.deepEqual(cues.notes(), ['run a b c']);
      },
    );

    test('a malformed body is refused to its own caller alone', LIMIT, async () => {
      const { server, cues } = shared;
      const [bad, ...good] = await Promise.all([
        call(server.url, '{"name":'),
        ask(server, { name: 'a' }),
        ask(server, { name: 'b' }),
      ]);
      assert.equal(bad.status, 400);
      assert.equal(errorOf(bad).code, 'SERVE_BAD_BODY');
      assert.deepEqual(
        good.map((answer) => answer.json<{ of: number }>().of),
        [2, 2],
      );
      assert.deepEqual(cues.notes(), ['run a b']);
    });

    test(
      'a throw fails all calls of its batch; the worker lives, and the log explains once how to help the others',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        for (let i = 0; i < 2; i += 1) {
          const answers = await askTogether(server, [
            { name: 'a' },
            { name: 'b', throws: 'boom' },
            { name: 'c' },
          ]);
          assert.deepEqual(statuses(answers), [500, 500, 500]);
          assert.deepEqual(
            answers.map((answer) => errorOf(answer).code),
            Array(3).fill('SERVE_INFERENCE_FAILED'),
          );
        }
        assert.deepEqual(
          statuses(await askTogether(server, [{ name: 'd' }, { name: 'e' }, { name: 'f' }])),
          [200, 200, 200],
        );
        assert.deepEqual(cues.notes(), ['run a b c', 'run a b c', 'run d e f']);
      },
    );

    test(
      'a malformed body does not hide from the server that the others of its batch had begun',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        const first = ask(server, { name: 'a', until: 'killed' });
        const second = ask(server, { name: 'b', dies: 'SIGKILL' });
        await server.until(({ model }) => model.queue.waiting === 2);
        const last = call(server.url, '{"name":');
        assert.equal((await last).status, 400);
        await cues.untilNoted('run a b');
        cues.give('killed');
        assert.deepEqual(statuses(await Promise.all([first, second])), [500, 500]);
        assert.deepEqual(cues.notes(), ['run a b'], 'neither has run twice');
        await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
      },
    );

    test(
      'each entry decides about its own call: a value, an error, a stream, what is no JSON',
      LIMIT,
      async () => {
        const rows = ENTRIES[language];
        const { server, cues } = shared;
        const answers: Answer[] = [];
        for (const half of [rows.slice(0, 3), rows.slice(3)])
          answers.push(
            ...(await askTogether(
              server,
              half.map(([what]) => ({ name: what, gives: what })),
            )),
          );
        assert.deepEqual(
          statuses(answers),
          rows.map(([, status]) => status),
        );
        for (const [i, [, , text]] of rows.entries()) assert.match(answers[i]?.text ?? '', text);
        for (const [what, , , printed] of rows) {
          if (printed) await server.untilPrinted(`${what} is wrong`);
        }
        assert.equal(cues.notes().length, 2);
      },
    );
  });

  describe('on one server of an app that is repeatable', LIMIT, () => {
    const env = { REPEATABLE: '1' };
    const shared = shareHere(APP, { args: fullBatches(4), env, expectedRestarts: 1 });
    after(() => assert.ok(!shared.server.stderr().includes('repeatable'), shared.server.stderr()));

    test('a wrong number of entries is an error for all, which names both numbers', LIMIT, async () => {
      const { server } = shared;
      const answers = await askTogether(
        server,
        ['a', 'b', 'c', 'd'].map((name) => ({ name, forgets: true })),
      );
      assert.deepEqual(statuses(answers), [500, 500, 500, 500]);
      for (const answer of answers) assert.match(errorOf(answer).message, /returned 0 entries for 4 calls/);
    });

    test(
      'the death of a worker fails every call of its batch, and none of them runs again',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        const answers = await askTogether(server, [
          { name: 'a' },
          { name: 'b', dies: 'SIGKILL' },
          { name: 'c' },
          { name: 'd' },
        ]);
        assert.deepEqual(statuses(answers), [500, 500, 500, 500]);
        assert.deepEqual(
          answers.map((answer) => errorOf(answer).code),
          Array(4).fill('SERVE_WORKER_LOST'),
        );
        assert.deepEqual(
          statuses(
            await askTogether(
              server,
              ['e', 'f', 'g', 'h'].map((name) => ({ name })),
            ),
          ),
          [200, 200, 200, 200],
        );
        assert.deepEqual(cues.notes(), ['run a b c d', 'run e f g h']);
        await server.untilPrinted(/died \(signal SIGKILL\) while running call id-\d of \/ and 3 more;/);
      },
    );

    test(
      'with repeatable: true a throw fails only the call that causes it, and the others are answered',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        const answers = await askTogether(server, [
          { name: 'a' },
          { name: 'b' },
          { name: 'c', throws: 'boom' },
          { name: 'd' },
        ]);
        assert.deepEqual(statuses(answers), [200, 200, 500, 200]);
        const runs = cues.notes();
        for (const name of ['a', 'b', 'c', 'd']) {
          const count = runs.filter((run) => run.split(' ').includes(name)).length;
          assert.ok(count >= 2 && count <= 3, `${name} ran ${count} times: ${runs.join('; ')}`);
        }
      },
    );
  });

  test(
    'a batch that is run again in halves has one run timeout: what is answered by then stays, the rest get 504',
    LIMIT,
    async (t) => {
      const { server, cues, askAll } = await batchServer(t, APP, 4, {
        args: ['--run-timeout', '2s'],
        env: { REPEATABLE: '1' },
        expectedRestarts: 1,
      });
      const hangs = { hangsBelow: 4 };
      const answers = await askAll([
        { name: 'a', throws: 'boom' },
        { name: 'b', ...hangs },
        { name: 'c', ...hangs },
        { name: 'd', ...hangs },
      ]);
      const timedOut = answers.filter(({ status }) => status === 504);
      assert.ok(timedOut.length >= 2, statuses(answers).join());
      assert.equal(answers[0]?.status === 500 || answers[0]?.status === 504, true);
      for (const answer of timedOut) assert.equal(errorOf(answer).code, 'SERVE_INFERENCE_TIMEOUT');
      await server.untilPrinted('run timeout');
      await cues.untilNoted(/^abort /);
      await server.until(({ model }) => model.workers[0]?.restarts === 1);
      await server.stop();
    },
  );

  test('an app with a batch function alone answers a single call, a batch of one', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startHere(APP, { t, args: ['--workers', '1'], env: cues.env });
    assert.equal((await ask(server, { name: 'a' })).json<{ of: number }>().of, 1);
    const forgetful = await ask(server, { name: 'b', forgets: true });
    assert.equal(forgetful.status, 500);
    assert.match(errorOf(forgetful).message, /returned 0 entries for 1 call;/);
    await server.stop();
  });

  test(
    'a Potassium route with batch: true runs its calls together; a route without it stays one call at a time',
    LIMIT,
    async (t) => {
      const args = ['--workers', '1', '--batch-size', '3', '--max-batch-delay', '30s'];
      const server = await startHere(app('batches-potassium'), { t, args });
      const post = (path: string, input: object): Promise<Answer> =>
        ask({ url: `${server.url}${path}` }, input);
      const answers = await Promise.all(
        [{ n: 1 }, { n: 2, wrong: true }, { n: 3 }].map((input) => post('/batch', input)),
      );
      assert.deepEqual(statuses(answers), [202, 500, 202]);
      const told = [answers[0], answers[2]].map((answer) =>
        answer?.json<{ n: number; of: number; runs: number }>(),
      );
      assert.deepEqual(
        told.map((one) => [one?.n, one?.of, one?.runs]),
        [
          [1, 3, 1],
          [3, 3, 1],
        ],
      );
      assert.deepEqual((await post('/single', { n: 4 })).json(), { n: 4 });
      await server.stop();
    },
  );
});

test('a rejection among too few entries costs no worker, although no code handles it', LIMIT, async (t) => {
  const { server, askAll } = await batchServer(t, fixture('batches.mjs'), 2);
  const answers = await askAll([{ name: 'a', forgets: 'all but a rejection' }, { name: 'b' }]);
  assert.deepEqual(statuses(answers), [500, 500]);
  assert.match(errorOf(answers[1] as Answer).message, /1 entry for 2 calls/);
  await askAll([{ name: 'c' }, { name: 'd' }]);
  await server.stop(); // which counts the restarts
});

test('no call times out in the queue because it waits for others to join its batch', LIMIT, async (t) => {
  const { server, cues, askAll } = await batchServer(t, fixture('batches.mjs'), 3, {
    args: ['--queue-timeout', '4s'],
  });
  await server.until(({ state }) => state === 'ready');
  assert.deepEqual(statuses(await askAll([{ name: 'a' }, { name: 'b' }])), [200, 200]);
  assert.deepEqual(cues.notes(), ['run a b']);
  await server.stop();
});

test(
  'serve({ inferenceBatch }), the former name of run, serves a batch function that starts itself',
  LIMIT,
  async (t) => {
    const server = await startBy(t, [process.execPath, fixture('batches-serve.mjs')], {
      env: { TEST_PORT: '0' },
    });
    const answers = await Promise.all(['a', 'b'].map((input) => ask(server, input)));
    assert.deepEqual(
      answers.map((answer) => answer.json()),
      [
        { input: 'a', of: 2 },
        { input: 'b', of: 2 },
      ],
    );
    process.kill(server.pid, 'SIGINT');
    await server.untilEnded();
  },
);

test('a test client calls batch routes, one by one or together as its options require', LIMIT, async (t) => {
  const program = runCommand([fixture('batches-test-client.mjs')], { t, command: process.execPath });
  assert.equal((await program.ended).code, 0, program.stderr());
  const told = [
    ['a', 2],
    ['b', 2],
    ['c', 1],
  ].map(([json, of]) => JSON.stringify({ json, of }));
  assert.equal(program.stdout().trim(), told.join(' '));
});
