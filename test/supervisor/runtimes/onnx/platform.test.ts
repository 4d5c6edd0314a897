import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ownPlatform,
  problemOfPlatform,
  type Platform,
} from '../../../../supervisor/runtimes/onnx/find-onnxruntime.js';

const ROWS: readonly (readonly [platform: Platform, problem: RegExp | null])[] = [
  [{ os: 'linux', arch: 'x64', isMusl: false }, null],
  [{ os: 'linux', arch: 'arm64', isMusl: false }, null],
  [{ os: 'darwin', arch: 'arm64', isMusl: false }, null],
  [
    { os: 'linux', arch: 'x64', isMusl: true },
    /no binaries for musl, .* Alpine Linux\. Use an image with glibc, such as node:24-slim\.$/,
  ],
  [{ os: 'darwin', arch: 'x64', isMusl: false }, /no binaries for Macs with Intel processors\. /],
  [{ os: 'linux', arch: 'ppc64', isMusl: false }, /no binaries for linux on ppc64\. /],
];

for (const [platform, problem] of ROWS)
  test(`${platform.os} ${platform.arch}${platform.isMusl ? ' with musl' : ''} has ${problem === null ? 'binaries' : 'none'}`, () => {
    const said = problemOfPlatform(platform);
    if (problem === null) assert.equal(said, null);
    else assert.match(String(said), problem);
  });

test('this process knows its C library', () => {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  const isMusl = process.platform === 'linux' && header.glibcVersionRuntime === undefined;
  assert.equal(ownPlatform().isMusl, isMusl);
});
