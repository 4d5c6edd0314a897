/** A worker may die anywhere and in any way: only the call it was running is lost, and its caller is told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, errorOf, logLines, pidOf, warmUp } from '../helpers/ask.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import { askAtOnce, holdThree, readAnswers } from '../helpers/pipeline.js';
import { openStream } from '../helpers/stream.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { eventually, fixture, startServer, type Answer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 60_000 };
const JSON_LOG = ['--log-format', 'json'];

withEachRuntime(({ app, place, exit: exitCall }) => {
  test('a worker that dies in a call', LIMIT, async (t) => {
    const ways = [
      ['SIGKILL', 'signal SIGKILL'],
      ['SIGSEGV', 'signal SIGSEGV'],
      ['SIGTERM', 'signal SIGTERM'],
      ['abort', 'signal SIGABRT'],
      ['exit 0', 'exit code 0'],
      ['exit 7', 'exit code 7'],
      ['throw', 'exit code 1'],
    ] as const;
    // No failed start is forgiven: a death during a call is none.
    const args = ['--workers', '3', '--restart-limit', '0', ...JSON_LOG];
    const server = await startServer(app('dies-while-busy'), { t, args });
    for (const [by, how] of ways) {
      const id = `last-${by.replace(' ', '-')}`;
      await t.test(
        `by ${by}: its caller gets 500 SERVE_WORKER_LOST with "${how}", the next call an answer`,
        async () => {
          const answer = await ask(server, { by }, { id });
          assert.equal(answer.status, 500, answer.text);
          const { code, message, requestId, source } = errorOf(answer);
          assert.deepEqual([code, source], ['SERVE_WORKER_LOST', 'server']);
          assert.equal(requestId, id);
          assert.ok(message.includes(`(${how})`), message);
          assert.equal((await ask(server, {})).status, 200);
        },
      );
      await t.test(`by ${by}: the log has the call's id, how it died, and its last words`, async () => {
        const report = await deathReport(server, id);
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
      await t.test(`by ${by}: /status names the call`, async () => {
        const { model } = await server.status();
        const exit = model.workers.find(({ lastExit }) => lastExit?.requestId === id)?.lastExit;
        assert.equal(exit?.during, 'call');
        assert.equal(exit.how, how);
      });
    }
    await server.stop('SIGINT', ways.length);
  });

  test(
    'kill -9 of an idle worker loses no call, and health is 503 until another is ready',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startServer(app('works'), { t, env: cues.env, expectedRestarts: 1 });
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
      assert.deepEqual(
        cues.notes().filter((line) => line === 'begun call-7'),
        ['begun call-7'],
      );
      await server.stop();
    },
  );

  test('once the caller of the last worker knows of its death, /readyz is 503', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startServer(app('works'), { t, env: cues.env, expectedRestarts: 1 });
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
    await server.stop();
  });

  test(
    'kill -9 of a worker with calls sent ahead: the running one is lost, the others are answered by the next worker',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startServer(app('works'), { t, env: cues.env, expectedRestarts: 1 });
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
      await server.stop();
    },
  );

  test(
    'a call whose second worker dies before it began gets 503 SERVE_NOT_BEGUN, and never ran',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--restart-limit', '0']; // the call may be what kills: these are no failed starts
      const server = await startServer(app('blocks-when-ready'), { t, env: cues.env, args });
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

  test(
    'a worker killed in the middle of a large answer: reported as killed, and the calls sent ahead run once, elsewhere',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startServer(app('dies-while-answering'), {
        t,
        env: cues.env,
        args: JSON_LOG,
        expectedRestarts: 1,
      });
      await warmUp(server);
      const ids = ['dies', 'ahead-1', 'ahead-2'];
      const [answer, ...others] = await askAtOnce(
        server,
        ids.map((id) => ({ id, input: { dies: id === 'dies' } })),
      );
      assert.equal(errorOf(answer as Answer).code, 'SERVE_WORKER_LOST');
      assert.match(errorOf(answer as Answer).message, /signal SIGKILL/);
      for (const other of others) assert.equal(other.status, 200, other.text);
      const { msg } = await deathReport(server, 'dies');
      assert.match(String(msg), /^worker 0 died \(signal SIGKILL\) while running call dies/);
      assert.deepEqual(begunOnly(cues.notes(), ids), ids);
      await server.stop();
    },
  );

  test('kill -9 in the middle of a stream: its reader can detect that it was cut', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startServer(app('streams'), { t, env: cues.env, expectedRestarts: 1 });
    const pid = await pidOf(server);
    const stream = await openStream(server, { chunks: 1e6, bytes: 1000, everyMs: 1 });
    await cues.untilNoted('chunk 5');
    process.kill(pid, 'SIGKILL');
    await assert.rejects(stream.toArray());
    assert.ok(!stream.complete);
    assert.notEqual(await pidOf(server), pid);
    await server.stop();
  });

  test(
    'kill -9 of a worker that has not read the whole of a large body: the call runs once, elsewhere',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startServer(app('works'), { t, env: cues.env, expectedRestarts: 1 });
      const pid = await pidOf(server);
      process.kill(pid, 'SIGSTOP');
      const text = 'x'.repeat(4_000_000);
      const answer = ask(server, text, { id: 'large' });
      await server.until(({ model }) => model.workers[0]?.held === 1);
      process.kill(pid, 'SIGKILL');
      assert.equal((await answer).status, 200);
      assert.equal((await answer).json<{ input: string }>().input, text);
      assert.deepEqual(begunOnly(cues.notes(), ['large']), ['large']);
      await server.stop();
    },
  );

  for (const [fd3, how] of [
    ['garbage', /protocol error/],
    ['closed', /closed its connection/],
  ] as const) {
    test(
      `frames' descriptor ${fd3} by the app: that worker ends, its caller gets the error, the next call is answered`,
      LIMIT,
      async (t) => {
        const server = await startServer(app('breaks-frames'), {
          t,
          args: JSON_LOG,
          expectedRestarts: 1,
        });
        const pid = await pidOf(server);
        const answer = await ask(server, { fd3 }, { id: 'breaks' });
        assert.equal(answer.status, 500, answer.text);
        assert.equal(errorOf(answer).code, 'SERVE_WORKER_LOST');
        assert.notEqual(await pidOf(server), pid);
        const { msg } = await deathReport(server, 'breaks');
        assert.match(String(msg), how);
        assert.doesNotMatch(String(msg), /OOM|nobody/, 'the server knows that it was the one who killed');
        await server.stop();
      },
    );
  }
});

test(
  'death by a full JavaScript heap: the caller gets the error, the log explains what to do',
  LIMIT,
  async (t) => {
    const server = await startServer(fixture('eats-memory.mjs'), {
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

test('an unhandled rejection between calls retires the worker; the next calls are fine', LIMIT, async (t) => {
  const server = await startServer(fixture('unhandled-rejection.mjs'), { t, expectedRestarts: 1 });
  const pid = await pidOf(server);
  assert.equal((await ask(server, { reject: 'after' })).status, 200);
  await server.untilPrinted('an unhandled rejection left the app in an unknown state');
  await server.untilPrinted('nobody saw this');
  const pids = await Promise.all(Array.from({ length: 10 }, () => pidOf(server)));
  for (const other of pids) assert.notEqual(other, pid);
  await server.stop();
});

test(
  'an unhandled rejection during a call: that call is answered, calls sent ahead go to the next worker',
  LIMIT,
  async (t) => {
    const server = await startServer(fixture('unhandled-rejection.mjs'), { t, expectedRestarts: 1 });
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
    await server.stop();
  },
);

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
    15_000,
    () => server.stderr(),
  );
  return find() as Record<string, unknown>;
}

/** The calls among `ids` that began, in order, each as often as it began. */
function begunOnly(notes: readonly string[], ids: readonly string[]): string[] {
  return notes.map((line) => line.replace(/^begun /, '')).filter((id) => ids.includes(id));
}
