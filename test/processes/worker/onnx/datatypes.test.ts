/**
 * Every datatype through the real onnxruntime: as the Open Inference Protocol has it, in JSON and in bytes, and as lists.
 * `test/e2e/onnx-nodes.test.ts` runs this file on other versions of Node.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Datatype } from '../../../../protocol/values/tensor.js';
import { readJson } from '../../../../worker/formats/json.js';
import { openInferenceExchange } from '../../../../worker/formats/open-inference.js';
import { PLAIN_HEAD, Reply } from '../../../../worker/formats/reply.js';
import { jsonText } from '../../../../worker/values/json-encoding.js';
import { identity, writeOnnx } from '../../../helpers/onnx-model.js';
import { appFolder } from '../../../worker/app-folder.js';
import { callWith } from '../../../worker/calls.js';
import { loadModel, type LoadedModel } from './load-model.js';

interface Row {
  /** Two elements as JSON of the protocol. */
  readonly json: string;
  /** The same elements as its raw bytes. */
  readonly bytes: Buffer;
  /** The elements as JSON at `/`, if other than `json`: what is exact as numbers of JavaScript. */
  readonly plain?: string;
}

function bytesOf(data: ArrayBufferView): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

const ROWS: { readonly [D in Exclude<Datatype, 'BF16'>]: Row } = {
  BOOL: { json: 'true,false', bytes: Buffer.from([1, 0]) },
  UINT8: { json: '0,255', bytes: Buffer.from([0, 255]) },
  UINT16: { json: '0,65535', bytes: bytesOf(new Uint16Array([0, 65535])) },
  UINT32: { json: '0,4294967295', bytes: bytesOf(new Uint32Array([0, 2 ** 32 - 1])) },
  UINT64: {
    json: '0,18446744073709551615',
    bytes: bytesOf(new BigUint64Array([0n, 2n ** 64n - 1n])),
    plain: '0,9007199254740991',
  },
  INT8: { json: '-128,127', bytes: bytesOf(new Int8Array([-128, 127])) },
  INT16: { json: '-32768,32767', bytes: bytesOf(new Int16Array([-(2 ** 15), 2 ** 15 - 1])) },
  INT32: { json: '-2147483648,2147483647', bytes: bytesOf(new Int32Array([-(2 ** 31), 2 ** 31 - 1])) },
  INT64: {
    json: '-9223372036854775808,9223372036854775807',
    bytes: bytesOf(new BigInt64Array([-(2n ** 63n), 2n ** 63n - 1n])),
    plain: '-9007199254740991,9007199254740991',
  },
  FP16: { json: '1.5,-65504', bytes: bytesOf(new Uint16Array([0x3e00, 0xfbff])) },
  FP32: { json: '1.5,-3.25', bytes: bytesOf(new Float32Array([1.5, -3.25])) },
  FP64: { json: '0.1,-1e+300', bytes: bytesOf(new Float64Array([0.1, -1e300])) },
  BYTES: { json: '"é",""', bytes: Buffer.from([2, 0, 0, 0, 0xc3, 0xa9, 0, 0, 0, 0]) },
};

const JSON_BYTES = 'Inference-Header-Content-Length';

/** Sends a request of the protocol to the model; returns the answer's body. */
async function infer({ signature, inference }: LoadedModel, headers: string, body: Buffer): Promise<string> {
  const exchange = openInferenceExchange(callWith({ headers, dialectParams: 'model=m' }), signature);
  const value = await inference(exchange.read(body));
  const reply = exchange.write(new Reply(PLAIN_HEAD, { kind: 'value', value }));
  assert.ok(reply.body.kind === 'bytes');
  return Buffer.from(reply.body.bytes).toString('latin1');
}

describe('every datatype goes in and comes out', () => {
  for (const [datatype, { json, bytes, plain = json }] of Object.entries(ROWS) as [
    keyof typeof ROWS,
    Row,
  ][]) {
    const head = `"name":"x","datatype":"${datatype}","shape":[1,2]`;

    test(`${datatype} in JSON and in bytes`, async (t) => {
      const model = await loadModel(writeOnnx(join(appFolder(t, {}), 'm.onnx'), identity(datatype)));
      assert.deepEqual(model.signature.inputs, [{ name: 'x', datatype, shape: [-1, 2] }]);
      const answered = await infer(model, '', Buffer.from(`{"inputs":[{${head},"data":[${json}]}]}`));
      const output = `"outputs":[{${head.replace('"x"', '"y"')}`;
      assert.ok(answered.includes(Buffer.from(`${output},"data":[${json}]}]`).toString('latin1')), answered);
      const parameters = `"parameters":{"binary_data_size":${bytes.length}}`;
      const request = `{"inputs":[{${head},${parameters}}],"parameters":{"binary_data_output":true}}`;
      const body = Buffer.concat([Buffer.from(request), bytes]);
      const raw = await infer(model, `${JSON_BYTES}\n${request.length}`, body);
      assert.ok(raw.endsWith(`${output},${parameters}}]}${bytes.toString('latin1')}`), raw);
    });

    test(`${datatype} as lists, alone and in a batch`, async (t) => {
      const model = await loadModel(writeOnnx(join(appFolder(t, {}), 'm.onnx'), identity(datatype)));
      const input = readJson(Buffer.from(`{"x":[[${plain}]]}`));
      const wanted = `{"y":[[${plain}]]}`;
      assert.equal(jsonText(await model.inference(input), 0), wanted);
      const answers = (await model.inferenceBatch?.([input, input])) ?? [];
      assert.deepEqual(
        answers.map((answer) => jsonText(answer, 0)),
        [wanted, wanted],
      );
    });
  }
});
