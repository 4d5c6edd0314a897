import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pythonSources } from '../../../../supervisor/runtimes/python/python.js';
import { bounded } from '../../../helpers/bounded.js';

for (const [what, text, path] of [
  ['an import', 'import labels', 'labels.py'],
  ['an import under another name', 'import os, labels as names  # ours', 'labels.py'],
  ['an import inside a function', 'def init():\n    import labels', 'labels.py'],
  ['a module of a package', 'import zoo.cats', 'zoo/cats.py'],
  ['the package of a module', 'import zoo.cats', 'zoo/__init__.py'],
  ['the module of a from-import', 'from labels import NAMES', 'labels.py'],
  ['a module that is imported from a package', 'from zoo import cats', 'zoo/cats.py'],
  ['names over several lines', 'from zoo import (\n    dogs,  # and\n    cats,\n)', 'zoo/cats.py'],
  [
    'a name after a comment with parentheses',
    'from zoo import (\n    dogs,  # (big)\n    cats,\n)',
    'zoo/cats.py',
  ],
  ['an import after one that does not end', 'from zoo import (\nfrom labels import NAMES', 'labels.py'],
  ['a relative import from a module', 'from .labels import NAMES', 'src/labels.py'],
  ['a relative import of a module', 'from . import labels', 'src/labels.py'],
  ['a relative import from a parent package', 'from ..labels import NAMES', 'labels.py'],
  ['a wildcard import', 'from labels import *', 'labels.py'],
] as const) {
  test(`${what} is found in Python`, () => {
    const paths = pythonSources.localImports('src/app.py', text);
    assert.ok(paths.includes(path), paths.join());
  });
}

for (const text of [
  "importlib.import_module('labels')",
  '# import labels',
  'reimport = labels',
  'x = "./labels.json"',
])
  test(`no file is found in ${text}`, () => {
    assert.deepEqual(pythonSources.localImports('src/app.py', text), []);
  });

const MANY = 200_000;

for (const [what, text] of [
  ['blanks after a word', `from${' '.repeat(MANY)}here`],
  ['dots', `from ${'.'.repeat(MANY)}!`],
  ['imports that do not end', 'from a import (\n'.repeat(MANY / 2)],
  ['comments within an import that does not end', `from a import (${'# (a)\n'.repeat(MANY)}`],
] as const)
  test(`a file with very many ${what} is read in time`, () => {
    assert.ok(Array.isArray(bounded(() => pythonSources.localImports('src/app.py', text))));
  });
