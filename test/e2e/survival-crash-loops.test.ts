/** An app that never could start is given up, with an error for its callers and a line in the log; one that was ready never is. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { serve } from '../../index.js';
import { ask, errorOf, pidOf } from '../helpers/ask.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import { holdPort } from '../helpers/held-port.js';
import { managementOf } from '../helpers/managed-command.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, runCommand, startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

/** An error that may pass by itself: it is tried again, up to the limit. */
const PASSING = { ERROR_CODE: 'ECONNREFUSED' };

withEachRuntime(({ app, place, frame, exit }) => {
  test(
    'an init that always throws what may pass: restarts up to --restart-limit, then held callers get 503 and the server exits with 3',
    LIMIT,
    async (t) => {
      const args = ['--restart-limit', '2'];
      const server = await startHere(app('throws-in-init'), { t, args, env: PASSING });
      const held = await Promise.all([ask(server, {}), ask(server, {})]);
      for (const answer of held) {
        assert.equal(answer.status, 503, answer.text);
        assert.equal(errorOf(answer).code, 'SERVE_NOT_READY');
        assert.ok(Number(answer.headers.get('retry-after')) >= 1);
      }
      assert.deepEqual(await server.ended, { code: 3, signal: null });
      assert.equal(countArmed(server), 3, 'one start and two restarts');
      assert.match(server.stderr(), /restarting in \d+/);
      assert.match(server.stderr(), new RegExp(`${place('throws-in-init')}.*the weights are missing`));
      assert.match(server.stderr(), /no worker could start; see the error above\n/);
    },
  );

  test(
    'apps whose init, or import, throws the same error twice cannot start: exit code 3 after two starts of each worker, each stack is printed once',
    LIMIT,
    async (t) => {
      const names = ['throws-in-init', 'throws-when-imported'];
      const models = names.flatMap((name) => ['--model', `${name}=${app(name)}`]);
      const server = await startHere(null, { t, args: [...models, '--workers', '2'] });
      const held = await Promise.all(names.map((name) => ask({ url: `${server.url}/models/${name}/` }, {})));
      for (const answer of held) assert.equal(errorOf(answer).code, 'SERVE_NOT_READY', answer.text);
      assert.deepEqual(await server.ended, { code: 3, signal: null });
      assert.equal(countArmed(server), 8, 'each slot has tried twice');
      const count = (text: string | RegExp): number =>
        server.stderr().match(new RegExp(text, 'g'))?.length ?? 0;
      for (const stack of [frame('throws-in-init', 'init'), frame('throws-when-imported', 'load')])
        assert.equal(count(stack), 1, server.stderr());
      assert.equal(count(/the same error again: .*the weights are missing/), 6);
      assert.equal(
        count('the weights are missing'),
        8,
        'once for each start, and not again where the server ends',
      );
      assert.match(server.stderr(), /no worker could start; see the error above\n/);
    },
  );

  test(
    'an app that cannot even be loaded is not tried again: exit code 3, file and line in the log',
    LIMIT,
    async (t) => {
      const command = runCommand([app('syntax-error'), '--port', '0', '--workers', '2'], { t });
      assert.deepEqual(await command.ended, { code: 3, signal: null });
      assert.match(command.stderr(), /syntax-error\.\w+:\d+/);
      assert.doesNotMatch(command.stderr(), /restarting/);
    },
  );

  test(
    'a worker that dies when idle, before it has finished a call, counts as one that cannot live',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--restart-limit', '1', '--on-crash-loop', 'exit'];
      const server = await startHere(app('dies-when-idle'), { t, env: cues.env, args });
      assert.deepEqual(await server.ended, { code: 3, signal: null });
      assert.equal((server.stdout().match(/armed: dies when idle/g) ?? []).length, 2);
      assert.match(
        server.stderr(),
        new RegExp(
          `${exit}\\(9\\) was called at \\S+${place('dies-when-idle')}[^]*no worker can be restarted; see the error`,
        ),
      );
    },
  );
});

