/** A folder of texts without code, by `--task embedding`: the model of the example, made of bert-tiny. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ROOT, runCommand } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const TINY = `${ROOT}examples/fill-mask/models/bert-tiny`;

describe('a model of texts without code', { timeout: 240_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'banana-embedding-'));
  before(() => {
    execFileSync(process.execPath, ['--import', 'tsx', 'examples/embedding/make-model.ts', folder], {
      cwd: ROOT,
    });
    mkdirSync(join(folder, 'onnx'));
    renameSync(join(folder, 'model.onnx'), join(folder, 'onnx/model.onnx'));
  });
  after(() => rmSync(folder, { recursive: true }));

  const shared = shareHere(folder, { args: ['--task', 'embedding'] });
  const embed = async (
    input: unknown,
  ): Promise<{ status: number; vectors: number[][]; usage: unknown; param: unknown }> => {
    const body = JSON.stringify({ model: 'any', input });
    const reply = await fetch(`${shared.server.url}/v1/embeddings`, { method: 'POST', body });
    const {
      data = [],
      usage,
      error,
    } = (await reply.json()) as {
      data?: { embedding: number[] }[];
      usage?: unknown;
      error?: { param: unknown };
    };
    return {
      status: reply.status,
      vectors: data.map(({ embedding }) => embedding),
      usage,
      param: error?.param,
    };
  };

  test('returns vectors of the length 1, the same in company as alone', async () => {
    const texts = ['a small dog', 'he plays the piano and the violin', 'a dog'];
    const { status, vectors, usage } = await embed(texts);
    assert.equal(status, 200);
    assert.deepEqual(
      vectors.map((vector) => [vector.length, Math.hypot(...vector).toFixed(4)]),
      Array(3).fill([128, '1.0000']),
    );
    for (const [i, text] of texts.entries()) {
      const alone = (await embed(text)).vectors[0] as number[];
      assert.ok(product(alone, vectors[i] as number[]) > 0.9999, text);
    }
    const [small, piano, dog] = vectors as [number[], number[], number[]];
    assert.ok(product(small, dog) > product(piano, dog));
    assert.ok((usage as { total_tokens: number }).total_tokens > 12);
  });

  test('refuses a text that is longer than the model reads', async () => {
    const { status, param } = await embed(['short', 'dog '.repeat(100)]);
    assert.deepEqual([status, param], [400, 'input']);
  });

  test('answers more texts than run at a time, in their order', async () => {
    const texts = Array.from({ length: 100 }, (_, i) => 'dog '.repeat(1 + (i % 7)));
    const { vectors } = await embed(texts);
    assert.ok(product(vectors[3] as number[], vectors[10] as number[]) > 0.9999);
    assert.ok(product(vectors[3] as number[], vectors[11] as number[]) < 0.9999);
  });
});

test(
  'a model that only predicts words is refused by the name of its output',
  { timeout: 120_000 },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'banana-logits-'));
    t.after(() => rmSync(folder, { recursive: true }));
    cpSync(`${TINY}/onnx/model.onnx`, join(folder, 'model.onnx'));
    cpSync(`${TINY}/tokenizer.json`, join(folder, 'tokenizer.json'));
    const { ended, stderr } = runCommand([folder, '--task', 'embedding', '--port', '0'], { t });
    assert.equal((await ended).code, 3);
    assert.match(
      stderr(),
      /needs an output sentence_embedding, last_hidden_state, token_embeddings, and the model has logits/,
    );
  },
);

function product(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, one, i) => sum + one * (b[i] ?? 0), 0);
}
