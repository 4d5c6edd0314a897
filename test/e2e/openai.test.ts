/** The paths of a model's task: OpenAI's embeddings, rerank, and the list of models. The official clients have a file of their own. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { fixture } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

interface ErrorBody {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
  };
}

interface Embedded {
  readonly object: string;
  readonly model: string;
  readonly data: readonly { readonly object: string; readonly index: number; readonly embedding: unknown }[];
  readonly usage?: object;
}

async function post<Body>(
  url: string,
  path: string,
  body: unknown,
): Promise<{ status: number; headers: Headers; json: Body }> {
  const reply = await fetch(url + path, { method: 'POST', body: JSON.stringify(body) });
  return { status: reply.status, headers: reply.headers, json: (await reply.json()) as Body };
}

/** The fields of an error that its client reads. */
async function refused(url: string, path: string, body: unknown): Promise<unknown[]> {
  const { status, headers, json } = await post<ErrorBody>(url, path, body);
  const { code, type, param } = json.error;
  return [status, code, type, param, headers.get('x-should-retry')];
}

const BAD = [400, 'SERVE_BAD_BODY', 'invalid_request_error'] as const;
const INVALID = [500, 'SERVE_OUTPUT_INVALID', 'server_error', null, 'false'];

withEachRuntime(({ app }) => {
  describe('an app with the task embedding', { timeout: 240_000 }, () => {
    const shared = shareHere(app('embedding'));
    const embed = (body: object) => post<Embedded>(shared.server.url, '/v1/embeddings', body);

    for (const input of ['plain', 'typed', 'tensor'])
      test(`returns a vector for each text: ${input}`, async () => {
        const { status, json } = await embed({ model: 'any', input: [input, 'b'] });
        assert.equal(status, 200);
        assert.deepEqual([json.object, json.model, json.usage], ['list', 'embedding', undefined]);
        assert.deepEqual(
          json.data.map(({ object, index }) => [object, index]),
          [
            ['embedding', 0],
            ['embedding', 1],
          ],
        );
        const vectors = json.data.map(({ embedding }) =>
          Array.from(Float32Array.from(embedding as number[])),
        );
        const expected = [input.length, 1].map((length) =>
          Array.from(Float32Array.of(length + 0.1, -1, 0.5)),
        );
        assert.deepEqual(vectors, expected);
      });

    test('writes vectors in base64 of 32-bit floats for a client that asks for that', async () => {
      const { json } = await embed({ input: 'text', encoding_format: 'base64' });
      const bytes = Buffer.from(json.data[0]?.embedding as string, 'base64');
      assert.deepEqual(
        [0, 4, 8].map((at) => bytes.readFloatLE(at)),
        [Math.fround(4.1), -1, 0.5],
      );
    });

    test('gets the wished dimensions, and has its tokens in usage', async () => {
      const { json } = await embed({ input: 'counted', dimensions: 2 });
      assert.equal((json.data[0]?.embedding as number[]).length, 2);
      assert.deepEqual(json.usage, { prompt_tokens: 7, total_tokens: 7 });
      const wanted = await refused(shared.server.url, '/v1/embeddings', { input: 'a', dimensions: 9 });
      assert.deepEqual(wanted, [400, 'SERVE_HTTP_ERROR', 'invalid_request_error', 'dimensions', 'false']);
    });

    test('takes a whole number however it is written', async () => {
      const body = '{"input":"a","dimensions":2.0}';
      const { status } = await fetch(`${shared.server.url}/v1/embeddings`, { method: 'POST', body });
      assert.equal(status, 200);
    });

    test('takes null for a field that is left out, as some clients send it', async () => {
      const { status } = await embed({ input: 'a', encoding_format: null, dimensions: null });
      assert.equal(status, 200);
    });

    test('answers 2,048 texts in their order', async () => {
      const texts = Array.from({ length: 2048 }, (_, i) => 'x'.repeat(i % 50));
      const { json } = await embed({ input: texts });
      assert.deepEqual(
        json.data.map(({ embedding }) => Math.round((embedding as number[])[0] as number)),
        texts.map(({ length }) => length),
      );
    });

    const REFUSED: readonly (readonly [body: object, param: string | null])[] = [
      [{ input: [] }, 'input'],
      [{}, 'input'],
      [{ input: ['a', 1] }, 'input'],
      [{ input: [1, 2] }, 'input'],
      [{ input: [[1], [2]] }, 'input'],
      [{ input: 'a', dimensions: 0 }, 'dimensions'],
      [{ input: 'a', dimensions: 1.5 }, 'dimensions'],
      [{ input: 'a', encoding_format: 'binary' }, 'encoding_format'],
      [['a'], null],
    ];
    for (const [body, param] of REFUSED)
      test(`${JSON.stringify(body)} is refused with the name of the field`, async () =>
        assert.deepEqual(await refused(shared.server.url, '/v1/embeddings', body), [...BAD, param, 'false']));

    for (const fault of ['fewer', 'more', 'unequal', 'nan', 'infinity', 'flat', 'texts'])
      test(`an output is refused: ${fault}`, async () =>
        assert.deepEqual(
          await refused(shared.server.url, '/v1/embeddings', { input: [fault, 'b'] }),
          INVALID,
        ));

    test("the app's own refusal keeps its status, and what it throws stays secret", async () => {
      const ways = [refused(shared.server.url, '/v1/embeddings', { input: 'refuse' })];
      assert.deepEqual(await ways[0], [422, 'SERVE_HTTP_ERROR', 'invalid_request_error', null, 'false']);
      const { status, json } = await post<ErrorBody>(shared.server.url, '/v1/embeddings', { input: 'throw' });
      assert.deepEqual([status, json.error.message], [500, 'The model failed on this call.']);
    });

    test('a path of these doors that cannot be read is refused in their form', async () =>
      assert.deepEqual(await refused(shared.server.url, '/v1/models/%ff', {}), [
        ...[400, 'SERVE_BAD_REQUEST', 'invalid_request_error', null, 'false'],
      ]));

    test('its only model takes any name, and the answer has the true one', async () => {
      const { status, headers } = await embed({ model: 'text-embedding-3-small', input: 'a' });
      assert.deepEqual([status, headers.get('x-banana-model')], [200, 'embedding']);
    });

    test('its task is in /status, in V2 metadata and in the OpenAPI document', async () => {
      const read = async (path: string): Promise<Record<string, never>> =>
        (await (await fetch(shared.server.url + path)).json()) as Record<string, never>;
      assert.equal((await read('/status'))['model']!['task'], 'embedding');
      assert.deepEqual((await read('/v2/models/embedding'))['properties'], { task: 'embedding' });
      const paths = Object.keys((await read('/openapi.json'))['paths']!);
      assert.deepEqual(
        ['/v1/embeddings', '/v1/models', '/rerank'].map((path) => paths.includes(path)),
        [true, true, false],
      );
    });

    test('the paths of other tasks name the line that an app needs', async () => {
      const { status, json } = await post<ErrorBody>(shared.server.url, '/v2/rerank', {});
      assert.equal(status, 404);
      assert.match(
        json.error.message,
        /task rerank.*export const task = 'rerank', in Python task = "rerank"/,
      );
    });
  });

  test(
    'a batch function gets the calls of several clients, one input each',
    { timeout: 240_000 },
    async (t) => {
      const args = ['--batch-size', '3', '--max-batch-delay', '2m'];
      const { url, stop } = await startHere(app('embedding'), { t, args });
      const inputs = [['joined'], ['joined', 'a'], ['joined', 'b', 'cd']];
      const all = await Promise.all(
        inputs.map((input) => post<Embedded>(url, '/v1/embeddings', { input, dimensions: 1 })),
      );
      const usage = { prompt_tokens: 3, total_tokens: 3 };
      assert.deepEqual(
        all.map(({ json }) => [json.usage, json.data.map(({ embedding }) => embedding)]),
        [
          [usage, [[6.1]]],
          [usage, [[6.1], [1.1]]],
          [usage, [[6.1], [1.1], [2.1]]],
        ],
      );
      await stop();
    },
  );

  test('an app that exports tokenInput gets numbers of tokens', { timeout: 60_000 }, async (t) => {
    const server = await startHere(app('token-embedding'), { t });
    const vectors = async (input: unknown): Promise<unknown[]> =>
      (await post<Embedded>(server.url, '/v1/embeddings', { input })).json.data.map(
        ({ embedding }) => embedding,
      );
    assert.deepEqual(await vectors([5, 6]), [[2, 5]]);
    assert.deepEqual(await vectors([[5, 6], [7]]), [
      [2, 5],
      [1, 7],
    ]);
    assert.deepEqual(await vectors('abc'), [[3, 0]]);
  });

  describe('an app with the task rerank', { timeout: 240_000 }, () => {
    const shared = shareHere(app('rerank'));
    const documents = ['one a', 'aaa', { text: 'none' }];
    const RESULTS = [
      { index: 1, relevance_score: 3 },
      { index: 0, relevance_score: 1 },
      { index: 2, relevance_score: 0 },
    ];
    interface Ranked {
      readonly model: string;
      readonly results: readonly { readonly index: number }[];
      readonly usage?: object;
    }
    const rank = (body: object, path = '/v1/rerank') => post<Ranked>(shared.server.url, path, body);

    for (const path of ['/v1/rerank', '/rerank', '/v2/rerank'])
      test(`${path} returns the documents by their scores`, async () => {
        const { status, json } = await rank({ model: 'any', query: 'a', documents }, path);
        assert.deepEqual([status, json.model, json.results], [200, 'rerank', RESULTS]);
      });

    test('returns only the best, with their texts, for a client that asks for that', async () => {
      const { json } = await rank({ query: 'a', documents, top_n: 2, return_documents: true });
      assert.deepEqual(json.results, [
        { ...RESULTS[0], document: { text: 'aaa' } },
        { ...RESULTS[1], document: { text: 'one a' } },
      ]);
      assert.deepEqual((await rank({ query: 'counted', documents })).json.usage, { total_tokens: 9 });
    });

    const REFUSED: readonly (readonly [body: object, param: string])[] = [
      [{ documents }, 'query'],
      [{ query: 'a', documents: [] }, 'documents'],
      [{ query: 'a', documents: ['b', 1] }, 'documents'],
      [{ query: 'a', documents, top_n: 0 }, 'top_n'],
      [{ query: 'a', documents, return_documents: 1 }, 'return_documents'],
    ];
    for (const [body, param] of REFUSED)
      test(`${JSON.stringify(body)} is refused with the name of the field`, async () =>
        assert.deepEqual(await refused(shared.server.url, '/rerank', body), [...BAD, param, 'false']));

    test('fewer scores than documents are refused', async () =>
      assert.deepEqual(await refused(shared.server.url, '/rerank', { query: 'fewer', documents }), INVALID));
  });
});

