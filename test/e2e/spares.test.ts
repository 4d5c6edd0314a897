/** Spare processes: a worker that is needed at once does not wait for its runtime to load. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { ROOT, eventually, fixture, isAlive, type Server, type Status } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
/** The runner switches spares off. */
const DEFAULT = { BANANA_SPARES: undefined };

const workerPid = (status: Status): number => status.model.workers[0]?.pid as number;
const sparePid = ({ spares }: Status): number | undefined => spares[0]?.pid;

/** Waits for a spare other than this one. */
async function nextSpare(server: Server, before?: number): Promise<number> {
  const status = await server.until((now) => now.spares.length === 1 && sparePid(now) !== before);
  return sparePid(status) as number;
}

withEachRuntime(({ app, language }) => {
  describe('a spare process', () => {
    test(
      'becomes the worker of a slot, with the variables of the slot, and is replaced',
      LIMIT,
      async (t) => {
        const threads = language === 'Python' ? { OMP_NUM_THREADS: undefined } : {};
        const server = await startHere(app('tells-environment'), { t, env: { ...DEFAULT, ...threads } });
        const spare = await nextSpare(server);
        const environment = async (): Promise<Record<string, string>> =>
          (await ask(server, {})).json<{ env: Record<string, string> }>().env;
        const before = await environment();
        process.kill(workerPid(await server.status()), 'SIGKILL');
        assert.deepEqual(await environment(), before);
        assert.equal(workerPid(await server.status()), spare);
        assert.equal(before['OMP_NUM_THREADS'] !== undefined, language === 'Python');
        const next = await nextSpare(server, spare);
        await server.stop('SIGINT', 1);
        await eventually(
          () => !isAlive(next),
          60_000,
          () => 'a spare outlives its server',
        );
      },
    );
  });
});

test('two slots share one spare, and the one that it did not help starts as ever', LIMIT, async (t) => {
  const args = ['--workers', '2'];
  const server = await startHere(fixture('killable.mjs'), { t, args, env: DEFAULT });
  const spare = await nextSpare(server);
  const pids = (await server.status()).model.workers.map(({ pid }) => pid as number);
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  const { model } = await server.until(({ model: { workers } }) =>
    workers.every(({ state, pid }) => state === 'idle' && !pids.includes(pid ?? 0)),
  );
  assert.equal(model.workers.filter(({ pid }) => pid === spare).length, 1);
  await server.stop('SIGINT', 2);
});

test('the first call of a model that starts without workers is served by a spare', LIMIT, async (t) => {
  const server = await startHere(fixture('killable.mjs'), {
    t,
    args: ['--min-workers', '0'],
    env: DEFAULT,
  });
  const spare = await nextSpare(server);
  assert.equal((await ask(server, {})).status, 200);
  assert.equal(workerPid(await server.status()), spare);
  await server.stop();
});

test('the death of a spare is one line of the log and concerns no worker', LIMIT, async (t) => {
  const server = await startHere(fixture('killable.mjs'), { t, env: DEFAULT });
  const spare = await nextSpare(server);
  const pid = workerPid(await server.status());
  process.kill(spare, 'SIGKILL');
  await server.untilPrinted('a spare process ended (SIGKILL); the next one starts in 10 s');
  process.kill(pid, 'SIGKILL');
  assert.equal((await ask(server, {})).status, 200);
  assert.equal((await server.status()).state, 'ready');
  await server.stop('SIGINT', 1);
});

test('an app in TypeScript is loaded by a spare as by any other process', LIMIT, async (t) => {
  const server = await startHere(`${ROOT}examples/greeting/app.ts`, {
    t,
    env: { ...DEFAULT, GREETING_INIT_MS: '0' },
  });
  const spare = await nextSpare(server);
  assert.equal((await ask(server, {})).status, 200);
  process.kill(workerPid(await server.status()), 'SIGKILL');
  assert.equal((await ask(server, {})).status, 200);
  assert.equal(workerPid(await server.status()), spare);
  await server.stop('SIGINT', 1);
});

test('with --spares 0 there are none, and a program in a language of its own has none', LIMIT, async (t) => {
  const server = await startHere(fixture('killable.mjs'), { t, args: ['--spares', '0'] });
  workerPid(await server.status());
  assert.deepEqual((await server.status()).spares, []);
  await server.stop();
});
