/** The end of a server: accepted calls are answered, later ones are refused with 503, and the server ends in time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, errorOf, pidOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { readAnswers, sendAtOnce } from '../helpers/pipeline.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withEachRuntime, withOneRuntime, type Language } from '../helpers/runtimes.js';
import { eventually, fixture, isAlive, ROOT, runCommand, startServer } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };

/** The front gets the signal, whatever language its workers have: one signal for each language is enough. */
const SIGNALS: Readonly<Record<Language, readonly ['SIGINT' | 'SIGTERM', exitCode: number, called: string]>> =
  {
    TypeScript: ['SIGINT', 130, 'Ctrl-C'],
    Python: ['SIGTERM', 143, 'SIGTERM'],
  };

withEachRuntime(({ app, language }) => {
  const [signal, exitCode, called] = SIGNALS[language];

  test(
    'Ctrl-C: running and held calls are answered, new ones get 503 with Connection: close, shutdown runs, exit code 0',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startServer(app('works'), { t, env: cues.env });
      const running = ask(server, { until: 'go on' }, { id: 'running' });
      await cues.untilNoted('begun running');
      const held = ask(server, { until: 'go on' }, { id: 'held' });
      await server.until(({ model }) => model.queue.waiting === 1);
      server.process.kill('SIGINT');
      await server.until(({ state }) => state === 'draining');

      const refused = await ask(server, {}, { id: 'refused' });
      assert.equal(refused.status, 503, refused.text);
      assert.equal(errorOf(refused).code, 'SERVE_SHUTTING_DOWN');
      assert.equal(refused.headers.get('connection'), 'close');
      assert.equal(refused.headers.get('retry-after'), '1', 'as docs/errors.md says');
      assert.equal((await fetch(`${server.url}/readyz`)).status, 503);
      assert.equal((await fetch(`${server.url}/livez`)).status, 200);

      cues.give('go on');
      for (const answer of await Promise.all([running, held])) {
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.headers.get('connection'), 'close');
      }
      assert.deepEqual(await server.ended, { code: 0, signal: null });
      assert.deepEqual(cues.notes(), ['begun running', 'begun held', 'shut down']);
    },
  );

  test(
    `a second signal stops at once, even while a worker spins: ${signal} twice, exit code ${exitCode}`,
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startServer(app('spins'), { t, env: cues.env });
      const pid = await pidOf(server);
      const call = ask(server, { spin: true });
      call.catch(() => {});
      await server.untilPrinted('armed: spins');
      server.process.kill(signal);
      await server.until(({ state }) => state === 'draining');
      server.process.kill(signal);
      assert.deepEqual(await server.ended, { code: exitCode, signal: null });
      await eventually(
        () => !isAlive(pid),
        60_000,
        () => `worker ${pid} lives`,
      );
      await assert.rejects(call);
    },
  );

  test(
    `${signal} while init blocks and no call waits: the server does not wait for init`,
    LIMIT,
    async (t) => {
      const args = ['--drain-timeout', '10m', '--drain-lag', '0s'];
      const server = await startServer(app('hangs-in-init'), { t, args });
      await server.untilPrinted('armed: hangs in init');
      server.process.kill(signal);
      assert.deepEqual(await server.ended, { code: 0, signal: null });
      const told = `draining \\(at most 10 min\\); waits for 1 worker to stop; a second ${called} stops at once`;
      assert.match(server.stderr(), new RegExp(told));
    },
  );
});

