/** Models without code from start to end: what cannot start, what is replaced, what dies, and what stays in its folder. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { zipOf } from '../helpers/archives.js';
import { ask, errorOf } from '../helpers/ask.js';
import {
  SLOW,
  identity,
  onnxBytes,
  untilComputing,
  writeOnnx,
  type OnnxModel,
} from '../helpers/onnx-model.js';
import { startHere } from '../helpers/here.js';
import { ROOT, call, eventually, runCommand, type Server } from '../helpers/server.js';
import { scrape } from '../helpers/scrape.js';
import { changes } from '../helpers/watched.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };

/** `y = x + w`, with the weights in another file if `location` names one. */
function plus(weight: number, location?: string): OnnxModel {
  const bytes = Buffer.from(new Float32Array([weight]).buffer);
  const external = { location: location ?? '', offset: 0, length: 4 };
  const place = location === undefined ? { bytes } : { bytes: null, external };
  return {
    ...identity('FP32'),
    nodes: [{ op: 'Add', inputs: ['x', 'w'], outputs: ['y'] }],
    weights: [{ name: 'w', type: 'FP32', shape: [1], ...place }],
  };
}

/** Says that its weights have 4 TB. */
const HUGE: OnnxModel = {
  inputs: [{ name: 'x', type: 'FP32', shape: ['n'] }],
  outputs: [{ name: 'y', type: 'FP32', shape: ['n'] }],
  nodes: [{ op: 'Add', inputs: ['x', 'w'], outputs: ['y'] }],
  weights: [{ name: 'w', type: 'FP32', shape: [10 ** 12], bytes: Buffer.alloc(8) }],
};

async function outputOf(server: Server, input: unknown = [1, 2]): Promise<unknown> {
  return (await ask(server, input)).json<{ y?: unknown }>().y;
}

describe('a model that cannot start', LIMIT, () => {
  const ROWS: readonly (readonly [what: string, bytes: Buffer, args: readonly string[], line: RegExp])[] = [
    ['is empty', Buffer.alloc(0), [], /m\.onnx: the file is empty\. Copy or export it again\./],
    ['is cut off', onnxBytes(identity('FP32')).subarray(0, -20), [], /m\.onnx: the file is not whole,/],
    [
      'has an unknown operator set',
      onnxBytes({ ...identity('FP32'), opset: 99 }),
      [],
      /m\.onnx: the model uses operator set 99,/,
    ],
    [
      'is beyond what can be allocated',
      onnxBytes(HUGE),
      [],
      /m\.onnx: its weights w have 4000000000000 bytes,/,
    ],
    [
      'has a type that is not supported',
      onnxBytes(identity('BF16')),
      [],
      /m\.onnx: an input or an output has the type BF16,/,
    ],
    [
      'is to run where it cannot',
      onnxBytes(identity('FP32')),
      ['--providers', 'nosuch,cpu'],
      /m\.onnx: this onnxruntime-node has no execution provider nosuch;.* `--providers cpu` serves without it\./,
    ],
  ];
  for (const [what, bytes, args, line] of ROWS)
    test(`because it ${what} is not tried again, and one line says why`, async (t) => {
      const folder = appFolder(t, {});
      writeFileSync(join(folder, 'm.onnx'), bytes);
      const command = runCommand([join(folder, 'm.onnx'), '--port', '0', ...args], { t });
      assert.equal((await command.ended).code, 3);
      const errors = command
        .stderr()
        .split('\n')
        .filter((one) => /m\.onnx: /.test(one));
      assert.equal(errors.length, 1, command.stderr());
      assert.match(errors[0] as string, line);
      assert.match(errors[0] as string, /it will not be restarted/);
    });
});

