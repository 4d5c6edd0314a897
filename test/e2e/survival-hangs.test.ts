/** A handler or an init that never returns costs its own call and at most its own worker, within stated limits. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask, errorOf, logLines, pidOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { needs } from '../helpers/needs.js';
import { withEachRuntime, withOneRuntime, type Language } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { CLI, eventually, fixture } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import { startBy } from '../helpers/starters.js';

const LIMIT = { timeout: 240_000 };

/** Less than the drain timeout that a server has by default: an end within it shows that a shorter one held. */
const BELOW_DEFAULT_DRAIN_MS = 22_000;

/** One log format for each language is enough: only the words of a line are the worker's. */
const FORMATS: Readonly<Record<Language, string>> = { TypeScript: 'text', Python: 'json' };

withEachRuntime(({ app, language }) => {
  test('a handler that never returns', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--run-timeout', '3s', '--log-format', 'json'];
    const server = await startHere(app('never-returns'), { t, env: cues.env, args });
    const pid = await pidOf(server);

    await t.test('and obeys the abort: its caller gets 504, the worker lives on', async () => {
      const answer = await ask(server, { obeys: true });
      assert.equal(answer.status, 504, answer.text);
      const { code, source } = errorOf(answer);
      assert.deepEqual([code, source], ['SERVE_INFERENCE_TIMEOUT', 'app']);
      await cues.untilNoted('aborted: the run timeout passed');
      assert.equal(await pidOf(server), pid);
    });

    await t.test("a client's deadline: 504, the handler is aborted, the worker lives on", async () => {
      const headers = { 'x-request-timeout-seconds': '2' };
      const answer = await ask(server, { obeys: true }, { headers });
      assert.equal(answer.status, 504, answer.text);
      assert.equal(errorOf(answer).code, 'SERVE_DEADLINE');
      await cues.untilNoted("aborted: the client's deadline passed");
      assert.equal(await pidOf(server), pid);
    });

    await t.test(
      'and ignores the abort: its caller gets 504 at once, the worker is killed after the grace, the next call is answered',
      async () => {
        const answer = await ask(server, { obeys: false }, { id: 'never' });
        assert.equal(answer.status, 504, answer.text);
        assert.equal(errorOf(answer).code, 'SERVE_INFERENCE_TIMEOUT');
        const next = ask(server, {});
        const { model } = await server.status();
        assert.equal(model.workers[0]?.pid, pid, 'the grace is not over');
        assert.notEqual((await next).json<{ pid: number }>().pid, pid);
        await server.untilPrinted('worker 0 died');
        const report = logLines(server).find(({ msg }) => String(msg).startsWith('worker 0 died'));
        assert.match(
          String(report?.['msg']),
          /died \(killed by the server: run timeout\) while running call never/,
        );
      },
    );

    await server.stop('SIGINT', 1);
  });

  test(
    'a handler that spins and never gives the thread back: 504, SIGKILL, the next call is answered',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--run-timeout', '3s'];
      const server = await startHere(app('spins'), { t, env: cues.env, args, expectedRestarts: 1 });
      const pid = await pidOf(server);
      const answer = await ask(server, { spin: true });
      assert.equal(answer.status, 504, answer.text);
      assert.equal(errorOf(answer).code, 'SERVE_INFERENCE_TIMEOUT');
      assert.equal((await fetch(`${server.url}/livez`)).status, 200);
      assert.notEqual(await pidOf(server), pid);
      const { model } = await server.status();
      assert.equal(model.workers[0]?.lastExit?.how, 'killed by the server: run timeout');
      await server.stop();
    },
  );

  test(
    'an import or an init that hangs is killed at --init-timeout; held callers get 503, the server exits with 3',
    LIMIT,
    async (t) => {
      const hangs = [
        ['hangs-in-import', 'importing the app'],
        ['hangs-in-init', 'running init'],
      ] as const;
      const models = hangs.flatMap(([name]) => ['--model', `${name}=${app(name)}`]);
      const args = ['--init-timeout', '12s', '--restart-limit', '0'];
      const server = await startHere(null, { t, args: [...models, ...args] });
      const answers = await Promise.all(
        hangs.map(([name]) => ask({ url: `${server.url}/models/${name}/` }, {})),
      );
      for (const answer of answers) {
        assert.equal(answer.status, 503, answer.text);
        assert.equal(errorOf(answer).code, 'SERVE_NOT_READY');
      }
      assert.deepEqual(await server.ended, { code: 3, signal: null });
      assert.match(server.stdout(), /armed: hangs in import/);
      assert.match(server.stdout(), /armed: hangs in init/);
      for (const [, phase] of hangs) {
        const told = `killed by the server: init timeout.*not ready within 12 s \\(--init-timeout\\), still ${phase}`;
        assert.match(server.stderr(), new RegExp(told));
      }
    },
  );

  test(
    'a worker that ignores the stop and SIGTERM still ends within the drain timeout, and no call was lost',
    LIMIT,
    async (t) => {
      const args = ['--drain-timeout', '5s'];
      const server = await startHere(app('ignores-sigterm'), { t, args });
      await pidOf(server);
      const stoppedAtMs = performance.now();
      assert.deepEqual(await server.stop(), { code: 0, signal: null });
      assert.ok(performance.now() - stoppedAtMs < BELOW_DEFAULT_DRAIN_MS);
      assert.match(server.stdout(), /armed: ignores the stop/);
      assert.match(server.stdout(), /SIGTERM was ignored/);
      assert.match(server.stderr(), /worker 0 has stopped \(killed by the server: did not stop in time\)/);
    },
  );

  const format = FORMATS[language];
  test(`a slow init is logged while it lasts, in ${format}`, LIMIT, async (t) => {
    const cues = makeCues(t);
    cues.give('init may not end');
    const args = ['--log-format', format, '--init-timeout', '2m'];
    const server = await startHere(app('works'), { t, env: cues.env, args });
    await server.untilPrinted(
      /still starting: worker 0 running init or the example for \d+ s \(limit for each: 2 min, --init-timeout\)/,
    );
    cues.give('init may end');
    assert.equal((await ask(server, {})).status, 200);
    await server.stop();
    if (format === 'json') assert.ok(logLines(server).length > 0, 'every line is JSON');
  });
});