/** The front alone decides what becomes of calls. */
withOneRuntime(({ app }) => {
  test(
    '--drain-timeout cuts what is still running: its caller gets an error, what was held gets 503, exit code 5',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--drain-timeout', '1s'];
      const server = await startServer(app('works'), { t, env: cues.env, args });
      const running = ask(server, { until: 'never' }, { id: 'running' });
      await cues.untilNoted('begun running');
      const held = ask(server, {}, { id: 'held' });
      await server.until(({ model }) => model.queue.waiting === 1);
      const stoppedAtMs = performance.now();
      server.process.kill('SIGINT');
      const [lost, refused] = await Promise.all([running, held]);
      assert.equal(lost.status, 500, lost.text);
      assert.equal(errorOf(lost).code, 'SERVE_WORKER_LOST');
      assert.match(errorOf(lost).message, /server stopped/);
      assert.equal(refused.status, 503, refused.text);
      assert.equal(errorOf(refused).code, 'SERVE_SHUTTING_DOWN');
      assert.deepEqual(await server.ended, { code: 5, signal: null });
      assert.ok(performance.now() - stoppedAtMs < 22_000, 'the default is 25 s');
      assert.ok(!cues.notes().includes('begun held'));
    },
  );

  test('a signal while init runs: the call held meanwhile is answered before the end', LIMIT, async (t) => {
    const cues = makeCues(t);
    cues.give('init may not end');
    const server = await startServer(app('works'), { t, env: cues.env });
    const held = ask(server, 'early');
    await server.until(
      ({ model }) => model.queue.waiting === 1 && model.workers[0]?.state === 'initializing',
    );
    server.process.kill('SIGINT');
    await server.until(({ state }) => state === 'draining');
    cues.give('init may end');
    assert.equal((await held).status, 200);
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });

  test(
    'kill -9 of a worker while draining: calls held go to its successor, the end still comes',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startServer(app('works'), { t, env: cues.env });
      const pid = await pidOf(server);
      const running = ask(server, { until: 'never' }, { id: 'running' });
      await cues.untilNoted('begun running');
      const held = ask(server, {}, { id: 'held' });
      await server.until(({ model }) => model.queue.waiting + model.inFlight === 2);
      server.process.kill('SIGINT');
      await server.until(({ state }) => state === 'draining');
      process.kill(pid, 'SIGKILL');
      assert.equal(errorOf(await running).code, 'SERVE_WORKER_LOST');
      assert.equal((await held).status, 200);
      assert.deepEqual(await server.ended, { code: 0, signal: null });
    },
  );

  test(
    'Ctrl-C: of pipelined calls that were taken every one is answered; the last closes',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startServer(app('works'), { t, env: cues.env });
      const calls = ['a', 'b', 'c', 'd'].map((id) => ({ input: { until: 'go on' }, id }));
      const socket = await sendAtOnce(server, calls);
      await cues.untilNoted('begun a');
      await server.until(({ model }) => model.queue.waiting + model.inFlight === 4);
      server.process.kill('SIGINT');
      await server.until(({ state }) => state === 'draining');
      cues.give('go on');
      const answers = await readAnswers(socket, 4);
      assert.deepEqual(
        answers.map(({ status, headers }) => [status, headers.get('connection')]),
        [
          [200, 'keep-alive'],
          [200, 'keep-alive'],
          [200, 'keep-alive'],
          [200, 'close'],
        ],
      );
      assert.deepEqual(await server.ended, { code: 0, signal: null });
    },
  );

  test(
    'Ctrl-C: a health check between two pipelined calls closes nothing on the second',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startServer(app('works'), { t, env: cues.env });
      const connection = await RawConnection.open(server);
      connection.post('{"until":"go on"}', ['X-Request-Id: first']);
      connection.get('/livez');
      connection.post('{"until":"go on"}', ['X-Request-Id: second']);
      await cues.untilNoted('begun first');
      await server.until(({ model }) => model.queue.waiting + model.inFlight === 2);
      server.process.kill('SIGINT');
      await server.until(({ state }) => state === 'draining');
      cues.give('go on');
      const replies = [await connection.reply(), await connection.reply(), await connection.reply()];
      assert.deepEqual(
        replies.map(({ status, headers }) => [status, headers['connection']]),
        [
          [200, 'keep-alive'],
          [200, 'keep-alive'],
          [200, 'close'],
        ],
      );
      assert.deepEqual(await server.ended, { code: 0, signal: null });
    },
  );

  test(
    'SIGTERM: while --drain-lag lasts, /readyz is 503 and calls are still served; then they are refused',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--drain-lag', '4s', '--workers', '2'];
      const server = await startServer(app('works'), { t, env: cues.env, args });
      const running = ask(server, { until: 'go on' }, { id: 'running' });
      await cues.untilNoted('begun running');
      await server.until(({ model }) => model.workers.some(({ state }) => state === 'idle'));
      server.process.kill('SIGTERM');
      await eventually(
        async () => (await fetch(`${server.url}/readyz`)).status === 503,
        60_000,
        () => 'ready for ever',
      );
      assert.equal((await ask(server, {})).status, 200, 'a load balancer may not have noticed yet');
      await eventually(
        async () => {
          const answer = await ask(server, {});
          return answer.status === 503 && errorOf(answer).code === 'SERVE_SHUTTING_DOWN';
        },
        60_000,
        () => 'calls are never refused',
      );
      cues.give('go on');
      assert.equal((await running).status, 200);
      assert.deepEqual(await server.ended, { code: 0, signal: null });
    },
  );
});

