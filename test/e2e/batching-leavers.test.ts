/** Calls that leave their batches, before these begin or while they run; and batches of a server that stops. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { batchServer, statuses, type Batches } from '../helpers/batch-server.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { eventually, fixture, type Answer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

withEachRuntime(({ language, app }) => {
  const APP = app('batches');

  test(
    'a client that leaves a running batch aborts the signal of its own call, and the others are answered',
    LIMIT,
    async (t) => {
      const { server, cues } = await batchServer(t, APP, 3);
      const leaving = new AbortController();
      const others = [ask(server, { name: 'a', until: 'left' }), ask(server, { name: 'b' })];
      const left = ask(server, { name: 'c' }, { signal: leaving.signal }).catch((error: Error) => error.name);
      await cues.untilNoted('run a b c');
      leaving.abort();
      assert.equal(await left, 'AbortError');
      await cues.untilNoted(/^abort c: /);
      cues.give('left');
      assert.deepEqual(statuses(await Promise.all(others)), [200, 200]);
      assert.deepEqual(
        cues
          .notes()
          .slice(1)
          .map((note) => note.slice(0, 7)),
        ['abort c'],
      );
      await server.stop();
    },
  );

  test(
    'a full batch lies ready in the worker while another runs; a call whose client leaves is taken out before it begins',
    LIMIT,
    async (t) => {
      const leaving = new AbortController();
      const { server, cues, endRunning, running, ahead } = await sendAhead(t, APP, (to) =>
        ask(to, { name: 'c' }, { signal: leaving.signal }),
      );
      leaving.abort();
      await assert.rejects(ahead[0], { name: 'AbortError' });
      await server.until(({ model }) => model.workers[0]?.held === 3); // the worker has reported that it dropped it
      endRunning();
      assert.deepEqual(statuses(await running), [200, 200]);
      assert.equal((await ahead[1]).json<{ of: number }>().of, 1);
      assert.deepEqual(cues.notes().slice(-2), ['run a b', 'run d']);
      await server.stop();
    },
  );

  test(
    'a call whose deadline passes in a batch that was sent ahead is taken out before it begins',
    LIMIT,
    async (t) => {
      const { server, cues, endRunning, running, ahead } = await sendAhead(t, APP, (to) =>
        ask(to, { name: 'c' }, { headers: { 'x-request-timeout-seconds': '2' } }),
      );
      assert.equal(errorOf(await ahead[0]).code, 'SERVE_DEADLINE');
      await server.until(({ model }) => model.workers[0]?.held === 3); // the worker gets the cancel after the client's error
      endRunning();
      assert.deepEqual(statuses(await running), [200, 200]);
      assert.equal((await ahead[1]).json<{ of: number }>().of, 1);
      assert.deepEqual(cues.notes().slice(-2), ['run a b', 'run d']);
      await server.stop();
    },
  );

  test('a server that stops waits for the batch that runs and answers all of its calls', LIMIT, async (t) => {
    const { server, cues, askAll } = await batchServer(t, APP, 2);
    const answers = askAll([{ name: 'a', until: 'stopping' }, { name: 'b' }]);
    await cues.untilNoted('run a b');
    const stopped = server.stop();
    await server.until(({ state }) => state === 'draining');
    cues.give('stopping');
    assert.deepEqual(statuses(await answers), [200, 200]);
    await stopped;
  });

  if (language === 'Python')
    test(
      'a batch of coroutines is cancelled when the last of its callers has left, and not before',
      LIMIT,
      async (t) => {
        const { server, cues } = await batchServer(t, app('awaits'), 2);
        const leaving = [new AbortController(), new AbortController()] as const;
        const left = leaving.map(({ signal }, i) => ask(server, { do: 'wait' }, { id: `c${i}`, signal }));
        for (const id of ['c0', 'c1']) await cues.untilNoted(`waiting in ${id}`);
        for (const [i, caller] of leaving.entries()) {
          caller.abort();
          await assert.rejects(left[i] as Promise<Answer>);
          await cues.untilNoted(`left c${i}`);
        }
        const next = await Promise.all([ask(server, {}), ask(server, {})]);
        assert.deepEqual(statuses(next), [200, 200], 'the worker lives');
        const told = cues.notes().filter((note) => note.startsWith('cancelled'));
        assert.equal(told.length, 2);
        for (const note of told) assert.match(note, /: the client/, 'its own client has left as well');
        await server.stop();
      },
    );
});

test('calls of a server that stops wait for no others to join their batch', LIMIT, async (t) => {
  const { server, cues, askAll } = await batchServer(t, fixture('batches.mjs'), 3);
  const answers = askAll([{ name: 'a' }, { name: 'b' }]);
  await server.until(({ model }) => model.queue.waiting === 2);
  const stopped = server.stop();
  assert.deepEqual(statuses(await answers), [200, 200]);
  assert.deepEqual(cues.notes(), ['run a b']);
  await stopped;
});
/** A batch that is in the worker behind a running one, and has not begun. */
interface Ahead extends Batches {
  /** Ends the running batch. */
  endRunning(): void;
  /** The answers of the running calls, a and b. */
  readonly running: Promise<Answer[]>;
  /** The answers of the two calls behind them, c and d. */
  readonly ahead: readonly [Promise<Answer>, Promise<Answer>];
}

/** `askC` asks for c. */
async function sendAhead(
  t: TestContext,
  app: string,
  askC: (server: Server) => Promise<Answer>,
): Promise<Ahead> {
  const batches = await batchServer(t, app, 2);
  const { server, cues, askAll } = batches;
  // Nothing goes ahead behind a run of more than 25 ms, and calls may come in another order: then others are tried.
  for (let attempt = 1; ; attempt += 1) {
    await untilRunsAreShort(batches);
    const cue = `end ${attempt}`;
    const endRunning = (): void => cues.give(cue);
    const running = askAll([{ name: 'a', until: cue }, { name: 'b' }]);
    const ahead = [askC(server), ask(server, { name: 'd' })] as const;
    const before = cues.notes().length;
    await Promise.race([
      server.until(({ model }) => model.queue.waiting + model.inFlight === 4),
      Promise.allSettled(ahead),
    ]);
    await eventually(
      () => cues.notes().length > before,
      60_000,
      () => 'no batch has begun',
    );
    const held = (await server.status()).model.workers[0]?.held;
    if (held === 4 && cues.notes().at(-1) === 'run a b') return { ...batches, endRunning, running, ahead };
    endRunning();
    await Promise.allSettled([running, ...ahead]);
  }
}

async function untilRunsAreShort({ server, askAll }: Batches): Promise<void> {
  for (;;) {
    await askAll([{ name: 'x' }, { name: 'y' }]);
    const { mean } = (await server.status()).model.runMs;
    if (mean !== null && mean < 15) return;
  }
}
