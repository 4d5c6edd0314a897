import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asClause, asSentence } from '../../../protocol/text/sentences.js';

for (const [text, sentence, clause] of [
  ['no such file', 'no such file.', 'no such file'],
  ['no such file.', 'no such file.', 'no such file'],
  ['did you mean app.ts?', 'did you mean app.ts?', 'did you mean app.ts?'],
  ['gone!', 'gone!', 'gone!'],
  ['still loading…', 'still loading…', 'still loading…'],
  ['still loading...', 'still loading...', 'still loading...'],
] as const) {
  test(`${text} ends with one mark as a sentence, and without a full stop as a clause`, () => {
    assert.equal(asSentence(text), sentence);
    assert.equal(asClause(text), clause);
  });
}
