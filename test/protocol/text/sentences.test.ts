import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { asClause, asSentence, suggest } from '../../../protocol/text/sentences.js';

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

const WORDS = ['port', 'host', 'workers', 'queueSize', 'runTimeout'];

const ROWS: readonly (readonly [typed: string, meant: string | null, why: string])[] = [
  ['prt', 'port', 'a letter left out'],
  ['portt', 'port', 'a letter too many'],
  ['pott', 'port', 'a wrong letter'],
  ['prot', 'port', 'two letters swapped'],
  ['PORT', 'port', 'another case'],
  ['runtimeout', 'runTimeout', 'another case inside'],
  ['run-timeout', 'runTimeout', 'the flag instead of the key'],
  ['hots', 'host', 'the nearest of several'],
  ['x', null, 'nothing is near'],
  ['', null, 'nothing was typed'],
  ['temperature', null, 'a word of something else'],
];

for (const [typed, meant, why] of ROWS) {
  test(`suggest('${typed}') is ${String(meant)}: ${why}`, () => assert.equal(suggest(typed, WORDS), meant));
}

test('suggest finds any word with one letter lost, swapped or changed', () => {
  const words = ['drainTimeout', 'maxOutput', 'logFormat', 'spawnConcurrency'];
  const slip = fc.tuple(fc.constantFrom(...words), fc.nat(), fc.constantFrom('lose', 'swap', 'change'));
  fc.assert(
    fc.property(slip, ([word, at, how]) => {
      const i = at % (word.length - 1);
      const [a, b] = [word[i] as string, word[i + 1] as string];
      const middle = how === 'lose' ? b : how === 'swap' ? b + a : `#${b}`;
      assert.equal(suggest(word.slice(0, i) + middle + word.slice(i + 2), words), word);
    }),
  );
});

test('suggest returns null for a word of a million letters', { timeout: 60_000 }, () => {
  assert.equal(suggest('x'.repeat(1_000_000), WORDS), null);
});
