import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { findOptimized, optimizeAdvice, type FoundGraph } from '../../../../supervisor/runtimes/onnx/onnx.js';
import {
  folderNameOf,
  keyOf,
  recordOf,
  recordPath,
  modelFacts,
} from '../../../../supervisor/runtimes/onnx/optimized/optimized-files.js';
import { identity, writeOnnx } from '../../../helpers/onnx-model.js';
import { appFolder } from '../../../worker/app-folder.js';

const VERSION = '1.30.0';

interface Place {
  readonly model: string;
  readonly graph: string;
  find(version?: string, isUnpacked?: boolean): Promise<FoundGraph>;
}

/** A model with what looks like its optimized graph, beside it or in the cache. */
async function placed(t: { after(undo: () => void): void }, where: 'beside' | 'cache'): Promise<Place> {
  const folder = appFolder(t, {});
  const model = writeOnnx(join(folder, 'm.onnx'), identity('FP32'));
  const cache = join(folder, 'cache');
  const place = where === 'beside' ? `${model}.optimized` : join(cache, 'banana-serve/onnx');
  const graphFolder = join(place, folderNameOf(keyOf(await modelFacts(model), VERSION)));
  mkdirSync(graphFolder, { recursive: true });
  const graph = join(graphFolder, 'model.onnx');
  writeFileSync(graph, 'graph');
  writeFileSync(join(graphFolder, 'weights.bin'), 'weights');
  writeFileSync(recordPath(graphFolder), JSON.stringify(await recordOf(graphFolder)));
  const env = { XDG_CACHE_HOME: cache };
  return {
    model,
    graph,
    find: (version = VERSION, isUnpacked = false) => findOptimized(model, version, env, isUnpacked),
  };
}

for (const where of ['beside', 'cache'] as const)
  test(`the graph of a model is found where it lies: ${where}`, async (t) => {
    const { model, graph, find } = await placed(t, where);
    const found = await find();
    assert.deepEqual([found.graph, found.why], [graph, null]);
    assert.deepEqual(
      found.madeOf.map(({ path }) => path),
      [model],
    );
  });

const BROKEN: readonly (readonly [what: string, harm: (place: Place) => void, why: RegExp])[] = [
  [
    'a byte of its weights is another',
    ({ graph }) => writeFileSync(join(dirname(graph), 'weights.bin'), 'weighty'),
    /: weights\.bin is damaged\. Remove it$/,
  ],
  [
    'its weights are gone',
    ({ graph }) => rmSync(join(dirname(graph), 'weights.bin')),
    /: weights\.bin is damaged\. /,
  ],
  [
    'its graph is a folder',
    ({ graph }) => (rmSync(graph), mkdirSync(graph)),
    /: it cannot be read: .*model\.onnx is no file/,
  ],
  ['it has no record', ({ graph }) => rmSync(recordPath(dirname(graph))), /: it cannot be read: ENOENT/],
  [
    'the model is another now',
    ({ model }) => void writeOnnx(model, identity('FP64')),
    /m\.onnx\.optimized was made of another model than is there now$/,
  ],
  [
    'it was made for another processor',
    ({ graph }) => renameSync(dirname(graph), dirname(graph).replace(/cpu-.*/, `cpu-${'0'.repeat(16)}`)),
    /m\.onnx\.optimized was made for another processor$/,
  ],
];
for (const [what, harm, why] of BROKEN)
  test(`the original is served, with the reason, if ${what}`, async (t) => {
    const place = await placed(t, 'beside');
    harm(place);
    const found = await place.find();
    assert.equal(found.graph, null);
    assert.match(found.why ?? '', why);
    const [line = ''] = optimizeAdvice(place.model, found, null, 1);
    assert.ok(line.endsWith(`; the original is served. Run: banana-serve optimize ${place.model}`), line);
  });

test('a graph for another onnxruntime is not used, and its version is named', async (t) => {
  const { find } = await placed(t, 'beside');
  const { graph, why } = await find('1.31.0');
  assert.equal(graph, null);
  assert.match(why ?? '', /made for onnxruntime-node 1\.30\.0, and this is 1\.31\.0$/);
});

test('a folder beside a model of an archive does not count, because its author is not the operator', async (t) => {
  const { find } = await placed(t, 'beside');
  const { graph, why } = await find(VERSION, true);
  assert.deepEqual([graph, why], [null, null]);
});
