/** Workers that run eight calls at the same time: what each of them may do to the others, and what it may not. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ask, askPastDeadline, errorOf, logLines, pidOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { jobEnd, startAsync } from '../helpers/jobs.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { untilScraped } from '../helpers/scrape.js';
import { startHere } from '../helpers/here.js';
import { call, eventually, isAlive, type Answer, type Server } from '../helpers/server.js';
import { shareHere, type SharedServer } from '../helpers/shared-server.js';
import { UnreadAnswer } from '../helpers/unread.js';
import { openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 240_000 };

/** As many as the fixture app runs at the same time. */
const PLACES = 8;

type Named = readonly [id: string, answer: Promise<Answer>];

/** Calls with the ids `a0`, `a1` and so on that have begun. */
async function beginAll(
  { server, cues }: Pick<SharedServer, 'server' | 'cues'>,
  input: unknown,
  count = PLACES,
  prefix = 'a',
): Promise<Named[]> {
  const calls = Array.from({ length: count }, (_, i): Named => {
    const id = `${prefix}${i}`;
    return [id, ask(server, input, { id })];
  });
  for (const [id] of calls) await cues.untilNoted(`begun ${id}`);
  return calls;
}

const codesOf = async (calls: readonly Named[]): Promise<string[]> =>
  Promise.all(calls.map(async ([, answer]) => errorOf(await answer).code));

const pid = (answer: Answer): number => answer.json<{ pid: number }>().pid;

const timesBegun = ({ cues }: Pick<SharedServer, 'cues'>, id: string): number =>
  cues.notes().filter((line) => line === `begun ${id}`).length;

/** The worker processes of the server that run. */
async function workersOf(server: Server): Promise<number[]> {
  const { model } = await server.status();
  return model.workers.flatMap(({ pid }) => pid ?? []);
}