/** The front alone keeps the clocks of calls. */
withOneRuntime(({ app }) => {
  describe('on one server', LIMIT, () => {
    const shared = shareHere(app('works'), { args: ['--run-timeout', '4s'], expectedRestarts: 1 });

    test(
      'a worker that is frozen when a call comes is killed at --run-timeout; the call never began, so the next worker answers it',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        const pid = await pidOf(server);
        process.kill(pid, 'SIGSTOP');
        const answer = await ask(server, {}, { id: 'patient' });
        assert.equal(answer.status, 200, answer.text);
        assert.notEqual(answer.json<{ pid: number }>().pid, pid);
        assert.deepEqual(
          cues.notes().filter((line) => line === 'begun patient'),
          ['begun patient'],
        );
      },
    );

    test(
      'a call that was sent ahead has its own limit, also when the one before ran out of time and obeyed',
      LIMIT,
      async () => {
        const { server } = shared;
        const pid = await pidOf(server);
        for (let i = 0; i < 10; i += 1) await ask(server, {}); // short calls: others are sent ahead
        const answers = await Promise.all(
          ['first', 'second'].map((id) => ask(server, { until: 'never given' }, { id })),
        );
        assert.deepEqual(
          answers.map((answer) => errorOf(answer).code),
          ['SERVE_INFERENCE_TIMEOUT', 'SERVE_INFERENCE_TIMEOUT'],
        );
        assert.equal(await pidOf(server), pid, 'both obeyed');
      },
    );

    test(
      'waiting in line is no running: calls that together take longer than --run-timeout are all answered',
      LIMIT,
      async () => {
        const { server } = shared;
        await pidOf(server);
        const answers = await Promise.all([1, 2, 3].map(() => ask(server, { ms: 1500 })));
        assert.deepEqual(
          answers.map(({ status }) => status),
          [200, 200, 200],
        );
      },
    );
  });

  test(
    'a worker that is only slow to begin is not killed, however short the run timeout',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--run-timeout', '1s', '--workers', '2'];
      const server = await startHere(app('works'), { t, env: cues.env, args });
      await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
      const frozen = await pidOf(server);
      process.kill(frozen, 'SIGSTOP');
      const pids = Promise.all([1, 2].map(() => pidOf(server)));
      await server.until(({ model }) => model.workers.some(({ pid, held }) => pid === frozen && held === 1));
      const late = await ask(server, { until: 'never given' });
      assert.equal(
        errorOf(late).code,
        'SERVE_INFERENCE_TIMEOUT',
        'in the other worker the run timeout passes',
      );
      // A worker has 5 s to begin, however slow this machine is.
      process.kill(frozen, 'SIGCONT');
      assert.ok((await pids).includes(frozen));
      await server.stop();
    },
  );
});

test(
  'on a terminal a slow init is one line that changes, and goes',
  { ...LIMIT, skip: needs('script') },
  async (t) => {
    const cues = makeCues(t);
    cues.give('init may not end');
    const command = `'${process.execPath}' '${CLI}' '${fixture('works.mjs')}'`;
    const env = { ...cues.env, TERM: 'xterm' };
    const server = await startBy(t, ['script', '-qec', command, '/dev/null'], { env });
    const drawn = (): string[] => server.printed().split('\r\x1b[2K').slice(1);
    const isNews = (text: string): boolean => /^still starting: worker 0 .* for \d+ s/.test(text);
    await eventually(
      () => new Set(drawn().filter(isNews)).size >= 2,
      60_000,
      () => server.printed(),
    );
    cues.give('init may end');
    await server.untilState('ready');
    await eventually(
      () => drawn().some((text) => !isNews(text) && text.includes('worker 0 is ready')),
      60_000,
      () => server.printed(),
    );
    process.kill(server.pid, 'SIGINT');
    await server.untilEnded();
  },
);
