/** More models than fit: workers come and go under `--memory-budget` and `--gpu-memory-budget`. */
import assert from 'node:assert/strict';
import { chmodSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, test } from 'node:test';
import { call, runCommand, startServer, type Answer, type Server } from '../helpers/server.js';
import { sizedModels } from '../helpers/sized-models.js';

const LIMIT = {
  timeout: 240_000,
  skip: process.platform !== 'linux' && 'only Linux tells how much memory processes share',
};

const ask = (
  { url }: Server,
  model: string,
  input: { readonly ms?: number; readonly until?: string } = {},
): Promise<Answer> => call(`${url}/models/${model}/`, JSON.stringify(input));

/** Lets calls go on that wait for this file. */
const give = (folder: string, cue: string): void => writeFileSync(join(folder, cue), '');

async function pidOf(server: Server, model: string): Promise<number> {
  const answer = await ask(server, model);
  assert.equal(answer.status, 200, answer.text);
  return answer.json<{ pid: number }>().pid;
}

/** The rules by which workers of a model have come and gone. */
async function rulesOf(server: Server, model: string): Promise<string[]> {
  const { models } = await server.status();
  const { scaling } = models.find(({ name }) => name === model) ?? {};
  return (scaling?.changes ?? []).map(({ change, rule }) => `${change} ${rule}`);
}

/** The first starts may go, since their memory is not known: then both are there, and one leaves. */
async function learn(server: Server): Promise<void> {
  for (const model of ['a', 'b']) await pidOf(server, model);
  await server.until(({ memory, models }) => {
    const workers = models.flatMap((model) => model.workers);
    return memory?.sentAway.memory === 1 && workers.length === 1;
  });
}

describe('two models that do not fit together', () => {
  test(
    'alternate without a failed call, and a third one that exceeds the budget alone is latched',
    LIMIT,
    async (t) => {
      const cwd = sizedModels(t, {
        a: { mb: 80 },
        b: { mb: 100 },
        large: { mb: 240 },
        second: { mb: 10, failsFirst: true },
      });
      const server = await startServer(null, { t, cwd, args: ['--memory-budget', '180mb'] });

      await learn(server);

      const pids = [];
      for (let i = 0; i < 4; i += 1) pids.push(await pidOf(server, i % 2 === 0 ? 'a' : 'b'));
      assert.equal(new Set(pids).size, 4, 'a worker for each call');
      assert.ok((await rulesOf(server, 'a')).includes('retired memory'));
      const { memory } = await server.status();
      assert.equal(memory?.pools[0]?.budgetBytes, 180 * 2 ** 20);
      const costs = memory?.startCosts.map(({ model, firstBytes }) => [
        model,
        (firstBytes ?? 0) > 80 * 2 ** 20,
      ]);
      assert.deepEqual(costs, [
        ['a@1', true],
        ['b@1', true],
      ]);

      // Memory that runs out while the app loads is no failed start: the idle worker leaves, and the start is tried once more.
      await pidOf(server, 'second');
      await server.untilPrinted(/worker b\/\d+ leaves: a start of second@1 needs its memory/);

      const called = ask(server, 'large'); // may be answered, if it is faster than the reading
      await server.until(({ models }) =>
        models.some(({ name, workers }) => name === 'large' && workers[0]?.state === 'latched'),
      );
      await called;
      assert.equal((await ask(server, 'large')).status, 503);
      await server.untilPrinted(
        /its worker holds [\d.]+ MB, and --memory-budget 180 MB is all that there is/,
      );
      await pidOf(server, 'a'); // the others go on
      const { models } = await server.status();
      const second = models.find(({ name }) => name === 'second');
      await server.stop('SIGINT', second?.workers.length); // it counts its restart while it is there
    },
  );

  test('take turns while both have calls in line, and no call fails', LIMIT, async (t) => {
    const scaling = { minWorkers: 0, maxWorkers: 1, idleTimeout: '1h' };
    const cwd = sizedModels(t, {
      a: { mb: 80 },
      b: { mb: 100, options: { ...scaling, queueTimeout: '3m' } }, // a turn lasts ten starts, or 5 s
    });
    const server = await startServer(null, { t, cwd, args: ['--memory-budget', '180mb'] });
    await learn(server);
    await pidOf(server, 'a');
    let isServed = false;
    const first = ask(server, 'a', { until: 'seen' }); // or the wait might be over before it is seen
    await server.until(({ models }) => models.some(({ inFlight }) => inFlight > 0));
    const line = Array.from({ length: 12 }, async () => {
      const statuses: number[] = [];
      while (!isServed) statuses.push((await ask(server, 'a', { ms: 300 })).status);
      return statuses;
    });
    const turn = pidOf(server, 'b');
    const { memory } = await server.until((status) => status.memory?.waiting[0]?.model === 'b@1');
    assert.equal(memory?.waiting[0]?.pool, 'memory');
    assert.equal(memory.waiting[0].holders[0]?.model, 'a@1');
    await server.untilPrinted(
      /a worker of b@1 waits for memory: it needs [\d.]+ MB; .* are used: a@1 \([\d.]+ MB\)/,
    );
    give(cwd, 'seen');
    await turn.finally(() => (isServed = true));
    assert.equal((await first).status, 200);
    assert.ok((await rulesOf(server, 'a')).includes('retired turn'));
    assert.deepEqual([...new Set((await Promise.all(line)).flat())], [200]);
    await server.stop();
  });

  test('a drain makes room for a call that waits for the memory of an idle model', LIMIT, async (t) => {
    const cwd = sizedModels(t, { a: { mb: 80 }, b: { mb: 100 } });
    const args = ['--memory-budget', '180mb', '--drain-timeout', '2m'];
    const server = await startServer(null, { t, cwd, args });
    await learn(server);
    await pidOf(server, 'a');
    const running = ask(server, 'a', { until: 'draining' });
    await server.until(({ models }) => models.some(({ inFlight }) => inFlight > 0));
    const held = ask(server, 'b');
    await server.until(({ memory }) => memory?.waiting[0]?.model === 'b@1');
    server.process.kill('SIGTERM');
    await server.until(({ state }) => state === 'draining');
    give(cwd, 'draining');
    assert.equal((await running).status, 200);
    const answer = await held;
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });

  test('are refused when the server starts, if their workers always stay', LIMIT, async (t) => {
    const stays = { workers: 1 };
    const cwd = sizedModels(t, { a: { mb: 100, options: stays }, b: { mb: 100, options: stays } });
    const args = ['--port', '0', '--memory-budget', '180mb'];
    const command = runCommand(args, { t, cwd });
    assert.equal((await command.ended).code, 3, command.stderr());
    assert.match(
      command.stderr(),
      /the workers of .*[ab]@1 \([\d.]+ MB\).*, which always stay, need [\d.]+ MB together, and --memory-budget 180 MB is all that there is/,
    );
  });
});

