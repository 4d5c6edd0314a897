/** A worker may die anywhere and in any way: only the call it was running is lost, and its caller gets an error. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask, errorOf, logLines, pidOf, warmUp } from '../helpers/ask.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import { askAtOnce, holdThree, readAnswers } from '../helpers/pipeline.js';
import { openStream } from '../helpers/stream.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { eventually, fixture, type Answer, type Server } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const JSON_LOG = ['--log-format', 'json'];

/** Deaths and how they are reported. Python has those in which its worker takes part; the front alone sees the others. */
const WAYS: readonly [by: string, how: string, languages: readonly Language[]][] = [
  ['SIGKILL', 'signal SIGKILL', ['TypeScript', 'Python']],
  ['SIGSEGV', 'signal SIGSEGV', ['TypeScript']],
  ['SIGTERM', 'signal SIGTERM', ['TypeScript', 'Python']],
  ['abort', 'signal SIGABRT', ['TypeScript']],
  ['exit 0', 'exit code 0', ['TypeScript']],
  ['exit 7', 'exit code 7', ['TypeScript', 'Python']],
  ['throw', 'exit code 1', ['TypeScript', 'Python']],
];

withEachRuntime(({ app, place, exit: exitCall, language }) => {
  describe('a worker that dies in a call', () => {
    const ways = WAYS.filter(([, , languages]) => languages.includes(language));
    // No failed start is forgiven: a death during a call is none.
    const args = ['--restart-limit', '0', ...JSON_LOG];
    const shared = shareHere(app('dies-while-busy'), { args, expectedRestarts: ways.length + 4 });

    for (const [by, how] of ways) {
      const id = `last-${by.replace(' ', '-')}`;
      test(
        `by ${by}: its caller gets 500 SERVE_WORKER_LOST with "${how}", the next call an answer`,
        LIMIT,
        async () => {
          const answer = await ask(shared.server, { by }, { id });
          assert.equal(answer.status, 500, answer.text);
          const { code, message, requestId, source, begun } = errorOf(answer);
          assert.deepEqual([code, source, begun], ['SERVE_WORKER_LOST', 'server', true]);
          assert.equal(requestId, id);
          assert.ok(message.includes(`(${how})`), message);
          assert.equal((await ask(shared.server, {})).status, 200);
        },
      );
      test(`by ${by}: the log has the call's id, how it died, and its last words`, LIMIT, async () => {
        const report = await deathReport(shared.server, id);
        assert.ok(
          String(report['msg']).includes(`died (${how}) while running call ${id} of /`),
          String(report['msg']),
        );
        if (how.startsWith('exit code 7'))
          assert.match(
            String(report['msg']),
            new RegExp(`: ${exitCall}\\(7\\) was called at \\S+/lib/${place('die')}$`),
          );
        const lastStderr = report['lastStderr'] as string[];
        assert.equal(lastStderr.length, 20);
        assert.ok(lastStderr.includes('last words 30'), lastStderr.join('\n'));
      });
      test(`by ${by}: /status names the call`, LIMIT, async () => {
        const { model } = await shared.server.status();
        const exit = model.workers[0]?.lastExit;
        assert.equal(exit?.requestId, id);
        assert.equal(exit.during, 'call');
        assert.equal(exit.how, how);
      });
    }

    for (const [frames, how] of [
      ['garbage', /protocol error/],
      ['closed', /closed its connection/],
    ] as const)
      test(
        `with its frames' descriptor ${frames}: that worker ends, its caller gets the error, the next call is answered`,
        LIMIT,
        async () => {
          const pid = await pidOf(shared.server);
          const answer = await ask(shared.server, { frames }, { id: frames });
          assert.equal(answer.status, 500, answer.text);
          assert.equal(errorOf(answer).code, 'SERVE_WORKER_LOST');
          assert.notEqual(await pidOf(shared.server), pid);
          const { msg } = await deathReport(shared.server, frames);
          assert.match(String(msg), how);
          assert.doesNotMatch(String(msg), /OOM|nobody/, 'the server knows that it was the one who killed');
        },
      );

    test(
      'in the middle of a large answer: reported as killed, and the calls sent ahead run once, elsewhere',
      LIMIT,
      async () => {
        await warmUp(shared.server);
        const ids = ['answering', 'ahead-1', 'ahead-2'];
        const [answer, ...others] = await askAtOnce(
          shared.server,
          ids.map((id) => ({ id, input: id === 'answering' ? { answering: true } : {} })),
        );
        assert.equal(errorOf(answer as Answer).code, 'SERVE_WORKER_LOST');
        assert.match(errorOf(answer as Answer).message, /signal SIGKILL/);
        for (const other of others) assert.equal(other.status, 200, other.text);
        const { msg } = await deathReport(shared.server, 'answering');
        assert.match(String(msg), /^worker 0 died \(signal SIGKILL\) while running call answering/);
        assert.deepEqual(begunOnly(shared.cues.notes(), ids), ids);
      },
    );

    test('in the middle of a stream: its reader can detect that it was cut', LIMIT, async () => {
      const pid = await pidOf(shared.server);
      const stream = await openStream(shared.server, { streams: true });
      await shared.cues.untilNoted('chunk 5');
      process.kill(pid, 'SIGKILL');
      await assert.rejects(stream.toArray());
      assert.ok(!stream.complete);
      assert.notEqual(await pidOf(shared.server), pid);
    });
  });

  describe('kill -9', () => {
    const shared = shareHere(app('works'), { expectedRestarts: 4 });

    test('of an idle worker loses no call, and health is 503 until another is ready', LIMIT, async () => {
      const { cues, server } = shared;
      const pid = await pidOf(server);
      cues.give('init may not end');
      process.kill(pid, 'SIGKILL');
      const calls = Array.from({ length: 20 }, (_, i) => ask(server, i, { id: `call-${i}` }));
      await server.until(({ state }) => state === 'unhealthy');
      assert.equal((await fetch(`${server.url}/readyz`)).status, 503);
      assert.equal((await fetch(`${server.url}/healthcheck`)).status, 503);
      assert.equal((await fetch(`${server.url}/livez`)).status, 200);
      cues.give('init may end');
      for (const [i, answer] of (await Promise.all(calls)).entries()) {
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.json<{ input: number }>().input, i);
      }
      assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
      assert.deepEqual(begunOnly(cues.notes(), ['call-7']), ['call-7']);
    });

    test('of the last worker: once its caller knows of its death, /readyz is 503', LIMIT, async () => {
      const { cues, server } = shared;
      const pid = await pidOf(server);
      cues.give('init may not end');
      const running = ask(server, { until: 'never' }, { id: 'running' });
      await cues.untilNoted('begun running');
      process.kill(pid, 'SIGKILL');
      assert.equal((await running).status, 500);
      assert.equal((await fetch(`${server.url}/readyz`)).status, 503);
      cues.give('init may end');
      await server.until(({ state }) => state === 'ready');
      assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
    });

    test(
      'of a worker with calls sent ahead: the running one is lost, the others are answered by the next worker',
      LIMIT,
      async () => {
        const { cues, server } = shared;
        const { pid, socket, ids, letGo } = await holdThree(server, cues);
        process.kill(pid, 'SIGKILL');
        await cues.untilNoted(`begun ${ids[1]}`);
        letGo();
        const [running, ...others] = (await readAnswers(socket, 3)) as [Answer, Answer, Answer];
        assert.equal(errorOf(running).code, 'SERVE_WORKER_LOST');
        for (const answer of others) {
          assert.equal(answer.status, 200, answer.text);
          assert.notEqual(answer.json<{ pid: number }>().pid, pid);
        }
        assert.deepEqual(begunOnly(cues.notes(), ids), ids);
      },
    );

    test(
      'of a worker that has not read the whole of a large body: the call runs once, elsewhere',
      LIMIT,
      async () => {
        const { cues, server } = shared;
        const pid = await pidOf(server);
        process.kill(pid, 'SIGSTOP');
        const text = 'x'.repeat(4_000_000);
        const answer = ask(server, text, { id: 'large' });
        await server.until(({ model }) => model.workers[0]?.held === 1);
        process.kill(pid, 'SIGKILL');
        assert.equal((await answer).status, 200);
        assert.equal((await answer).json<{ input: string }>().input, text);
        assert.deepEqual(begunOnly(cues.notes(), ['large']), ['large']);
      },
    );
  });

  test(
    'a call whose second worker dies before it began gets 503 SERVE_NOT_BEGUN, and never ran',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--restart-limit', '0']; // the call may be what kills: these are no failed starts
      const server = await startHere(app('blocks-when-ready'), { t, env: cues.env, args });
      const answer = ask(server, {}, { id: 'unlucky' });
      const first = await heldByBlockedWorker(server, cues, null);
      process.kill(first, 'SIGKILL');
      const second = await heldByBlockedWorker(server, cues, first);
      cues.give('stay');
      process.kill(second, 'SIGKILL');
      const { status, headers, text } = await answer;
      assert.equal(status, 503, text);
      assert.match(text, /SERVE_NOT_BEGUN/);
      assert.ok(Number(headers.get('retry-after')) >= 1);
      assert.equal((await ask(server, {}, { id: 'lucky' })).status, 200);
      assert.deepEqual(begunOnly(cues.notes(), ['unlucky', 'lucky']), ['lucky']);
      await server.stop('SIGINT', 2);
    },
  );
});

