import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messageOf, shortChain } from '../../../supervisor/observe/log-text.js';

const TRACEBACK = `Traceback (most recent call last):
  File "/srv/app.py", line 31, in inference
    return 1 / x
           ~~^~~
ZeroDivisionError: division by zero`;

test('a text with a stack is one line that says what happened and where, with the stack beside it', () => {
  const msg = 'ZeroDivisionError: division by zero (app.py:31)';
  assert.deepEqual(messageOf(TRACEBACK), { msg, stack: TRACEBACK });
  const logged = `ERROR:app:no answer\n${TRACEBACK}`;
  assert.deepEqual(messageOf(logged), { msg: `ERROR:app:no answer: ${msg}`, stack: logged });
  const failed = `the job failed: ${TRACEBACK}`;
  assert.deepEqual(messageOf(failed), { msg: `the job failed: ${msg}`, stack: failed });
  const noted = `${TRACEBACK}\na note of the exception`;
  assert.equal(messageOf(noted).msg, msg);
  const chained = `${TRACEBACK.replace('ZeroDivision', 'Key')}\n\nDuring handling of the above exception, another exception occurred:\n\n${TRACEBACK}`;
  assert.deepEqual(messageOf(chained), { msg, stack: chained });
  const stack =
    'TypeError: x is not a function\n    at Object.run (file:///srv/lib/model.ts:7:3)\n    at app.ts:1:1';
  assert.deepEqual(messageOf(stack), { msg: 'TypeError: x is not a function (model.ts:7)', stack });
  assert.deepEqual(messageOf('two\nlines'), { msg: 'two\nlines' });
});

test('of a long chain of exceptions the first ten and the last ten are shown', () => {
  const link = '\n\nThe above exception was the direct cause of the following exception:\n\n';
  const chain = (count: number): string =>
    Array.from({ length: count }, (_, i) => `Traceback (most recent call last):\nE${i}: no`).join(link);
  const shown = Array.from(shortChain(chain(3000)).matchAll(/^E(\d+)/gm), ([, number]) => Number(number));
  assert.deepEqual(shown, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...Array.from({ length: 10 }, (_, i) => 2990 + i)]);
  assert.match(shortChain(chain(3000)), /\(2980 more exceptions\)/);
  assert.equal(shortChain(chain(20)), chain(20));
});