withEachRuntime(({ app }) => {
  describe('eight calls at the same time', () => {
    const args = ['--log-format', 'json', '--metrics', '--workers', '2'];
    const shared = shareHere(app('eight-at-once'), { args });

    test('two workers hold sixteen; the next one waits in line, and none is sent ahead', LIMIT, async () => {
      const { server, cues } = shared;
      await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
      const calls = await beginAll(shared, { do: 'wait', until: 'go' }, 2 * PLACES);
      const waiting = ask(server, {}, { id: 'next' });
      const { model } = await server.until(({ model }) => model.queue.waiting === 1);
      assert.deepEqual(
        model.workers.map(({ held }) => held),
        [PLACES, PLACES],
        'the least loaded worker gets the next one',
      );
      assert.equal(timesBegun(shared, 'next'), 0);
      cues.give('go');
      const answers = await Promise.all(calls.map(([, answer]) => answer));
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
      assert.equal(Math.max(...answers.map((answer) => answer.json<{ most: number }>().most)), PLACES);
      assert.equal(new Set(answers.map(pid)).size, 2);
      assert.equal((await waiting).status, 200);
    });

    test('a call that throws, and one whose client leaves, cost none of the others', LIMIT, async () => {
      const { server, cues } = shared;
      const calls = await beginAll(shared, { do: 'wait', until: 'go' }, 12);
      const leaving = new AbortController();
      const left = ask(server, { do: 'wait', until: 'go' }, { id: 'leaves', signal: leaving.signal });
      await cues.untilNoted('begun leaves');
      leaving.abort();
      await assert.rejects(left);
      await cues.untilNoted(/^aborted leaves: the client/);
      assert.equal(errorOf(await ask(server, { do: 'throw' })).code, 'SERVE_INFERENCE_FAILED');
      assert.equal(cues.notes().filter((line) => line.startsWith('aborted')).length, 1);
      cues.give('go');
      for (const [, answer] of calls) assert.equal((await answer).status, 200);
    });

    test('a deadline that passes aborts its own call alone', LIMIT, async () => {
      const { server, cues } = shared;
      const calls = await beginAll(shared, { do: 'wait', until: 'go' }, 7);
      const id = await askPastDeadline(server, cues, { do: 'wait', until: 'go' });
      await cues.untilNoted(`aborted ${id}: the client's deadline passed`);
      cues.give('go');
      for (const [, answer] of calls) assert.equal((await answer).status, 200);
    });

    test(
      'what calls print, log and count is that of each call, also after others have run',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        const calls = await beginAll(shared, { do: 'say', until: 'go' }, PLACES, 'says');
        cues.give('go');
        for (const [, answer] of calls) assert.equal((await answer).status, 200);
        const says = (server: Server): unknown[] =>
          [...logLines(server), ...server.stdout().split('\n').filter(Boolean).map(parsed)]
            .filter(({ msg }) => / of says\d/.test(String(msg)))
            .map(({ msg, requestId }) => [msg, requestId]);
        await eventually(
          () => says(server).length >= 3 * PLACES,
          60_000,
          () => server.stderr() + server.stdout(),
        );
        for (const [id] of calls)
          for (const what of ['out', 'err', 'log'])
            assert.ok(
              says(server).some((line) => String(line) === `${what} of ${id},${id}`),
              `${what} of ${id} in ${JSON.stringify(says(server))}`,
            );
        await untilScraped(server.url, (one) => Number(one.sum('said')) >= PLACES);
      },
    );

    test(
      'eight streams go on beside each other; one whose reader leaves is closed, the others end',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        const leaving = new AbortController();
        const left = ask(server, { do: 'stream', parts: 1e9 }, { id: 'leaves', signal: leaving.signal });
        const calls = await beginAll(shared, { do: 'stream', parts: 3, until: 'go' }, PLACES - 1);
        await cues.untilNoted('begun leaves');
        leaving.abort();
        await assert.rejects(left);
        await cues.untilNoted('closed leaves');
        cues.give('go');
        for (const [id, answer] of calls) assert.equal((await answer).text, `${id} 0\n${id} 1\n${id} 2\n`);
      },
    );

    test('jobs take places as calls do', LIMIT, async () => {
      const { server, cues } = shared;
      const ids = await Promise.all(
        Array.from({ length: PLACES }, (_, i) =>
          startAsync(server, '/', { do: 'wait', until: 'go' }, { 'x-request-id': `job${i}` }),
        ),
      );
      for (let i = 0; i < PLACES; i += 1) await cues.untilNoted(`begun job${i}`);
      assert.equal((await ask(server, {})).status, 200, 'a call beside them');
      cues.give('go');
      for (const id of ids) assert.equal((await jobEnd(server, id)).state, 'succeeded');
    });
  });

  describe('an app with routes of every kind, eight calls at the same time', () => {
    const shared = shareHere(app('eight-at-once-potassium'));

    test('WebSockets take places beside each other', LIMIT, async (t) => {
      const { server, cues } = shared;
      const sockets = await Promise.all(
        Array.from({ length: PLACES }, (_, i) =>
          openSocket(t, server, '/echo', { 'x-request-id': `ws${i}` }),
        ),
      );
      for (let i = 0; i < PLACES; i += 1) await cues.untilNoted(`begun ws${i}`);
      for (const round of ['one', 'two']) for (const { socket } of sockets) socket.send(round);
      for (const [i, { heard }] of sockets.entries())
        assert.deepEqual(await heard(2), [`ws${i} one`, `ws${i} two`]);
      for (const { socket } of sockets) socket.close();
      for (let i = 0; i < PLACES; i += 1) await cues.untilNoted(`ended ws${i}`);
    });

    test('background calls take places beside each other', LIMIT, async () => {
      const { server, cues } = shared;
      for (let i = 0; i < PLACES; i += 1) {
        const answer = await call(`${server.url}/later`, '{"until":"go"}', {
          'content-type': 'application/json',
          'x-request-id': `bg${i}`,
        });
        assert.equal(answer.status, 200, answer.text);
      }
      for (let i = 0; i < PLACES; i += 1) await cues.untilNoted(`begun bg${i}`);
      cues.give('go');
      await server.until(({ model }) => model.workers[0]?.state === 'idle');
    });
  });

  describe('a worker that is lost, or in doubt', () => {
    const shared = shareHere(app('eight-at-once'), { args: ['--log-format', 'json'], expectedRestarts: 2 });

    test(
      'an input that kills it loses all eight calls with 500; none of them runs twice, the next worker answers',
      LIMIT,
      async () => {
        const { server } = shared;
        const calls = await beginAll(shared, { do: 'wait', until: 'never given' }, PLACES - 1);
        const waiting = Array.from({ length: 3 }, (_, i): Named => [
          `n${i}`,
          ask(server, {}, { id: `n${i}` }),
        ]);
        const killer: Named = ['kills', ask(server, { do: 'kill' }, { id: 'kills' })];
        const lost = await codesOf([...calls, killer]);
        assert.deepEqual(new Set(lost), new Set(['SERVE_WORKER_LOST']));
        for (const [, answer] of waiting) assert.equal((await answer).status, 200);
        for (const [id] of [...calls, killer]) assert.equal(timesBegun(shared, id), 1, id);
        await server.untilPrinted(/worker 0 died .* while running call \w+ of \/ and 7 more/);
      },
    );

    test('an app in doubt: what runs goes on, other calls go to a successor at once', LIMIT, async () => {
      const { server, cues } = shared;
      const before = await pidOf(server);
      const calls = await beginAll(shared, { do: 'wait', until: 'go' }, 2);
      for (let i = 0; i < 3; i += 1) await ask(server, { do: 'run out of memory' });
      await server.untilPrinted('worker 0 gets no more calls');
      assert.notEqual(await pidOf(server), before);
      cues.give('go');
      for (const [, answer] of calls) assert.equal(pid(await answer), before);
      await server.until(({ model }) => model.workers[0]?.state === 'idle');
      await eventually(
        () => !isAlive(before),
        60_000,
        () => 'it ends',
      );
    });
  });

  describe('a call that goes on after its time', () => {
    const args = ['--log-format', 'json', '--run-timeout', '4s'];
    const shared = shareHere(app('eight-at-once'), { args, expectedRestarts: 2 });
    const input = { do: 'stream', parts: 100, bytes: 100_000 };

    /** Two streams with these ids whose clients do not read: their time stands still, however slow the machine is. */
    async function beginUnread(t: TestContext, ids: readonly [string, string]): Promise<UnreadAnswer[]> {
      const { server } = shared;
      const streams = await Promise.all(ids.map((id) => UnreadAnswer.ask(t, server, { input, id })));
      await server.until(({ unsent }) => unsent.clients === ids.length);
      return streams;
    }

    test(
      'its worker gets no more calls, a successor starts at once; the others end; then it is killed',
      LIMIT,
      async (t) => {
        const { server } = shared;
        const before = await pidOf(server);
        const others = await beginUnread(t, ['other0', 'other1']);
        const late = await beginAll(shared, { do: 'ignore', until: 'never given' }, 1, 'late');
        assert.deepEqual(await codesOf(late), ['SERVE_INFERENCE_TIMEOUT']);
        await server.untilPrinted('worker 0 gets no more calls');
        await server.until(({ model }) =>
          model.workers.some(({ pid, state }) => pid !== before && state === 'idle'),
        );
        const next = await ask(server, {}, { id: 'next' });
        assert.equal(next.status, 200);
        assert.notEqual(pid(next), before);
        assert.ok(isAlive(before), 'the others go on in it');
        for (const other of others) assert.ok((await other.rest(input.parts * input.bytes)).isOpen);
        await eventually(
          () => !isAlive(before),
          60_000,
          () => 'it is killed once nothing else runs in it',
        );
        await server.untilPrinted(
          'worker 0 died (killed by the server: run timeout) while running call late0',
        );
        assert.equal(timesBegun(shared, 'late0'), 1);
      },
    );

    test(
      'its event loop is blocked: killed at once; 504 for it and for others whose time is over, 500 for the rest; what has not begun is answered by the successor',
      LIMIT,
      async (t) => {
        const { server, cues } = shared;
        await beginUnread(t, ['rest0', 'rest1']);
        const early = await beginAll(shared, { do: 'wait', until: 'never given' }, 2, 'early');
        const spins: Named = ['spins', ask(server, { do: 'spin' }, { id: 'spins' })];
        await cues.untilNoted('begun spins');
        const unbegun = ask(server, {}, { id: 'unbegun' });
        assert.deepEqual(await codesOf(early), ['SERVE_INFERENCE_TIMEOUT', 'SERVE_INFERENCE_TIMEOUT']);
        const [code = ''] = await codesOf([spins]);
        assert.match(code, /^SERVE_(INFERENCE_TIMEOUT|WORKER_LOST)$/); // it began later
        assert.equal((await unbegun).status, 200);
        const lost = code === 'SERVE_WORKER_LOST' ? 3 : 2;
        await server.until(({ replies }) => replies['SERVE_WORKER_LOST'] === lost);
        for (const id of ['early0', 'rest0', 'spins', 'unbegun']) assert.equal(timesBegun(shared, id), 1, id);
      },
    );
  });

  describe('the end of a worker', () => {
    test('a drain lets all eight calls end, and the app shuts down', LIMIT, async (t) => {
      const shared = await startShared(t, app('eight-at-once'), ['--drain-lag', '0s']);
      const { server, cues } = shared;
      const calls = await beginAll(shared, { do: 'wait', until: 'go' });
      server.process.kill('SIGTERM');
      await server.until(({ state }) => state === 'draining');
      cues.give('go');
      for (const [, answer] of calls) assert.equal((await answer).status, 200);
      assert.equal((await server.ended).code, 0);
      assert.ok(cues.notes().includes('shut down'));
    });
  });
});

