/** `banana-serve optimize`: workers share the weights of a model, and answers stay right whatever happens to the files. */
import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeSync,
  closeSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import type { BudgetStatus } from '../../supervisor/budget/memory-budget.js';
import { ask } from '../helpers/ask.js';
import { HEAVY_ROW, heavyModel } from '../helpers/heavy-model.js';
import { managementOf } from '../helpers/managed-command.js';
import { identity, writeOnnx } from '../helpers/onnx-model.js';
import { startHere } from '../helpers/here.js';
import { CLI, runCommand, type RunningCommand, type Server } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };
const ON_LINUX = { skip: process.platform !== 'linux' && 'only Linux tells how much memory processes share' };

type KnownCost = Readonly<Record<'firstBytes' | 'readyBytes', number>>;

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function ended(command: RunningCommand): Promise<Ended> {
  const { code } = await command.ended;
  return { code, stdout: command.stdout(), stderr: command.stderr() };
}

const optimize = (model: string): RunningCommand => runCommand(['optimize', model]);

/** Answers with the row that the model of this seed gives. */
async function rowOf(server: Server): Promise<number[]> {
  return (await ask(server, { x: HEAVY_ROW })).json<{ y: number[] }>().y;
}

/** Whether the workers map the weights of an optimized graph. */
async function sharesWeights(server: Server): Promise<boolean> {
  const { model } = await server.until((status) =>
    status.model.workers.every(({ state }) => state === 'idle'),
  );
  return model.workers.every(({ pid }) =>
    readFileSync(`/proc/${String(pid)}/maps`, 'utf8').includes('/weights.bin'),
  );
}

/** The folders of graphs of a model, unfinished ones included. */
function graphsOf(model: string): string[] {
  const place = `${model}.optimized`;
  return existsSync(place) ? readdirSync(place).map((name) => join(place, name)) : [];
}

