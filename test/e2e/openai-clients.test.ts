/** The published clients of OpenAI, Vercel's AI SDK, LangChain and Cohere, as they are. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { OpenAIEmbeddings } from '@langchain/openai';
import { CohereClient, CohereClientV2 } from 'cohere-ai';
import OpenAI, { APIError, UnprocessableEntityError } from 'openai';
import { needs } from '../helpers/needs.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { fixture } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const run = promisify(execFile);

const TEXTS = ['one', 'four5'];
const VECTORS = [
  [3.1, -1, 0.5],
  [5.1, -1, 0.5],
];

/** Counts what the client sends. */
const PYTHON = `
import json, sys
import openai
sent = []
http = openai.DefaultHttpxClient(event_hooks={"request": [sent.append]})
client = openai.OpenAI(base_url=sys.argv[1], api_key="any", http_client=http)
vectors = [one.embedding for one in client.embeddings.create(model="any", input=["one", "four5"]).data]
try:
    client.embeddings.create(model="any", input=["throw"])
except openai.APIStatusError as error:
    status = error.status_code
vectors = [[round(number, 3) for number in vector] for vector in vectors]
print(json.dumps({"vectors": vectors, "status": status, "sent": len(sent)}))
`;

/** Base64 carries 32 bits of each number. */
function rounded(vectors: readonly (readonly number[])[]): number[][] {
  return vectors.map((vector) => vector.map((number) => Math.round(number * 1000) / 1000));
}

withEachRuntime(({ app }) => {
  describe('a model with the task embedding', { timeout: 240_000 }, () => {
    const shared = shareHere(app('embedding'));
    const baseURL = (): string => `${shared.server.url}/v1`;
    const openai = (): OpenAI => new OpenAI({ baseURL: baseURL(), apiKey: 'any' });

    for (const format of [undefined, 'float', 'base64'] as const)
      test(`openai gets its vectors with encoding_format ${format}`, async () => {
        const wish = format === undefined ? {} : { encoding_format: format };
        const { data, model } = await openai().embeddings.create({ model: 'any', input: TEXTS, ...wish });
        assert.equal(model, 'embedding');
        const vectors = data.map(({ embedding }) => embedding as unknown);
        if (format !== 'base64') assert.deepEqual(rounded(vectors as number[][]), VECTORS);
        else assert.ok(vectors.every((vector) => typeof vector === 'string'));
      });

    test('openai lists the model, and finds it', async () => {
      const names: string[] = [];
      for await (const { id } of openai().models.list()) names.push(id);
      assert.deepEqual(names, ['embedding']);
      assert.equal((await openai().models.retrieve('embedding')).owned_by, 'banana-serve');
    });

    test('openai gets errors with their field, and never repeats a call that has begun', async () => {
      let sent = 0;
      const counting: typeof fetch = (...args) => {
        sent += 1;
        return fetch(...args);
      };
      const client = new OpenAI({ baseURL: baseURL(), apiKey: 'any', fetch: counting });
      const wrong = (input: string[]) => client.embeddings.create({ model: 'any', input });
      await assert.rejects(wrong([]), (error) => error instanceof APIError && error.param === 'input');
      await assert.rejects(wrong(['throw']), (error) => error instanceof APIError && error.status === 500);
      assert.equal(sent, 2);
    });

    const skip = needs('python-openai');
    test("Python's openai gets its vectors, and repeats no call that has begun", { skip }, async () => {
      const { stdout } = await run('python3', ['-c', PYTHON, baseURL()]);
      assert.deepEqual(JSON.parse(stdout), { vectors: VECTORS, status: 500, sent: 2 });
    });

    test('the AI SDK gets its vectors', async () => {
      const provider = createOpenAICompatible({ name: 'banana', baseURL: baseURL() });
      const { embeddings } = await provider.textEmbeddingModel('any').doEmbed({ values: TEXTS });
      assert.deepEqual(rounded(embeddings), VECTORS);
    });

    test('LangChain gets its vectors', async () => {
      const configuration = { baseURL: baseURL() };
      const embeddings = new OpenAIEmbeddings({ apiKey: 'any', model: 'any', maxRetries: 0, configuration });
      assert.deepEqual(rounded(await embeddings.embedDocuments(TEXTS)), VECTORS);
    });
  });

  describe('a model with the task rerank', { timeout: 240_000 }, () => {
    const shared = shareHere(app('rerank'));
    for (const Client of [CohereClient, CohereClientV2])
      test(`${Client.name} gets the documents by their scores`, async () => {
        const client = new Client({ token: 'any', environment: shared.server.url });
        const documents = ['none', 'aa', 'a'];
        const { results } = await client.rerank({ model: 'any', query: 'a', documents, topN: 2 });
        assert.deepEqual(
          results.map(({ index, relevanceScore }) => [index, relevanceScore]),
          [
            [1, 2],
            [2, 1],
          ],
        );
      });
  });
});

test('openai gets 422 for an input that does not fit the schema, with its place, and 500 for such an answer', async (t) => {
  const server = await startHere(fixture('embedding-schemas.mjs'), { t });
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 });
  const embed = (...input: string[]): Promise<unknown> =>
    client.embeddings.create({ model: 'any', input, encoding_format: 'float' });
  const errorOf = async (promise: Promise<unknown>): Promise<APIError> => {
    const error: unknown = await promise.catch((thrown: unknown) => thrown);
    assert.ok(error instanceof APIError, String(error));
    return error;
  };
  await embed('fits');
  const wrong = await errorOf(embed('fits', 'is not short'));
  assert.ok(wrong instanceof UnprocessableEntityError);
  assert.deepEqual(
    [wrong.code, wrong.type, wrong.param],
    ['SERVE_INPUT_INVALID', 'invalid_request_error', 'input.1'],
  );
  assert.match(wrong.message, /input\.1: is too long/);
  assert.deepEqual((wrong.error as { issues: object[] }).issues, [
    { path: ['input', 1], message: 'is too long' },
  ]);
  const output = await errorOf(embed('wrong'));
  assert.deepEqual([output.status, output.code], [500, 'SERVE_OUTPUT_INVALID']);
  await server.stop();
});