test(
  'death by a full JavaScript heap: the caller gets the error, the log explains what to do',
  LIMIT,
  async (t) => {
    const server = await startHere(fixture('eats-memory.mjs'), {
      t,
      args: JSON_LOG,
      env: { NODE_OPTIONS: '--max-old-space-size=64' },
      expectedRestarts: 1,
    });
    await pidOf(server);
    const answer = await ask(server, { eat: true }, { id: 'eats' });
    assert.equal(answer.status, 500, answer.text);
    assert.equal(errorOf(answer).code, 'SERVE_WORKER_LOST');
    assert.ok((await pidOf(server)) > 0);
    const { msg } = await deathReport(server, 'eats');
    assert.match(String(msg), /SIGABRT.*JavaScript heap was full.*--max-old-space-size/);
    await server.stop();
  },
);

describe('an unhandled rejection', () => {
  const shared = shareHere(fixture('unhandled-rejection.mjs'), { expectedRestarts: 2 });

  test('between calls retires the worker; the next calls are fine', LIMIT, async () => {
    const { server } = shared;
    const pid = await pidOf(server);
    assert.equal((await ask(server, { reject: 'after' })).status, 200);
    await server.untilPrinted('an unhandled rejection left the app in an unknown state');
    await server.untilPrinted('nobody saw this');
    const pids = await Promise.all(Array.from({ length: 10 }, () => pidOf(server)));
    for (const other of pids) assert.notEqual(other, pid);
  });

  test('during a call: it is answered, calls sent ahead go to the next worker', LIMIT, async () => {
    const { server } = shared;
    const pid = await warmUp(server);
    const inputs = [{ reject: 'during' }, {}, {}];
    const answers = await askAtOnce(
      server,
      inputs.map((input, i) => ({ id: `call-${i}`, input })),
    );
    const [during, ...others] = answers as [Answer, ...Answer[]];
    assert.equal(during.status, 200, during.text);
    assert.equal(during.json<{ pid: number }>().pid, pid);
    for (const other of others) {
      assert.equal(other.status, 200, other.text);
      assert.notEqual(other.json<{ pid: number }>().pid, pid);
    }
  });
});

/** Resolves with the process id of the worker after `last`, once it holds a call that it cannot begin. */
async function heldByBlockedWorker(server: Server, cues: Cues, last: number | null): Promise<number> {
  const { model } = await server.until(
    ({ model: { workers } }) => workers[0]?.held === 1 && workers[0].pid !== last,
  );
  const pid = model.workers[0]?.pid as number;
  await cues.untilNoted(`blocked ${pid}`);
  return pid;
}

/** The log line about the death of the worker that ran this call. */
async function deathReport(server: Server, id: string): Promise<Record<string, unknown>> {
  const find = (): Record<string, unknown> | undefined =>
    logLines(server).find((line) => line['requestId'] === id && String(line['msg']).includes('died'));
  await eventually(
    () => find() !== undefined,
    60_000,
    () => server.stderr(),
  );
  return find() as Record<string, unknown>;
}

/** The calls among `ids` that began, in order, each as often as it began. */
function begunOnly(notes: readonly string[], ids: readonly string[]): string[] {
  return notes.map((line) => line.replace(/^begun /, '')).filter((id) => ids.includes(id));
}