describe('under --watch', LIMIT, () => {
  async function watched(t: TestContext, model: OnnxModel, files: Readonly<Record<string, string>> = {}) {
    const folder = appFolder(t, files);
    const path = writeOnnx(join(folder, 'm.onnx'), model);
    const server = await startHere(path, { t, args: ['--watch'] });
    return { folder, path, server };
  }

  test('a model that is replaced is served at once, and a broken one once it is mended', async (t) => {
    const { path, server } = await watched(t, plus(1));
    assert.deepEqual(await outputOf(server), [2, 3]);
    writeOnnx(path, plus(10));
    await eventually(async () => String(await outputOf(server)) === '11,12', 60_000, server.stderr);
    writeFileSync(path, '');
    await server.untilPrinted(/the file is empty\. Copy or export it again\./);
    writeOnnx(path, plus(20));
    await eventually(async () => String(await outputOf(server)) === '21,22', 60_000, server.stderr);
    server.process.kill('SIGINT');
    assert.equal((await server.ended).code, 0);
  });

  test('weights in another file are watched, whatever its name, and others beside them are not', async (t) => {
    const weights = (weight: number): Buffer => Buffer.from(new Float32Array([weight]).buffer);
    const folder = appFolder(t, { other: '', 'm.example.json': '[1, 2]' });
    writeFileSync(join(folder, 'w'), weights(1));
    const path = writeOnnx(join(folder, 'm.onnx'), plus(0, 'w'));
    const server = await startHere(path, { t, args: ['--watch'] });
    assert.deepEqual(await outputOf(server), [2, 3]);
    writeFileSync(join(folder, 'other'), 'changed');
    writeFileSync(join(folder, 'w'), weights(10));
    await server.untilPrinted('w changed: starting the workers again');
    await eventually(async () => String(await outputOf(server)) === '11,12', 60_000, server.stderr);
    assert.deepEqual(changes(server), ['w']);
    await server.stop();
  });
});

test('kill -9 during a run is an error, and the next call is answered', LIMIT, async (t) => {
  const server = await startHere(writeOnnx(join(appFolder(t, {}), 'm.onnx'), SLOW), {
    t,
    expectedRestarts: 1,
  });
  assert.equal(await outputOf(server, [3, 3]), 0);
  const lost = ask(server, [20_000, 20_000]);
  const { model } = await server.until(({ model: { workers } }) => workers[0]?.state === 'busy');
  const pid = model.workers[0]?.pid as number;
  await untilComputing(pid);
  process.kill(pid, 'SIGKILL');
  const answer = await lost;
  assert.deepEqual([answer.status, errorOf(answer).code], [500, 'SERVE_WORKER_LOST']);
  assert.equal(await outputOf(server, [3, 3]), 0);
  await server.stop();
});

test('40 calls at once, of mixed shapes and with a tenth bad, get their own answers', LIMIT, async (t) => {
  const model: OnnxModel = {
    inputs: [{ name: 'at', type: 'INT64', shape: ['batch', 'count'] }],
    outputs: [{ name: 'y', type: 'INT64', shape: ['batch', 'count'] }],
    nodes: [{ op: 'Gather', inputs: ['table', 'at'], outputs: ['y'] }],
    weights: [
      {
        name: 'table',
        type: 'INT64',
        shape: [100],
        bytes: new Uint8Array(BigInt64Array.from({ length: 100 }, (_, i) => BigInt(i * i)).buffer),
      },
    ],
  };
  const args = ['--batch-size', '32', '--max-batch-delay', '50ms', '--expose-errors', '--metrics'];
  const server = await startHere(writeOnnx(join(appFolder(t, {}), 'm.onnx'), model), { t, args });
  await server.until(({ state }) => state === 'ready');
  for (let round = 0; round < 3; round += 1) {
    const calls = Array.from({ length: 40 }, (_, i) => {
      const row = Array.from({ length: 1 + (i % 3) }, (__, j) => (i + 7 * j + round) % 100);
      return i % 10 === 3 ? [...row.slice(1), 1000] : row;
    });
    const answers = await Promise.all(calls.map((at) => ask(server, { at })));
    for (const [i, answer] of answers.entries()) {
      const row = calls[i] as number[];
      if (i % 10 === 3) {
        assert.equal(answer.status, 400);
        assert.match(answer.text, /out of data bounds, idx=1000/);
      } else assert.deepEqual(answer.json(), { y: row.map((at) => at * at) });
    }
  }
  const batches = (await scrape(server.url)).sum('banana_batch_size_count') ?? 0;
  assert.ok(batches > 0 && batches < 60, `${batches} batches of 120 calls`);
  await server.stop();
});