test(
  'a worker that stands by leaves for another model, and comes back when there is memory',
  LIMIT,
  async (t) => {
    const scaling = { minWorkers: 0, maxWorkers: 1 };
    const cwd = sizedModels(t, {
      a: { mb: 100, options: { ...scaling, idleTimeout: '1h', standby: 1 } },
      b: { mb: 100, options: { ...scaling, idleTimeout: '500ms' } },
    });
    const server = await startServer(null, { t, cwd, args: ['--memory-budget', '330mb'] }); // for two, however little Node takes itself
    const untilStanding = (count: number): Promise<unknown> =>
      server.until(({ models }) => models.find(({ name }) => name === 'a')?.standby.ready === count);
    const serving = await pidOf(server, 'a');
    await untilStanding(1);
    const called = ask(server, 'b', { until: 'a is alone' });
    await server.untilPrinted(/worker a\/1 leaves: .*memory/);
    await untilStanding(0);
    assert.equal(await pidOf(server, 'a'), serving);
    give(cwd, 'a is alone');
    assert.equal((await called).status, 200);
    await untilStanding(1); // b has left meanwhile
    assert.deepEqual(await rulesOf(server, 'b'), ['started first-call', 'retired idle']);
    await server.stop();
  },
);

test('the memory of a GPU is free for the next model when the driver says so', LIMIT, async (t) => {
  const models = { a: { mb: 1, gpuMib: 600 }, b: { mb: 1, gpuMib: 700 } };
  const cwd = sizedModels(t, models);
  const card = join(cwd, 'card');
  // A driver that does not tell the processes, as in a container: the card uses 100 MiB and what the files say.
  const script = `#!/bin/sh
[ "$1" = -L ] && { echo 'GPU 0: NVIDIA A100 (UUID: GPU-aaaaaaaa-0000-0000-0000-aaaaaaaaaaaa)'; exit; }
case "$*" in *compute-apps*) exit;; esac
used=100
for file in '${card}'/*; do [ -f "$file" ] && used=$((used + $(cat "$file"))); done
echo "0, GPU-aaaaaaaa-0000-0000-0000-aaaaaaaaaaaa, 2000, $used, 0, NVIDIA A100"
`;
  writeFileSync(join(cwd, 'nvidia-smi'), script);
  chmodSync(join(cwd, 'nvidia-smi'), 0o755);
  const env = { PATH: `${cwd}${delimiter}${process.env['PATH'] ?? ''}`, CUDA_VISIBLE_DEVICES: undefined };
  const server = await startServer(null, { t, cwd, env, args: ['--gpu-memory-budget', '50%'] });

  const first = await pidOf(server, 'a');
  await pidOf(server, 'b'); // not known: it goes, is too large, and the idle worker leaves
  await server.untilPrinted(/worker a\/0 leaves: 1.3 GB of --gpu-memory-budget 1000 MB are used on gpu 0/);
  rmSync(join(card, String(first)));

  const again = pidOf(server, 'a');
  await server.untilPrinted(/worker b\/0 leaves: a start of 600 MB of a@1 needs its memory/);
  const { memory } = await server.until((status) => status.memory?.waiting[0]?.needBytes === 600 * 2 ** 20);
  assert.equal(memory?.pools[0]?.name, 'gpu 0');
  for (const file of readdirSync(card)) rmSync(join(card, file));
  await again;
  await server.stop();
});
