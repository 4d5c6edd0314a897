/** docs/security.md: the proofs that it names are there. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ROOT } from '../helpers/server.js';

const PAGE = readFileSync(`${ROOT}docs/security.md`, 'utf8');
/** `e2e/http-keys: title` is a test of test/e2e/http-keys.test.ts. */
const PROOF = /`((?:e2e|processes|supervisor|worker)\/[\w/.-]+): ([^`]+)`/g;

const proofs = [...PAGE.matchAll(PROOF)].map(([, file = '', title = '']) => ({
  file: `test/${file}.test.ts`,
  title,
}));

test('the page of security names existing tests as proofs', () => {
  assert.ok(proofs.length > 20, `${proofs.length} proofs are found`);
});

for (const { file, title } of proofs) {
  test(`${file} has the test "${title}"`, () => {
    assert.ok(existsSync(ROOT + file), file);
    const text = readFileSync(ROOT + file, 'utf8').replaceAll("\\'", "'");
    const isTitle = ["'", '"', '`'].some((quote) => text.includes(quote + title));
    assert.ok(isTitle, title);
  });
}

test('the files of tests that the page names exist', () => {
  const named = [...PAGE.matchAll(/`(test\/[\w/.-]+\.test\.ts)`/g)].map(([, file = '']) => file);
  assert.deepEqual(
    named.filter((file) => !existsSync(ROOT + file) && file !== 'test/folder/file.test.ts'),
    [],
  );
});