test(
  'a model of an archive is served by the package of the start folder, and a handler in it runs',
  LIMIT,
  async (t) => {
    const fake = 'node_modules/onnxruntime-node';
    const planted = [
      { name: `${fake}/package.json`, content: '{"name":"onnxruntime-node","version":"9.0.0"}' },
      { name: `${fake}/index.js`, content: 'throw new Error("code of the archive ran")' },
    ];
    const folder = appFolder(t, {});
    writeFileSync(
      join(folder, 'net.mar'),
      await zipOf([{ name: 'net.onnx', content: onnxBytes(plus(1)) }, ...planted]),
    );
    const handler = 'export const handle = (data) => data && data.map(() => "the handler ran");';
    const both = [
      { name: 'both_handler.mjs', content: handler },
      { name: 'both.onnx', content: onnxBytes(plus(1)) },
    ];
    writeFileSync(join(folder, 'both.mar'), await zipOf(both));
    const args = ['--model-store', folder, '--models', 'all', '--management-port', '0'];
    const server = await startHere(null, { t, cwd: ROOT, args });
    await server.until(({ state }) => state === 'ready');
    const net = await call(`${server.url}/predictions/net`, '[1, 2]');
    assert.deepEqual([net.status, net.json()], [200, { y: [2, 3] }]);
    assert.equal((await call(`${server.url}/predictions/both`, '{}')).text, 'the handler ran');
    await server.stop();
  },
);

test(
  "workers have onnxruntime's telemetry off, unless the operator sets it",
  { ...LIMIT, skip: process.platform !== 'linux' },
  async (t) => {
    const path = writeOnnx(join(appFolder(t, {}), 'm.onnx'), identity('FP32'));
    for (const [given, wanted] of [
      [undefined, '1'],
      ['0', '0'],
    ] as const) {
      const server = await startHere(path, { t, env: { ORT_DISABLE_TELEMETRY: given } });
      const { model } = await server.until(({ state }) => state === 'ready');
      const environment = readFileSync(`/proc/${String(model.workers[0]?.pid)}/environ`, 'utf8').split('\0');
      assert.ok(environment.includes(`ORT_DISABLE_TELEMETRY=${wanted}`));
      await server.stop();
    }
  },
);

/** `y`: the first number from `x` on, in steps of `x`, that is 1 or more. From zeros it counts for ever. */
const HANGS_ON_ZEROS: OnnxModel = {
  inputs: [{ name: 'x', type: 'FP32', shape: [1] }],
  outputs: [{ name: 'y', type: 'FP32', shape: [1] }],
  nodes: [
    { op: 'Less', inputs: ['x', 'one'], outputs: ['begins'] },
    { op: 'Squeeze', inputs: ['begins'], outputs: ['goes'] },
    {
      op: 'Loop',
      inputs: ['', 'goes', 'x'],
      outputs: ['y'],
      attributes: {
        body: {
          graph: {
            inputs: [
              { name: 'i', type: 'INT64', shape: [] },
              { name: 'was', type: 'BOOL', shape: [] },
              { name: 'sum', type: 'FP32', shape: [1] },
            ],
            outputs: [
              { name: 'still', type: 'BOOL', shape: [] },
              { name: 'next', type: 'FP32', shape: [1] },
            ],
            nodes: [
              { op: 'Add', inputs: ['sum', 'x'], outputs: ['next'] },
              { op: 'Less', inputs: ['next', 'one'], outputs: ['less'] },
              { op: 'Squeeze', inputs: ['less'], outputs: ['still'] },
            ],
          },
        },
      },
    },
  ],
  weights: [{ name: 'one', type: 'FP32', shape: [1], bytes: new Uint8Array(new Float32Array([1]).buffer) }],
};

test('a death in the warm-up is followed by a start without it', LIMIT, async (t) => {
  const path = writeOnnx(join(appFolder(t, {}), 'm.onnx'), HANGS_ON_ZEROS);
  const server = await startHere(path, { t, expectedRestarts: 1, args: ['--restart-limit', '0'] });
  const { model } = await server.until(({ model: { workers } }) => workers[0]?.state === 'warming');
  process.kill(model.workers[0]?.pid as number, 'SIGKILL');
  assert.deepEqual(await outputOf(server, [0.5]), [1]);
  await server.stop();
});

test('a warm-up that fails is a warning, and the server is ready', LIMIT, async (t) => {
  const folder = appFolder(t, { 'm.example.json': '{"z": 1}' });
  const server = await startHere(writeOnnx(join(folder, 'm.onnx'), identity('FP32')), { t });
  await server.untilPrinted(
    /WARN.*The warm-up with m\.example\.json failed, so the first calls are slower: Input "x" is missing;/,
  );
  assert.deepEqual(await outputOf(server), [1, 2]);
  await server.stop();
});
