import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodeSources } from '../../../../supervisor/runtimes/node.js';
import { bounded } from '../../../helpers/bounded.js';

for (const [what, text, path] of [
  ['an import', `import { a } from './a.mjs';`, 'src/a.mjs'],
  ['an import for its effects', `import "./a.mjs";`, 'src/a.mjs'],
  ['a dynamic import', 'await import(`./a.mjs`)', 'src/a.mjs'],
  ['an export of another file', `export * from '../a.mjs'`, 'a.mjs'],
  ['an import over several lines', `import {\n  a,\n} from\n  './a.mjs';`, 'src/a.mjs'],
  ['a dynamic import over several lines', "await import(\n  './a.mjs',\n)", 'src/a.mjs'],
  ['a require', `const a = require('./a.json')`, 'src/a.json'],
  ['a URL of a file beside it', `readFileSync(new URL('./labels.json', import.meta.url))`, 'src/labels.json'],
  ['the compiled name of TypeScript', `import './a.js'`, 'src/a.ts'],
  ['a name without its extension', `import './a'`, 'src/a.ts'],
  ['a folder', `import './a'`, 'src/a/index.js'],
  ['a name with a dot', `import './a.b'`, 'src/a.b.ts'],
] as const) {
  test(`${what} is found`, () => {
    assert.ok(
      nodeSources.localImports('src/app.ts', text).includes(path),
      nodeSources.localImports('src/app.ts', text).join(),
    );
  });
}

for (const text of [`import 'package'`, `import 'node:fs'`, `from('/absolute.mjs')`, `const a = './a.mjs';`])
  test(`no other file is found in ${text}`, () => {
    assert.deepEqual(nodeSources.localImports('src/app.ts', text), []);
  });

test('a file with very many blanks after a word is read in time', () => {
  const text = `from${' '.repeat(500_000)}here`;
  assert.deepEqual(
    bounded(() => nodeSources.localImports('src/app.ts', text)),
    [],
  );
});
