import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { readModelWords, type ModelWords } from '../../../../worker/load/onnx/model-words.js';
import { identity, writeOnnx, type OnnxGraph, type OnnxModel } from '../../../helpers/onnx-model.js';
import { appFolder } from '../../app-folder.js';

function wordsOf(t: TestContext, model: OnnxModel): ModelWords {
  return readModelWords(writeOnnx(join(appFolder(t, {}), 'm.onnx'), model));
}

test('shapes are read as they are declared; none is no scalar', (t) => {
  const { inputs, outputs } = wordsOf(t, {
    ...identity('FP32'),
    // Behind more than one piece of the file.
    weights: [{ name: 'w', type: 'FP32', shape: [50_000], bytes: new Uint8Array(200_000).fill(0xff) }],
    inputs: [
      { name: 'image', type: 'FP32', shape: ['batch', 3, '', 8] },
      { name: 'scalar', type: 'INT64', shape: [] },
      { name: 'any', type: 'INT64', shape: null },
    ],
    outputs: [{ name: 'y', type: 'FP32', shape: ['batch'] }],
  });
  assert.deepEqual(
    [...inputs],
    [
      ['image', ['batch', 3, '', 8]],
      ['scalar', []],
    ],
  );
  assert.deepEqual([...outputs], [['y', ['batch']]]);
});

test('operators are found in branches and functions, too', (t) => {
  const branch = (op: string, nested: OnnxGraph | null): OnnxGraph => ({
    inputs: [],
    outputs: [{ name: 'z', type: 'FP32', shape: ['n'] }],
    nodes: [
      { op, inputs: ['x'], outputs: ['z'], attributes: nested === null ? {} : { body: { graph: nested } } },
    ],
  });
  const { operators, inputs } = wordsOf(t, {
    ...identity('FP32'),
    nodes: [
      { op: 'Found', domain: 'own', inputs: ['x'], outputs: ['found'] },
      {
        op: 'If',
        inputs: ['found'],
        outputs: ['y'],
        attributes: { then_branch: { graph: branch('Loop', branch('Unique', null)) } },
      },
    ],
    functions: [
      {
        name: 'Found',
        inputs: ['x'],
        outputs: ['y'],
        nodes: [{ op: 'NonZero', inputs: ['x'], outputs: ['y'] }],
      },
    ],
  });
  assert.deepEqual([...operators].sort(), ['Found', 'If', 'Loop', 'NonZero', 'Unique']);
  assert.deepEqual([...inputs.keys()], ['x'], 'those of branches are none of the model');
});