for (const [again, codes] of [
  [false, [0]],
  [true, [130, 143]], // the second may arrive first
] as const) {
  const title = again
    ? 'a second signal ends it at once, exit code 130 or 143'
    : 'obeyed as soon as it has, exit code 0';
  test(`Ctrl-C while the server has not opened yet: ${title}`, LIMIT, async (t) => {
    const cues = makeCues(t);
    const program = `${appFolder(t, { 'program.mjs': SLOW_START })}/program.mjs`;
    const command = runCommand([program], { t, env: cues.env, command: process.execPath });
    await cues.untilNoted('opening');
    command.process.kill('SIGINT');
    if (again)
      command.process.kill('SIGTERM'); // another one: two of a kind may arrive as one
    else cues.give('answer');
    const end = await command.ended;
    assert.ok((codes as readonly (number | null)[]).includes(end.code), JSON.stringify(end));
    assert.equal(/stopped; every call was answered/.test(command.stderr()), !again);
  });
}

test('a signal while the only slot waits out its backoff ends the server at once', LIMIT, async (t) => {
  const cues = makeCues(t);
  const args = ['--restart-limit', '100'];
  const server = await startServer(fixture('throws-in-init.mjs'), {
    t,
    env: { ...cues.env, ERROR_CODE: 'ECONNREFUSED' },
    args,
  });
  // From the fifth on, a pause is at least four seconds: long enough to end in its midst.
  const { model } = await server.until(
    ({ model }) => model.workers[0]?.state === 'backoff' && model.workers[0].restarts >= 5,
  );
  const countStarts = (): number => server.stdout().match(/armed: throws in init/g)?.length ?? 0;
  const starts = 1 + (model.workers[0]?.restarts ?? 0);
  await eventually(
    () => countStarts() === starts,
    60_000,
    () => server.stdout(),
  );
  server.process.kill('SIGINT');
  assert.deepEqual(await server.ended, { code: 0, signal: null });
  assert.equal(countStarts(), starts, 'the server ended before the pause did');
});

/** A program whose server takes until the cue to open, which no signal hastens. */
const SLOW_START = `
import { given, note } from ${JSON.stringify(`${ROOT}test/fixtures/apps/lib/cues.mjs`)};
import { serve } from ${JSON.stringify(`${ROOT}dist/supervisor/serve.js`)};
import { EXIT_CODES, runServerProcess } from ${JSON.stringify(`${ROOT}dist/supervisor/command/server-process.js`)};

const start = async () => {
  note('opening');
  await given('answer');
  return serve({ app: ${JSON.stringify(fixture('works.mjs'))}, port: 0 });
};
process.exit(EXIT_CODES[await runServerProcess(start)].code);
`;