describe('banana-serve optimize', { timeout: 600_000 }, () => {
  let expected: number[];
  const folder = appFolder({ after }, {});
  let first: { readonly model: string; readonly optimized: Ended };
  before(async () => {
    const model = writeOnnx(join(folder, 'm.onnx'), heavyModel());
    const server = await startHere(model);
    expected = await rowOf(server);
    await server.stop();
    first = { model, optimized: await ended(optimize(model)) };
  });

  /** A copy of the model and of its graph. */
  function copyOfFirst(t: TestContext): string {
    const copy = appFolder(t, {});
    cpSync(folder, copy, { recursive: true, preserveTimestamps: true });
    return join(copy, 'm.onnx');
  }

  test('a server maps what it wrote, answers the same bytes, and says nothing', async (t) => {
    const { model } = first;
    const { code, stdout, stderr } = first.optimized;
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /^Wrote .*m\.onnx\.optimized\/\S+, 34 MB\. Each worker has \d+ MB of its own instead of \d+ MB\. Loading takes \d+ ms of CPU instead of \d+\.\n$/,
    );
    const server = await startHere(model, { t, args: ['--workers', '2'] });
    assert.ok(await sharesWeights(server));
    assert.deepEqual(await rowOf(server), expected);
    assert.doesNotMatch(server.stderr(), /WARN/);
    await server.stop();

    const again = await ended(optimize(model));
    assert.match(again.stdout, /is there already/);
  });

  test('workers that share weights fit a memory budget in which copies would not', ON_LINUX, async (t) => {
    /** Starts one worker, whose memory becomes known, then three more. Resolves once all four were read. */
    const fourWorkers = async (budget: string): Promise<BudgetStatus> => {
      const args = ['--max-workers', '4', '--management-port', '0', '--memory-budget', budget];
      const server = await startHere(first.model, { t, args });
      await server.until(({ memory }) => (memory?.startCosts[0]?.firstBytes ?? null) !== null);
      const management = await managementOf(server);
      assert.equal(
        await management.said('PUT /models/m?min_worker=4&synchronous=true'),
        '200 Workers scaled',
      );
      const { memory } = await server.until(
        ({ memory }) => (memory?.startCosts[0]?.moreBytes ?? null) !== null,
      );
      assert.doesNotMatch(server.stderr(), /cannot start|leaves/);
      await server.stop();
      return memory as BudgetStatus;
    };

    const { firstBytes, readyBytes } = (await fourWorkers('4gb')).startCosts[0] as KnownCost;
    // Three that are ready, one that starts, and half a copy of the weights: copies would be three more.
    const budgetMb = Math.ceil((3 * readyBytes + firstBytes) / 2 ** 20) + 17;
    const { pools } = await fourWorkers(`${budgetMb}mb`);
    assert.ok((pools[0]?.usedBytes ?? NaN) <= budgetMb * 2 ** 20);
  });

  test('a flipped bit is noticed at the start, and the original served', async (t) => {
    const model = copyOfFirst(t);
    const [folder = ''] = graphsOf(model);
    flipByte(join(folder, 'weights.bin'), 5000);
    const server = await startHere(model, { t });
    assert.equal(await sharesWeights(server), false);
    assert.deepEqual(await rowOf(server), expected);
    assert.match(
      server.stderr(),
      /weights\.bin is damaged\. Remove it; the original is served\. Run: banana-serve optimize /,
    );
    await server.stop();

    assert.match((await ended(optimize(model))).stdout, /^Wrote /); // the damaged one is replaced
  });

  test('a model that is replaced under --watch is not answered by the graph of the one before', async (t) => {
    const model = copyOfFirst(t);
    const server = await startHere(model, { t, args: ['--watch'] });
    assert.ok(await sharesWeights(server));
    const [pid] = (await server.until(({ state }) => state === 'ready')).model.workers.map((one) => one.pid);
    writeOnnx(model, heavyModel(5));
    await server.until(({ model: { workers } }) =>
      workers.every((one) => one.state === 'idle' && one.pid !== pid),
    );
    assert.notDeepEqual(await rowOf(server), expected);
    await server.stop();
  });

  test('killed at any moment it leaves nothing that a server would use by mistake', async (t) => {
    const model = writeOnnx(join(appFolder(t, {}), 'm.onnx'), heavyModel());
    for (const ms of [300, 1100]) {
      const command = optimize(model);
      setTimeout(() => command.process.kill('SIGKILL'), ms);
      await command.ended;
    }
    const server = await startHere(model, { t });
    assert.deepEqual(await rowOf(server), expected);
    assert.doesNotMatch(server.stderr(), /damaged|cannot be/);
    await server.stop();
    assert.equal((await ended(optimize(model))).code, 0);
    assert.equal(graphsOf(model).length, 1, 'what the killed ones had begun is gone');
  });

  test('two at once both succeed', async (t) => {
    const model = writeOnnx(join(appFolder(t, {}), 'm.onnx'), heavyModel());
    const both = await Promise.all([ended(optimize(model)), ended(optimize(model))]);
    assert.deepEqual(
      both.map(({ code }) => code),
      [0, 0],
      both.map(({ stderr }) => stderr).join(''),
    );
    assert.equal(graphsOf(model).length, 1);
  });

  test('a full disk leaves nothing', async (t) => {
    const model = writeOnnx(join(appFolder(t, {}), 'm.onnx'), heavyModel());
    // Files of at most 8 MB; without the signal, writing more fails as on a full disk.
    const script = `trap '' XFSZ; ulimit -f 8000; exec "${process.execPath}" "${CLI}" optimize "${model}"`;
    const { code, stderr } = await ended(runCommand(['-c', script], { command: 'bash' }));
    assert.equal(code, 1);
    assert.match(stderr, /^banana-serve optimize: \S.*\n$/);
    assert.deepEqual(graphsOf(model), []);
  });

  for (const type of ['FP32', 'BYTES'] as const)
    test(`nothing is written where there is nothing to gain, as for a small model of ${type}`, async (t) => {
      const model = writeOnnx(join(appFolder(t, {}), 'm.onnx'), identity(type));
      const { code, stdout, stderr } = await ended(optimize(model));
      assert.deepEqual([code, existsSync(`${model}.optimized`)], [0, false], stderr);
      assert.match(stdout, /^Nothing was written: it would take \d+ MB of disk for no gain\. /);
    });

  test('where the folder of the model cannot be written, the cache of the user is used', async (t) => {
    const folder = appFolder(t, { 'm.onnx.optimized': 'a file in the way' });
    const model = writeOnnx(join(folder, 'm.onnx'), heavyModel());
    const env = { XDG_CACHE_HOME: join(folder, 'cache') };
    const { stdout, stderr } = await ended(runCommand(['optimize', model], { env }));
    assert.match(stdout, /^Wrote .*cache\/banana-serve\/onnx\//, stderr);
    const server = await startHere(model, { t, env });
    assert.ok(await sharesWeights(server));
    await server.stop();
  });

  for (const [args, text] of [
    [
      ['optimize', './none.onnx'],
      /none\.onnx is no \.onnx file\. Name one: banana-serve optimize \.\/model\.onnx\n$/,
    ],
    [['optimize'], /missing required argument 'model'\n$/],
  ] as const)
    test(`\`banana-serve ${args.join(' ')}\` says what is missing`, async () => {
      const { code, stderr } = await ended(runCommand(args));
      assert.notEqual(code, 0);
      assert.match(stderr, text);
    });
});

test('weights that are missing are named', LIMIT, async (t) => {
  const external = { location: 'gone.bin', offset: 0, length: 4 };
  const weights = [{ name: 'w', type: 'FP32', shape: [1], bytes: null, external }] as const;
  const model = writeOnnx(join(appFolder(t, {}), 'm.onnx'), { ...identity('FP32'), weights });
  const { code, stderr } = await ended(optimize(model));
  assert.equal(code, 1);
  assert.match(stderr, /m\.onnx: not all of it can be read: .*gone\.bin/);
});

function flipByte(path: string, at: number): void {
  const byte = readFileSync(path)[at] ?? 0;
  assert.ok(statSync(path).size > at);
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.from([byte ^ 0x10]), 0, 1, at);
  closeSync(file);
}
