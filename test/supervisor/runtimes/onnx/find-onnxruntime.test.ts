import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { findOnnxruntime } from '../../../../supervisor/runtimes/onnx/find-onnxruntime.js';
import { appFolder } from '../../../worker/app-folder.js';

/** A folder with a model, and with packages at these paths. */
function folderOf(t: TestContext, packages: Readonly<Record<string, string>>): string {
  const files = Object.entries(packages).flatMap(([path, version]): [string, string][] => [
    [`${path}/package.json`, JSON.stringify({ name: 'onnxruntime-node', version, main: 'dist/index.js' })],
    [`${path}/dist/index.js`, ''],
  ]);
  return appFolder(t, { 'models/m.onnx': '', 'start/any': '', ...Object.fromEntries(files) });
}

const BESIDE_MODEL = 'models/node_modules/onnxruntime-node';
const AT_START = 'start/node_modules/onnxruntime-node';

const FOUND: readonly (readonly [
  packages: Readonly<Record<string, string>>,
  isUnpacked: boolean,
  path: string,
])[] = [
  [{ [BESIDE_MODEL]: '1.30.0', [AT_START]: '1.29.0' }, false, BESIDE_MODEL],
  [{ 'node_modules/onnxruntime-node': '2.0.0' }, false, 'node_modules/onnxruntime-node'],
  [{ [BESIDE_MODEL]: '1.30.0', [AT_START]: '1.22.0' }, true, AT_START],
  [{ [AT_START]: '1.30.0' }, false, AT_START],
];

for (const [packages, isUnpacked, path] of FOUND)
  test(`of ${Object.keys(packages).join(' and ')} a model ${isUnpacked ? 'of an archive ' : ''}gets ${path}`, (t) => {
    const folder = folderOf(t, packages);
    const { main: found } = findOnnxruntime(join(folder, 'models/m.onnx'), {
      isUnpacked,
      startFolder: join(folder, 'start'),
    });
    assert.equal(found, join(folder, path, 'dist/index.js'));
  });

test('the one beside this package is the last choice', (t) => {
  const folder = folderOf(t, {});
  const { main: found } = findOnnxruntime(join(folder, 'models/m.onnx'), {
    isUnpacked: false,
    startFolder: folder,
  });
  assert.match(found, /node_modules\/onnxruntime-node\/dist\/index\.js$/);
});

test('one that is too old is refused with the command', (t) => {
  const folder = folderOf(t, { [BESIDE_MODEL]: '1.21.1' });
  const model = join(folder, 'models/m.onnx');
  assert.throws(() => findOnnxruntime(model, { isUnpacked: false, startFolder: folder }), {
    code: 'SERVE_CONFIG',
    message: `${model}: serving a .onnx file needs onnxruntime-node 1.22 or newer, and ${join(folder, BESIDE_MODEL)} is 1.21.1. Run: npm install onnxruntime-node@latest`,
  });
});

test('without any it is refused with the command', (t) => {
  const folder = folderOf(t, {});
  const model = join(folder, 'models/m.onnx');
  const places = { isUnpacked: false, startFolder: folder };
  assert.throws(() => findOnnxruntime(model, places, folder), {
    code: 'SERVE_CONFIG',
    message: `${model}: serving a .onnx file needs the package onnxruntime-node, which is not installed. Run: npm install onnxruntime-node`,
  });
});