/** The front's alone. */
withOneRuntime(({ app }) => {
  test('a drain that takes too long cuts all of them with 500', LIMIT, async (t) => {
    const shared = await startShared(t, app('eight-at-once'), ['--drain-lag', '0s', '--drain-timeout', '2s']);
    const calls = await beginAll(shared, { do: 'ignore', until: 'never given' });
    shared.server.process.kill('SIGTERM');
    const answers = await Promise.all(calls.map(([, answer]) => answer));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([500]));
    await shared.server.ended;
  });

  test(
    'a model that scales itself keeps a worker that gets no more calls until those that it holds end',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--min-workers', '0', '--idle-timeout', '500ms', '--drain-timeout', '1s'];
      const server = await startHere(app('eight-at-once'), { t, env: cues.env, args });
      const calls = await beginAll({ server, cues }, { do: 'wait', until: 'go' }, 2);
      const [before] = await workersOf(server);
      for (let i = 0; i < 3; i += 1) await ask(server, { do: 'run out of memory' });
      await server.untilPrinted('worker 0 gets no more calls');
      assert.notEqual(await pidOf(server), before);
      await delay(4000); // longer than the idle timeout and the drain timeout of its successor
      cues.give('go');
      for (const [, answer] of calls) assert.equal(pid(await answer), before);
      await server.until(({ model }) => model.workers.length === 0);
      await server.stop();
    },
  );

  test('--concurrency 1: calls run one after the other', LIMIT, async (t) => {
    const shared = await startShared(t, app('eight-at-once'), ['--concurrency', '1']);
    const answers = await Promise.all(Array.from({ length: 6 }, () => ask(shared.server, {})));
    assert.deepEqual(new Set(answers.map((answer) => answer.json<{ most: number }>().most)), new Set([1]));
    assert.equal((await workersOf(shared.server)).length, 1);
    await shared.server.stop();
  });
});

async function startShared(t: TestContext, path: string, args: readonly string[]): Promise<SharedServer> {
  const cues = makeCues(t);
  const server = await startHere(path, { t, env: cues.env, args });
  await server.until(({ state }) => state === 'ready');
  return { server, cues };
}

function parsed(line: string): Record<string, unknown> {
  return JSON.parse(line) as Record<string, unknown>;
}
