/** The groups of test files: each file is in one of them, and every name in the list for Node has a file. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filesOf, GROUPS, NODE_DEPENDENT } from '../tools/groups.js';

for (const group of GROUPS)
  test(`the group ${group} has files, and all of them exist`, () => {
    assert.ok(filesOf(group).length > 0);
  });

test('`npm run test:all` runs each file once', () => {
  const files = (['units', 'promises', 'wire', 'processes', 'e2e'] as const).flatMap((group) =>
    filesOf(group),
  );
  assert.deepEqual(files.toSorted(), [...new Set(files)].sort());
  assert.ok(files.includes('house/test-groups.test.ts'));
});

test('the list of what depends on Node names each file once, and none that `npm test` runs anyway', () => {
  const names = Object.values(NODE_DEPENDENT).flat();
  assert.deepEqual(names.toSorted(), [...new Set(names)].sort());
  assert.deepEqual(
    names.filter((name) => !/^(?:e2e|processes|wire)\//.test(name)),
    [],
  );
});
