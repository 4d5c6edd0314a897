/** Parses the texts of errors; `load-app.test.ts` has the errors of real files. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainImportError } from '../../../worker/load/explain-load-error.js';
import { bounded } from '../../helpers/bounded.js';

const MANY = 300_000;

for (const [what, text] of [
  ['blank lines', '\n'.repeat(MANY)],
  ['lines that look like the places of syntax errors', '/app.js:1\n'.repeat(MANY)],
] as const) {
  test(`an error of very many ${what} is explained`, () => {
    const { message } = bounded(() => explainImportError('/app.js', new Error(text)));
    assert.match(message, /importing the app threw: /);
  });
}

test('the place of a syntax error is found above it, whatever stands between them', () => {
  const text =
    'file:///app%20s/a.mjs:3\nconst a = ;\n          ^\n\nSyntaxError: Unexpected token\n    at node:1:2';
  const thrown = Object.assign(new Error('no'), { stack: text });
  assert.equal(
    explainImportError('/x.mjs', thrown).message,
    '/app s/a.mjs:3: syntax error: Unexpected token',
  );
});
