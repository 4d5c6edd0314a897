import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outlookOf } from '../../worker/outlook.js';

function coded(code: string, message = 'failed'): Error {
  return Object.assign(new Error(message), { code });
}

const TRANSIENT: readonly (readonly [what: string, thrown: unknown])[] = [
  ['a refused connection', coded('ECONNREFUSED')],
  ['a name that cannot be resolved now', coded('EAI_AGAIN')],
  ['a full disk', coded('ENOSPC')],
  ['a code deep in the causes', new Error('a', { cause: new Error('b', { cause: coded('ETIMEDOUT') }) })],
  ['a code in one of many parts', new AggregateError([new Error('x'), coded('EHOSTUNREACH')], 'all failed')],
  [
    'a code that is only in the message',
    new Error('cannot load the weights: connect ECONNREFUSED 10.0.0.1:80'),
  ],
  ['a GPU that is full', new Error('CUDA error: out of memory')],
  ['a buffer that cannot be had', new RangeError('Array buffer allocation failed')],
  ['a limit of AbortSignal.timeout', new DOMException('too slow', 'TimeoutError')],
  ['a text', 'EMFILE: too many open files'],
];

for (const [what, thrown] of TRANSIENT) {
  test(`${what} may pass by itself`, () => assert.equal(outlookOf(thrown), 'transient'));
}

const hostile = Object.defineProperty({}, 'code', {
  get: () => {
    throw new Error('no');
  },
});
const ring = new Error('ring');
ring.cause = ring;

const UNKNOWN: readonly (readonly [what: string, thrown: unknown])[] = [
  ['an error of the app', new Error('the weights are missing')],
  ['a file that is not there', coded('ENOENT', "ENOENT: no such file or directory, open 'weights.bin'")],
  ['a word that only looks like a code', new Error('EVERYTHING IS WRONG, EAGAINST ALL RULES')],
  ['a code that is no text', Object.assign(new Error('x'), { code: 7 })],
  ['a hostile object', hostile],
  ['an error that causes itself', ring],
  ['undefined', undefined],
  ['null', null],
];

for (const [what, thrown] of UNKNOWN) {
  test(`nothing says that ${what} passes by itself`, () => assert.equal(outlookOf(thrown), 'unknown'));
}
