/** A model of texts without code: its tensors say by name and type whether it can be served. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkedOutput } from '../../../../worker/load/onnx/embedding.js';

const tensor = (name: string, datatype: 'INT64' | 'FP32' | 'FP16') => ({ name, datatype });
const IDS = tensor('input_ids', 'INT64');
const HIDDEN = tensor('last_hidden_state', 'FP32');
const check = (
  inputs: readonly ReturnType<typeof tensor>[],
  ...outputs: ReturnType<typeof tensor>[]
): string => checkedOutput('model.onnx', { inputs, outputs }).name;

test('the vectors are those of the best output that is known', () => {
  const inputs = [IDS, tensor('attention_mask', 'INT64'), tensor('token_type_ids', 'INT64')];
  const [tokens, sentences] = [tensor('token_embeddings', 'FP32'), tensor('sentence_embedding', 'FP32')];
  assert.equal(check(inputs, tensor('logits', 'FP32'), tokens), 'token_embeddings');
  assert.equal(check(inputs, tokens, HIDDEN), 'last_hidden_state');
  assert.equal(check([IDS], HIDDEN, tokens, sentences), 'sentence_embedding');
});

const REFUSED: readonly (readonly [why: string, check: () => string, message: RegExp])[] = [
  [
    'only words',
    () => check([IDS], tensor('logits', 'FP32')),
    /needs an output .*, and the model has logits\./,
  ],
  [
    '16 bits',
    () => check([IDS], tensor('last_hidden_state', 'FP16')),
    /last_hidden_state is FP16; .* FP32\.$/,
  ],
  ['no ids', () => check([tensor('attention_mask', 'INT64')], HIDDEN), /the model takes attention_mask\.$/],
  ['pixels', () => check([IDS, tensor('pixels', 'FP32')], HIDDEN), /the model takes input_ids, pixels\.$/],
];
for (const [why, refused, message] of REFUSED)
  test(`another model is refused by name: ${why}`, () => assert.throws(refused, message));
