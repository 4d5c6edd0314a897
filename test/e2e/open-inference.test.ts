/** Calls in the Open Inference Protocol: what an app gets, how its answers and errors leave, and what is refused. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { eventually } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import {
  ask,
  encoded,
  float32,
  infer,
  int32,
  strings,
  way,
  type InferRequest,
  type V2Answer,
} from '../helpers/v2.js';

const LIMIT = { timeout: 240_000 };

const INT32 = { shape: [1, 2], datatype: 'INT32' } as const;
const SUM: InferRequest = {
  id: 'call 7',
  inputs: [
    { name: 'INPUT0', ...INT32, data: [1, 2] },
    { name: 'INPUT1', ...INT32, data: int32(10, -20) },
  ],
};

function modelArgs(models: Readonly<Record<string, string>>): string[] {
  return Object.entries(models).flatMap(([name, app]) => ['--model', `${name}=${app}`]);
}

const lengthOf = (length: string | number) => ({ 'Inference-Header-Content-Length': String(length) });
const NO_BYTES = Buffer.alloc(0);

/** Two elements, in JSON and as bytes; the readers and writers of both languages have every datatype in their tests. */
const DATATYPES: readonly (readonly [datatype: string, json: string, hex: string])[] = [
  ['INT64', '[-9223372036854775808,9223372036854775807]', '0000000000000080ffffffffffffff7f'],
  ['BF16', '[0.5,-1.5]', '003fc0bf'],
  ['BYTES', '["a\\u0000b",""]', '0300000061006200000000'],
];

