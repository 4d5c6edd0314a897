import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { findApp } from '../../../supervisor/plan/app-path.js';

function folder(t: TestContext, files: readonly string[]): string {
  const path = mkdtempSync(join(tmpdir(), 'banana-path-'));
  t.after(() => rmSync(path, { recursive: true }));
  for (const name of files) {
    mkdirSync(name.endsWith('/') ? join(path, name) : dirname(join(path, name)), { recursive: true });
    if (!name.endsWith('/')) writeFileSync(join(path, name), '');
  }
  return path;
}

const FOUND: readonly (readonly [given: string | null, files: readonly string[], app: string])[] = [
  ['./my.ts', ['my.ts'], 'my.ts'],
  ['sub/my.mjs', ['sub/my.mjs'], 'sub/my.mjs'],
  ['sub', ['sub/app.js'], 'sub/app.js'],
  ['sub', ['sub/service.mjs', 'sub/index.js'], 'sub/service.mjs'],
  ['sub', ['sub/service.ts', 'sub/app.cjs'], 'sub/app.cjs'],
  ['.', ['app.cts'], 'app.cts'],
  [null, ['app.ts', 'app.js'], 'app.ts'],
  [null, ['app.cjs', 'app.mjs'], 'app.mjs'],
  [null, ['app.py', 'main.py'], 'app.py'],
  [null, ['app.py', 'app.cjs'], 'app.cjs'],
  ['sub', ['sub/service.py', 'sub/setup.py'], 'sub/service.py'],
  ['main.py', ['main.py', 'app.ts'], 'main.py'],
  ['m.onnx', ['m.onnx', 'app.ts'], 'm.onnx'],
  // A folder without code is served by its only model.
  ['sub', ['sub/m.onnx', 'sub/m.onnx.data', 'sub/labels.json'], 'sub/m.onnx'],
  [null, ['m.onnx'], 'm.onnx'],
  ['sub', ['sub/m.onnx', 'sub/app.ts'], 'sub/app.ts'],
];

for (const [given, files, app] of FOUND) {
  test(`${String(given)} in a folder with ${files.join(', ')} finds ${app}, as an absolute path`, (t) => {
    const base = folder(t, files);
    assert.equal(findApp(given, base), join(base, app));
  });
}

test('an absolute path and a link are returned unchanged', (t) => {
  const base = folder(t, ['real.ts']);
  symlinkSync('real.ts', join(base, 'link.ts'));
  assert.equal(findApp(join(base, 'real.ts'), '/'), join(base, 'real.ts'));
  assert.equal(findApp('link.ts', base), join(base, 'link.ts'));
});

const REFUSED: readonly (readonly [given: string | null, files: readonly string[], message: RegExp])[] = [
  [
    null,
    ['main.ts'],
    /^no app was given, and there is no app\.ts, app\.mts, .* in \/.*\. Run: banana-serve \.\/app\.ts$/,
  ],
  ['ap.ts', ['app.ts'], /^ap\.ts: no such file\. Did you mean app\.ts\?$/],
  ['app.js', ['app.ts'], /^app\.js: no such file\. Did you mean app\.ts\?$/],
  ['sub/ap.ts', ['sub/app.ts'], /^sub\/ap\.ts: no such file\. Did you mean sub\/app\.ts\?$/],
  ['nothing-like-it.ts', ['app.ts'], /^nothing-like-it\.ts: no such file\.$/],
  ['nope/app.ts', ['app.ts'], /^nope\/app\.ts: no such file\. The folder nope does not exist either\.$/],
  [
    'sub/my.py:Cats',
    ['sub/my.py'],
    /^sub\/my\.py:Cats: an app is given by its file alone, sub\/my\.py\. .*: --model-store sub --models my\.py --default-handler my\.py:Cats$/,
  ],
  ['gone.py:Cats', ['my.py'], /^gone\.py:Cats: no such file\.$/],
  [
    'sub',
    ['sub/'],
    /^sub is a folder without app\.ts, app\.mts, app\.cts, app\.js, app\.mjs, app\.cjs, app\.py, and without a service\.ts\.$/,
  ],
  ['sub', ['sub/m.onnx', 'sub/train.py'], /a service\.ts\. To serve m\.onnx without code, name the file\.$/],
  ['sub', ['sub/a.onnx', 'sub/b.onnx'], / To serve a\.onnx or b\.onnx without code, name the file\.$/],
  [
    'model.pkl',
    ['model.pkl'],
    /: an app is one of \.ts \.mts \.cts \.js \.mjs \.cjs \.py \.onnx, not \.pkl\.$/,
  ],
  ['README', ['README'], /not a file without extension\.$/],
];

for (const [given, files, message] of REFUSED) {
  test(`${String(given)} in a folder with ${files.join(', ')} is refused with advice`, (t) => {
    assert.throws(() => findApp(given, folder(t, files)), { code: 'SERVE_CONFIG', message });
  });
}

const LINKS: readonly (readonly [link: string, target: string])[] = [
  ['moved.py', 'models/app.py'],
  ['round.ts', 'round.ts'],
  ['chain.ts', 'round.ts'],
  ['far.py', 'moved.py'],
  ['beyond.py', 'linked/app.py'],
  ['linked/app.py', '../gone.py'],
];

for (const [given, message] of [
  ['moved.py', 'moved.py is a link to models/app.py, which does not exist.'],
  ['round.ts', 'round.ts is a link to round.ts, which leads back to itself.'],
  ['chain.ts', 'chain.ts is a link to round.ts, which leads back to itself.'],
  ['far.py', 'far.py is a link to moved.py, which is a link to models/app.py, which does not exist.'],
  ['beyond.py', 'beyond.py is a link to linked/app.py, which is a link to ../gone.py, which does not exist.'],
  ['linked', 'linked/app.py is a link to ../gone.py, which does not exist.'],
] as const) {
  test(`${given}, which leads nowhere, is refused with each link on the way`, (t) => {
    const base = folder(t, ['app.ts', 'linked/']);
    for (const [link, target] of LINKS) symlinkSync(target, join(base, link));
    assert.throws(() => findApp(given, base), { code: 'SERVE_CONFIG', message });
  });
}
