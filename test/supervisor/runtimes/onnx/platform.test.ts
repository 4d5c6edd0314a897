import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isLinkedWithMusl,
  problemOfPlatform,
} from '../../../../supervisor/runtimes/onnx/find-onnxruntime.js';

const ROWS: readonly (readonly [platform: Parameters<typeof problemOfPlatform>, problem: RegExp | null])[] = [
  [['linux', 'x64', false], null],
  [['linux', 'arm64', false], null],
  [['darwin', 'arm64', false], null],
  [
    ['linux', 'x64', true],
    /no binaries for musl, .* Alpine Linux\. Use an image with glibc, such as node:24-slim\.$/,
  ],
  [['darwin', 'x64', false], /no binaries for Macs with Intel processors\. /],
  [['linux', 'ppc64', false], /no binaries for linux on ppc64\. /],
];

for (const [[os, arch, isMusl], problem] of ROWS)
  test(`${os} ${arch}${isMusl ? ' with musl' : ''} has ${problem === null ? 'binaries' : 'none'}`, () => {
    const said = problemOfPlatform(os, arch, isMusl);
    if (problem === null) assert.equal(said, null);
    else assert.match(String(said), problem);
  });

test('this process knows its C library', () => {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  const isMusl = process.platform === 'linux' && header.glibcVersionRuntime === undefined;
  assert.equal(process.platform === 'linux' && isLinkedWithMusl(), isMusl);
});