withEachRuntime(({ app }) => {
  describe('a model that is called with tensors', LIMIT, () => {
    const models = {
      m: app('tensors'),
      signed: app('signed-tensors'),
      service: app('works-service'),
      potassium: app('every-kind'),
      several: app('has-several-routes'),
    };
    const shared = shareHere(null, { args: modelArgs(models), expectedRestarts: 1 });
    const call = (asked: InferRequest, model = 'm', headers = {}): Promise<V2Answer> =>
      infer(shared.server, `/v2/models/${model}/infer`, asked, headers);
    const send = (body: Buffer | string, headers = {}, model = 'm'): Promise<V2Answer> =>
      ask(shared.server.url, `/v2/models/${model}/infer`, { method: 'POST', body, headers });
    const asWay = (name: string): Promise<V2Answer> => call({ inputs: [way(name)] });

    test('takes them in the JSON and as bytes, and answers each output as it was asked for', async () => {
      const outputs = [{ name: 'OUTPUT1', parameters: { binary_data: true } }, { name: 'OUTPUT0' }];
      const { status, headers, json, outputs: got } = await call({ ...SUM, outputs });
      assert.equal(status, 200);
      assert.deepEqual(
        [json['id'], json['model_name'], json['model_version'], headers['content-type']],
        ['call 7', 'm', '1', 'application/octet-stream'],
      );
      assert.deepEqual(got['OUTPUT0'], { ...INT32, data: [11, -18] });
      assert.deepEqual(got['OUTPUT1'], { ...INT32, data: int32(-9, 22) });
      assert.match(String(headers['server-timing']), /^queue;dur=/);
    });

    test('answers all outputs if none are named, as JSON unless the request asks for bytes', async () => {
      for (const outputs of [{}, { outputs: [] }]) {
        const { json, outputs: got, headers } = await call({ ...SUM, ...outputs });
        assert.deepEqual([Object.keys(got), json['id']], [['OUTPUT0', 'OUTPUT1'], 'call 7']);
        assert.deepEqual(got['OUTPUT0']?.data, [11, -18]);
        assert.equal(headers['inference-header-content-length'], undefined);
      }
      const { outputs: got } = await call({ ...SUM, parameters: { binary_data_output: true } });
      assert.deepEqual(got['OUTPUT0']?.data, int32(11, -18));
    });

    test('a version in the path is called by its name', async () => {
      const { outputs } = await infer(shared.server, '/v2/models/m/versions/1/infer?a=1', SUM);
      assert.deepEqual(outputs['OUTPUT0']?.data, [11, -18]);
    });

    test('a body without JSON is the one input of the signature, and the answer is bytes', async () => {
      const { outputs, json } = await send(
        float32(1, 2, 3, 4),
        { 'Inference-Header-Content-Length': '0' },
        'signed',
      );
      assert.deepEqual(outputs['sums'], { shape: [2], datatype: 'FP32', data: float32(3, 7) });
      assert.deepEqual(outputs['count']?.data, Buffer.from(BigInt64Array.of(2n).buffer));
      assert.equal(json['model_name'], 'signed');
    });

    test('lists become what the signature says, and inputs that do not fit it are refused by name', async () => {
      const rows = { name: 'rows', shape: [1, 2], datatype: 'FP32', data: [0.5, 0.25] };
      const { outputs } = await call({ inputs: [rows] }, 'signed');
      assert.deepEqual(
        [outputs['sums'], outputs['count']],
        [
          { shape: [1], datatype: 'FP32', data: [0.75] },
          { shape: [1], datatype: 'INT64', data: [1] },
        ],
      );
      const { status, error } = await call({ inputs: [{ ...rows, datatype: 'FP64' }] }, 'signed');
      assert.equal(status, 400);
      assert.match(String(error), /"rows".*FP32.*FP64|"rows".*FP64.*FP32/);
    });

    test('texts of any bytes come back as they were', async () => {
      const texts = {
        name: 'INPUT0',
        shape: [3],
        datatype: 'BYTES',
        data: strings('he\0llo', '', Buffer.from([255])),
      };
      const { outputs } = await call({ inputs: [texts], parameters: { binary_data_output: true } });
      assert.deepEqual(outputs['OUTPUT0']?.data, texts.data);
      const { status, error } = await call({ inputs: [texts] });
      assert.equal(status, 400);
      assert.match(String(error), /binary_data/);
    });

    for (const [datatype, json, hex] of DATATYPES)
      test(`${datatype} comes back as it was, in JSON and in bytes`, async () => {
        const bytes = Buffer.from(hex, 'hex');
        const head = `{"name":"INPUT0","shape":[2],"datatype":"${datatype}"`;
        const inJson = `{"inputs":[${head},"data":${json}}]`;
        const inBytes = `{"inputs":[${head},"parameters":{"binary_data_size":${bytes.length}}}]`;
        const asBytes = ',"parameters":{"binary_data_output":true}}';
        for (const [body, raw, end] of [
          [inJson, NO_BYTES, '}'],
          [inBytes, bytes, '}'],
          [inJson, NO_BYTES, asBytes],
          [inBytes, bytes, asBytes],
        ] as const) {
          const text = Buffer.from(body + end);
          const answer = await send(Buffer.concat([text, raw]), lengthOf(text.length));
          const { shape, datatype: got, data } = answer.outputs['OUTPUT0'] ?? {};
          assert.deepEqual([shape, got], [[2], datatype], answer.body.toString());
          if (end === '}') assert.ok(answer.body.includes(`"data":${json}`), answer.body.toString());
          else assert.deepEqual(data, bytes);
        }
      });

    test('the app gets the parameters that are not of the protocol', async () => {
      const parameters = {
        priority: 2,
        timeout: 1000,
        binary_data_output: false,
        scale: 0.5,
        mode: 'fast',
        on: true,
      };
      const { outputs } = await call({ inputs: [way('params')], parameters });
      assert.deepEqual(outputs['params']?.data, ['{"mode":"fast","on":true,"scale":0.5}']);
    });

    for (const [why, status, text] of [
      ['throws', 500, /^The model failed on this call\.$/],
      ['refuses', 409, /^not today$/],
      ['streams', 400, /streams its answer; a call of its own route gets it/],
      ['plain', 400, /a body of its own, not with tensors; a call of its own route gets it/],
    ] as const)
      test(`an app that ${why} is ${status}, in the shape of the protocol`, async () => {
        const { status: got, error, headers, json } = await asWay(why);
        assert.equal(got, status);
        assert.match(String(error), text);
        assert.deepEqual([Object.keys(json), headers['content-type']], [['error'], 'application/json']);
      });

    test('an app that chooses status and headers for its tensors keeps them', async () => {
      const { status, headers, outputs } = await asWay('created');
      assert.deepEqual([status, headers['x-own']], [201, 'yes']);
      assert.deepEqual(outputs['y'], { shape: [1], datatype: 'FP64', data: [1.5] });
    });

    test('a custom service is refused with what to do instead', async () => {
      const { status, error } = await call(SUM, 'service');
      assert.equal(status, 400);
      assert.match(
        String(error),
        /^This model is a custom service of Multi Model Server.*\/predictions\/\{model_name\}\.$/,
      );
    });

    test('a Potassium app finds the tensors in its request, whatever the content type', async () => {
      const { status, error } = await call(SUM, 'potassium', { 'content-type': 'application/octet-stream' });
      // It answers with what it got, which is an object of tensors by name, and so no tensor itself.
      assert.equal(status, 500);
      assert.match(String(error), /"got"/);
    });

    test('an app with several routes and no / is refused with their names', async () => {
      const { status, error } = await call(SUM, 'several');
      assert.equal(status, 400);
      assert.match(String(error), /POST \/models\/several\/one, POST \/models\/several\/two\.$/);
    });

    // One of each kind; the readers of both languages refuse every other row of the protocol in their own tests.
    const BAD: readonly (readonly [why: string, body: string, text: RegExp])[] = [
      ['no JSON', '{"inputs":', /^The body is not valid JSON/],
      ['no inputs', '{}', /"inputs"/],
      [
        'an input whose data do not fit its shape',
        '{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"INT32","data":[1,2]}]}',
        /^Input "INPUT0": the shape \[1\] has 1 element, but data has 2/,
      ],
      [
        'bytes without the header',
        '{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"INT32","parameters":{"binary_data_size":4}}]}',
        /needs the header Inference-Header-Content-Length/,
      ],
    ];
    for (const [why, body, text] of BAD)
      test(`${why}: 400`, async () => {
        const { status, error } = await send(body);
        assert.equal(status, 400, String(error));
        assert.match(String(error), text);
      });

    test('an output that the app does not have: 400', async () => {
      const { status, error } = await call({ ...SUM, outputs: [{ name: 'NONE' }] });
      assert.deepEqual([status, /"NONE"/.test(String(error))], [400, true], String(error));
    });

    test('a worker that is killed during a call: an error at once, in the shape of the protocol', async () => {
      const answer = asWay('never');
      await shared.cues.untilNoted('it runs');
      const [worker] = (await shared.server.status()).models[0]?.workers ?? [];
      process.kill(Number(worker?.pid), 'SIGKILL');
      const { status, error, headers } = await answer;
      assert.deepEqual(
        [status, error, headers['content-type']],
        [500, 'The worker died while running this call (signal SIGKILL).', 'application/json'],
      );
      await shared.server.until(({ models: [first] }) => first?.state === 'ready');
      assert.equal((await call(SUM)).status, 200);
    });
  });

  describe('40 concurrent calls of mixed shapes in batches', LIMIT, () => {
    const args = ['--batch-size', '32', '--max-batch-delay', '20ms'];
    const shared = shareHere(app('tensor-batches'), { args });

    test('each gets its own answer; one that is wrong fails alone', async () => {
      const { url } = shared.server;
      const calls = Array.from({ length: 40 }, async (_, i) => {
        const shape = [1 + (i % 3), 1 + (i % 2)];
        const count = (shape[0] as number) * (shape[1] as number);
        const isBytes = i % 2 === 0;
        const numbers = Array.from({ length: count }, (_unused, at) => 100 * i + at);
        if (i % 10 === 5) numbers[0] = -1; // the app refuses it
        const data = isBytes ? float32(...numbers) : numbers;
        const x = { name: 'x', shape: i % 10 === 7 ? [...shape, 2] : shape, datatype: 'FP32', data }; // the format refuses it
        const asked = { id: `call ${i}`, inputs: [x], parameters: { binary_data_output: i % 4 === 0 } };
        return { i, shape, numbers, answer: await infer({ url }, `/v2/models/tensor-batches/infer`, asked) };
      });
      const sizes: number[] = [];
      for (const { i, shape, numbers, answer } of await Promise.all(calls)) {
        if (i % 10 === 5 || i % 10 === 7) {
          assert.deepEqual(
            [answer.status, Object.keys(answer.json)],
            [i % 10 === 5 ? 500 : 400, ['error']],
            `call ${i}`,
          );
          continue;
        }
        const { y, of } = answer.outputs;
        const doubled = numbers.map((number) => 2 * number);
        const data = i % 4 === 0 ? float32(...doubled) : doubled;
        assert.deepEqual([answer.json['id'], y], [`call ${i}`, { shape, datatype: 'FP32', data }]);
        sizes.push(Buffer.isBuffer(of?.data) ? of.data.readInt32LE() : Number(of?.data[0]));
      }
      assert.ok(Math.max(...sizes) > 1, `calls ran together: ${sizes.join(', ')}`);
    });
  });
});