withOneRuntime(({ app }) => {
  describe('a server with several models', { timeout: 240_000 }, () => {
    const args = ['one', 'two'].flatMap((name) => ['--model', `${name}=${app('embedding')}`]);
    args.push('--model', `ranks=${app('rerank')}`);
    const shared = shareHere(null, { args });
    const pick = async (path: string, body: object): Promise<string | unknown[]> => {
      const { status, json } = await post<Embedded & ErrorBody>(shared.server.url, path, body);
      return status === 200 ? json.model : [status, json.error.code, json.error.param];
    };

    test('calls the model that the body names', async () => {
      assert.equal(await pick('/v1/embeddings', { input: 'a', model: 'two' }), 'two');
      assert.equal(await pick('/v1/embeddings', { model: 'one', input: 'a' }), 'one');
    });

    test('never guesses between two models of a task', async () => {
      assert.deepEqual(await pick('/v1/embeddings', { model: 'x', input: 'a' }), [
        404,
        'SERVE_MODEL_NOT_FOUND',
        'model',
      ]);
      assert.deepEqual(await pick('/v1/embeddings', { input: 'a' }), [400, 'SERVE_BAD_REQUEST', 'model']);
      const late = { input: 'a'.repeat(70_000), model: 'one' };
      assert.deepEqual(await pick('/v1/embeddings', late), [400, 'SERVE_BAD_REQUEST', 'model']);
    });

    test('calls the only model of a task by any name but that of a model without it', async () => {
      const body = { query: 'a', documents: ['a'] };
      assert.equal(await pick('/rerank', { model: 'rerank-v4', ...body }), 'ranks');
      assert.equal(await pick('/rerank', body), 'ranks');
      assert.deepEqual(await pick('/rerank', { model: 'one', ...body }), [404, 'SERVE_NOT_FOUND', null]);
    });

    test('lists its models for clients of OpenAI and of KServe', async () => {
      const read = async (path: string): Promise<[number, Record<string, unknown>]> => {
        const reply = await fetch(`${shared.server.url}/v1/models${path}`);
        return [reply.status, (await reply.json()) as Record<string, unknown>];
      };
      const [status, { object, data, models }] = await read('');
      assert.deepEqual([status, object, models], [200, 'list', ['one', 'two', 'ranks']]);
      const created = (data as readonly { readonly created: number }[])[0]?.created;
      const two = { id: 'two', object: 'model', created, owned_by: 'banana-serve' };
      assert.deepEqual((data as object[])[1], two);
      assert.deepEqual(await read('/two'), [200, { ...two, name: 'two', ready: true }]);
      const [missing, { error }] = await read('/a%2Fb');
      assert.deepEqual([missing, (error as { code: string }).code], [404, 'SERVE_MODEL_NOT_FOUND']);
    });
  });

  test('an app without a task is refused with the line to add', { timeout: 60_000 }, async (t) => {
    const server = await startHere(fixture('echoes.mjs'), { t });
    const { status, json } = await post<ErrorBody>(server.url, '/v1/embeddings', { input: 'a' });
    assert.equal(status, 404);
    assert.match(json.error.message, /Add this line to its app: export const task = 'embedding'/);
  });
});