/** Slots are latched or failing by the front, which knows no language. */
withOneRuntime(({ app }) => {
  test(
    'an app whose start fails while something that it needs is away, after it has served: 503 with the reason everywhere, then it answers again by itself',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await breakWhileServing(t, app('throws-in-init'), cues, 'stay', '1');
      const held = ask(server, {});
      await server.untilPrinted(
        /the weights are missing[^]*no worker can be restarted; see the error above\. Staying up and answering 503 until a start succeeds/,
      );
      for (const answer of [await held, await ask(server, {})]) {
        assert.equal(answer.status, 503, answer.text);
        assert.match(answer.text, /SERVE_NOT_READY.*its init or its example fails.*goes on trying/);
        assert.ok(Number(answer.headers.get('retry-after')) >= 1);
      }
      const { state, model } = await server.status();
      assert.deepEqual([state, model.state], ['failing', 'failing']);
      assert.match(String(model.problem), /its init or its example fails.*SIGHUP tries at once/);
      assert.match(String(model.workers[0]?.lastExit?.why), /the weights are missing/);
      const readyz = await fetch(`${server.url}/readyz`);
      assert.equal(readyz.status, 503);
      assert.match(
        await readyz.text(),
        /"state":"failing","reason":"No worker of this model can start: its init/,
      );
      assert.equal((await fetch(`${server.url}/livez`)).status, 200);
      cues.forget();
      cues.give('intact');
      const { model: back } = await server.until(({ state: now }) => now === 'ready');
      assert.equal((await ask(server, {})).status, 200);
      assert.deepEqual([back.problem, (await fetch(`${server.url}/readyz`)).status], [null, 200]);
      await server.stop('SIGINT', back.workers[0]?.restarts);
    },
  );

  test(
    'SIGHUP starts a model again that has given up; one that fails later is FAILED for managers and in the metrics, and holds up no end',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const metrics = String(await holdPort());
      const pages = ['--management-port', '0', '--metrics-port', metrics];
      const args = ['--model', `late=${app('throws-in-init')}`, '--restart-limit', '0', ...pages];
      const server = await startServer(app('works'), { t, env: cues.env, args });
      await server.untilPrinted(/late: no worker could start; see the error above/);
      cues.give('intact');
      server.process.kill('SIGHUP');
      const { models } = await server.until((status) => status.models[1]?.state === 'ready');
      assert.equal((await call(`${server.url}/models/late/`, '{}')).status, 200);
      cues.give('broken');
      process.kill(models[1]?.workers[0]?.pid as number, 'SIGKILL');
      await server.until((status) => status.models[1]?.state === 'failing');
      const described = await (await managementOf(server)).describe('late');
      assert.equal(described.workers[0]?.status, 'FAILED');
      assert.match(described.workers[0].lastError ?? '', /the weights are missing/);
      const page = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
      assert.match(page, /banana_workers\{model="late",version="1",state="failing"\} 1/);
      server.process.kill('SIGINT');
      assert.deepEqual(await server.ended, { code: 0, signal: null });
    },
  );

  test(
    'an app that breaks after it has served, --on-crash-loop exit: held callers get 503, exit code 3',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await breakWhileServing(t, app('throws-in-init'), cues, 'exit', '0');
      const answer = await ask(server, {});
      assert.equal(answer.status, 503, answer.text);
      assert.deepEqual(await server.ended, { code: 3, signal: null });
    },
  );

  test(
    'one slot whose worker cannot start does not end the others, nor is it the reason of a stop',
    LIMIT,
    async (t) => {
      const args = ['--workers', '2', '--restart-limit', '0', '--on-crash-loop', 'exit'];
      const server = await startHere(app('throws-in-one-slot'), { t, args });
      const { model, state } = await server.until(
        (status) => status.model.workers[1]?.lastExit !== null && status.state === 'ready',
      );
      assert.equal(model.workers[0]?.state, 'idle');
      assert.equal(state, 'ready');
      assert.equal((await ask(server, {})).status, 200);
      server.process.kill('SIGINT');
      assert.deepEqual(await server.ended, { code: 0, signal: null });
      assert.doesNotMatch(server.stderr(), /no worker can be restarted/);
      assert.match(server.stderr(), /stopped; every call was answered/);
    },
  );

  test(
    'an app that cannot start for a while waits longer and longer, and serves once it can',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const env = { ...cues.env, ...PASSING };
      const server = await startHere(app('throws-in-init'), { t, env });
      const held = ask(server, {});
      await server.untilPrinted(/worker 0 died .*; restarting in [2-5]\d\d ?ms/s);
      cues.give('intact');
      assert.equal((await held).status, 200);
      const [worker] = (await server.status()).model.workers;
      await server.stop('SIGINT', worker?.restarts);
    },
  );
});

test(
  'a worker program that does not exist ends the server like any worker that cannot start',
  LIMIT,
  async () => {
    const workerCommand = ['/no/such/program'];
    const server = await serve({
      workerCommand,
      port: 0,
      host: '127.0.0.1',
      restartLimit: 1,
      logLevel: 'silent',
    });
    await assert.rejects(server.ready, { code: 'SERVE_CRASH_LOOP' });
    const { reason, error } = await server.ended;
    assert.equal(reason, 'failed');
    assert.match(error?.detail ?? '', /cannot start \/no\/such\/program/);
  },
);

function countArmed(server: Server): number {
  return (server.stdout().match(/armed: throws/g) ?? []).length;
}

/** A server that has answered, whose worker was then killed and cannot start again. */
async function breakWhileServing(
  t: TestContext,
  app: string,
  cues: Cues,
  onCrashLoop: string,
  restartLimit: string,
): Promise<Server> {
  cues.give('intact');
  const args = ['--restart-limit', restartLimit, '--on-crash-loop', onCrashLoop];
  const server = await startHere(app, { t, env: cues.env, args });
  const pid = await pidOf(server);
  cues.give('broken');
  process.kill(pid, 'SIGKILL');
  return server;
}