withOneRuntime(({ app }) => {
  describe('bodies and answers that are compressed', LIMIT, () => {
    const shared = shareHere(app('tensors'), { args: ['--compress', '--max-body', '4kb', '--no-page'] });
    const PATH = '/v2/models/tensors/infer';
    const post = (body: Buffer, headers: Record<string, string>): Promise<V2Answer> =>
      ask(shared.server.url, PATH, { method: 'POST', body, headers });

    // The first of its server: a call before it may be counted after its answer.
    test('statistics count the calls since they were first asked for', async () => {
      const statsOf = async (): Promise<Record<string, never>> =>
        (
          (await ask(shared.server.url, '/v2/models/tensors/stats')).json['model_stats'] as Record<
            string,
            never
          >[]
        )[0] ?? {};
      await statsOf();
      const { body, headers } = encoded(SUM);
      await post(body, headers);
      await post(encoded({ inputs: [way('throws')] }).body, {});
      await eventually(
        async () => Number((await statsOf())['execution_count']) === 2,
        60_000,
        () => 'both calls are counted',
      );
      const stats = (await statsOf()) as unknown as Statistics;
      const { success, fail, queue, compute_infer: run, compute_input: input } = stats.inference_stats;
      assert.deepEqual([stats.name, stats.version, stats.inference_count], ['tensors', '1', 1]);
      assert.deepEqual(
        [success.count, fail.count, queue.count, run.count, input],
        [1, 1, 2, 2, { count: 0, ns: 0 }],
      );
      assert.ok(success.ns > 0 && run.ns > 0 && queue.ns > 0);
      assert.deepEqual(
        stats.batch_stats.map((one) => [one.batch_size, one.compute_infer.count]),
        [[1, 2]],
      );
    });

    test('a compressed body with bytes: the header counts the decoded JSON', async () => {
      const { body, headers } = encoded(SUM);
      const { outputs } = await post(gzipSync(body), { ...headers, 'Content-Encoding': 'gzip' });
      assert.deepEqual(outputs['OUTPUT0']?.data, [11, -18]);
    });

    test('a compressed body that grows beyond --max-body: 413, in the shape of the protocol', async () => {
      const body = gzipSync(Buffer.alloc(100_000));
      const { status, error } = await post(body, { 'Content-Encoding': 'gzip' });
      assert.deepEqual([status, error], [413, 'The body is larger than 4 KB (--max-body).'], String(error));
    });

    test('an unknown compression: 415', async () => {
      const { status, json } = await post(Buffer.from('{}'), { 'Content-Encoding': 'br' });
      assert.deepEqual([status, Object.keys(json)], [415, ['error']]);
    });

    test('an answer in JSON is compressed for a client that accepts it', async () => {
      const { body } = encoded({ inputs: [way('large')] });
      const answer = await fetch(shared.server.url + PATH, {
        method: 'POST',
        body,
        headers: { 'Accept-Encoding': 'gzip' },
      });
      assert.equal(answer.headers.get('content-encoding'), 'gzip');
      const { outputs } = (await answer.json()) as { outputs: { data: number[] }[] };
      assert.equal(outputs[0]?.data.length, 4000);
    });
  });
});

interface Duration {
  readonly count: number;
  readonly ns: number;
}

interface Statistics {
  readonly name: string;
  readonly version: string;
  readonly inference_count: number;
  readonly inference_stats: Readonly<
    Record<'success' | 'fail' | 'queue' | 'compute_infer' | 'compute_input', Duration>
  >;
  readonly batch_stats: readonly { readonly batch_size: number; readonly compute_infer: Duration }[];
}
