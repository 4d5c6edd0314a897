/** Tests start Python without its shim, as it is found behind it. */
import assert from 'node:assert/strict';
import { chmodSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { pathPastShim } from '../../tools/python-shim.js';
import { appFolder } from '../../worker/app-folder.js';

/** A PATH whose python3 is this script. */
function pathOf(t: TestContext, script: string): string {
  const folder = appFolder(t, { python3: script });
  chmodSync(join(folder, 'python3'), 0o755);
  return `${folder}:/bin`;
}

test('the folder of the interpreter behind a shim comes first', (t) => {
  const behind = appFolder(t, { python3: '' });
  const path = pathOf(t, `#!/bin/sh\necho ${join(behind, 'python3')}\n`);
  assert.equal(pathPastShim(path), `${behind}:${path}`);
});

const UNCHANGED: readonly (readonly [what: string, path: (t: TestContext) => string])[] = [
  ['without Python', (t) => appFolder(t, {})],
  ['with a shim that fails', (t) => pathOf(t, '#!/bin/sh\nexit 1\n')],
  [
    'with an interpreter that is a program',
    (t) => {
      const folder = appFolder(t, {});
      symlinkSync(process.execPath, join(folder, 'python3'));
      return folder;
    },
  ],
];
for (const [what, pathFor] of UNCHANGED)
  test(`a PATH ${what} stays as it is`, (t) => {
    const path = pathFor(t);
    assert.equal(pathPastShim(path), path);
  });
