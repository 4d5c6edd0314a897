/** Models without code, called by clients of the Open Inference Protocol. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SLOW, identity, untilComputing, writeOnnx } from '../helpers/onnx-model.js';
import { startHere } from '../helpers/here.js';
import { ROOT } from '../helpers/server.js';
import { ask, float32, infer, pictureOf, strings } from '../helpers/v2.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };

const size = (count: number) => [{ name: 'size', datatype: 'INT64', shape: [2], data: [count, count] }];

test('metadata and calls of a model without code, and a kill -9 during its run', LIMIT, async (t) => {
  const folder = appFolder(t, {});
  const args = [
    ['floats', writeOnnx(join(folder, 'floats.onnx'), identity('FP32'))],
    ['texts', writeOnnx(join(folder, 'texts.onnx'), identity('BYTES', ['batch', 1]))],
    ['any', writeOnnx(join(folder, 'any.onnx'), identity('FP32', null))],
    ['slow', writeOnnx(join(folder, 'slow.onnx'), SLOW)],
    ['rgb', writeOnnx(join(folder, 'rgb.onnx'), identity('FP32', ['batch', 4, 5, 3]))],
    ['digits', `${ROOT}examples/digits/digits.onnx`],
  ].flatMap(([name, path]) => ['--model', `${String(name)}=${String(path)}`]);
  const server = await startHere(null, { t, args, expectedRestarts: 1 });

  assert.deepEqual((await ask(server.url, '/v2/models/floats')).json, {
    name: 'floats',
    versions: ['1'],
    platform: 'onnx_onnxv1',
    inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 2] }],
    outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 2] }],
  });

  const { json: config } = await ask(server.url, '/v2/models/floats/config');
  assert.deepEqual(
    [config['max_batch_size'], config['input'], config['output']],
    [
      8,
      [{ name: 'x', data_type: 'TYPE_FP32', dims: [2], format: 'FORMAT_NONE' }],
      [{ name: 'y', data_type: 'TYPE_FP32', dims: [2] }],
    ],
    'as Triton has it where calls are joined',
  );

  const { json: rgb } = await ask(server.url, '/v2/models/rgb/config');
  assert.equal((rgb['input'] as { format: string }[])[0]?.format, 'FORMAT_NHWC');
  const picture = await pictureOf(server.url, 'digits');
  assert.deepEqual(picture, { batch: 8, channels: 1, height: 8, width: 8 });
  const { outputs: both } = await infer(server, '/v2/models/digits/infer', {
    inputs: [{ name: 'image', datatype: 'FP32', shape: [2, 1, 8, 8], data: Array<number>(128).fill(0) }],
  });
  assert.deepEqual(both['probabilities']?.shape, [2, 10], 'a batch of two pictures');

  const any = (await ask(server.url, '/v2/models/any')).json;
  assert.deepEqual(any['inputs'], [{ name: 'x', datatype: 'FP32' }], 'no shape is no scalar');
  for (const shape of [[], [1], [1, 2]]) {
    const data = shape.length === 2 ? [1, 2] : [1];
    const { outputs } = await infer(server, '/v2/models/any/infer', {
      inputs: [{ name: 'x', datatype: 'FP32', shape, data }],
    });
    assert.deepEqual(outputs['y'], { shape, datatype: 'FP32', data });
  }

  const x = { name: 'x', datatype: 'FP32', shape: [1, 2] };
  const json = await infer(server, '/v2/models/floats/infer', { inputs: [{ ...x, data: [1.5, -2] }] });
  assert.deepEqual(json.outputs['y'], { shape: [1, 2], datatype: 'FP32', data: [1.5, -2] });
  const binary = await infer(server, '/v2/models/floats/infer', {
    inputs: [{ ...x, data: float32(1.5, -2) }],
    parameters: { binary_data_output: true },
  });
  assert.deepEqual(binary.outputs['y']?.data, float32(1.5, -2));

  const text = { name: 'x', datatype: 'BYTES', shape: [1, 1] };
  const nul = await infer(server, '/v2/models/texts/infer', { inputs: [{ ...text, data: strings('a\0b') }] });
  assert.equal(nul.status, 400);
  assert.match(String(nul.error), /^Input "x": element 0 has a NUL, and onnxruntime would cut it there\.$/);

  const lost = infer(server, '/v2/models/slow/infer', { inputs: size(20_000) });
  const { models } = await server.until((status) => status.models.some(({ inFlight }) => inFlight > 0));
  const pid = models.flatMap(({ workers }) => workers).find(({ state }) => state === 'busy')?.pid;
  await untilComputing(pid as number);
  process.kill(pid as number, 'SIGKILL');
  const { status, json: told } = await lost;
  assert.equal(status, 500);
  assert.deepEqual(Object.keys(told), ['error']);
  assert.match(String(told['error']), /^The worker died while running this call/);
  await server.stop();
});

test('load of a folder with versions serves all of them, the highest by default', LIMIT, async (t) => {
  const store = appFolder(t, {});
  const version = (name: string): void => {
    mkdirSync(join(store, 'm', name), { recursive: true });
    writeOnnx(join(store, 'm', name, 'model.onnx'), identity('FP32', ['batch', Number(name)]));
  };
  version('1');
  version('2');
  const args = ['--model-store', store, '--models', 'none', '--management-port', '0'];
  const server = await startHere(null, { t, args });
  const shown = /management API is on (\S+)/;
  await server.untilPrinted(shown);
  const management = shown.exec(server.stderr())?.[1] as string;
  const load = () => ask(management, '/v2/repository/models/m/load', { method: 'POST' });
  const widthOf = async (path: string): Promise<unknown> => {
    const { json } = await ask(server.url, path);
    return (json['inputs'] as { shape: number[] }[])[0]?.shape[1];
  };
  assert.equal((await load()).status, 200);
  assert.deepEqual([await widthOf('/v2/models/m'), await widthOf('/v2/models/m/versions/1')], [2, 1]);
  version('3');
  assert.equal((await load()).status, 200);
  assert.deepEqual((await ask(server.url, '/v2/models/m')).json['versions'], ['1', '2', '3']);
  assert.equal(await widthOf('/v2/models/m'), 3);
  await server.stop();
});
