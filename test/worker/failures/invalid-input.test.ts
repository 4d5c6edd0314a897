import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import type { ServeError } from '../../../protocol/errors.js';
import { failureOf } from '../../../worker/failures/failure.js';

function thrownBy(check: () => unknown): unknown {
  try {
    check();
  } catch (thrown) {
    return thrown;
  }
  throw new Error('nothing was thrown');
}

function placesOf({ issues }: ServeError): string[] {
  return issues.map(({ path }) => path.join('.'));
}

const CHECKS: Readonly<Record<string, (value: unknown) => unknown>> = {
  zod: (value) =>
    z
      .strictObject({ name: z.string().min(2), size: z.enum(['s', 'm']), deep: z.array(z.number()).max(1) })
      .parse(value),
  valibot: (value) =>
    v.parse(
      v.strictObject({
        name: v.pipe(v.string(), v.minLength(2)),
        size: v.picklist(['s', 'm']),
        deep: v.pipe(v.array(v.number()), v.maxLength(1)),
      }),
      value,
    ),
  arktype: (value) =>
    type({ '+': 'reject', name: 'string >= 2', size: "'s' | 'm'", deep: 'number[] <= 1' }).assert(value),
};

const FINE = { name: 'ab', size: 's', deep: [1] };

for (const [library, check] of Object.entries(CHECKS)) {
  test(`an error of ${library} is about the input that has its wrong values, and about no other`, () => {
    for (const [input, place] of [
      [{ ...FINE, name: 5 }, 'name'],
      [{ ...FINE, name: 'a' }, 'name'],
      [{ ...FINE, size: 'x' }, 'size'],
      [{ ...FINE, deep: ['x'] }, 'deep.0'],
      [{ ...FINE, deep: [1, 2] }, 'deep'],
      [{ name: 'ab', size: 's' }, 'deep'],
    ] as const) {
      const error = thrownBy(() => check(input));
      const failure = failureOf(error, input);
      assert.deepEqual(
        [failure.code, placesOf(failure)],
        ['SERVE_INPUT_INVALID', [place]],
        JSON.stringify(input),
      );
      const others = [FINE, null, 'text', [input], undefined];
      // Zod says nothing of an object that lacks a key, so it may be any that does.
      for (const other of library === 'zod' && place === 'deep' ? others : [...others, { text: 'a' }])
        assert.equal(
          failureOf(error, other).code,
          'SERVE_INFERENCE_FAILED',
          `${place} of ${JSON.stringify(other)}`,
        );
    }
  });
}

test('an item of a custom service may be checked as a whole, or by its body', () => {
  const body = { ...FINE, name: 5 };
  const error = thrownBy(() => CHECKS['zod']?.(body));
  assert.equal(failureOf(error, { item: { body } }).code, 'SERVE_INPUT_INVALID');
});

test('an error of zod whose schema is told to keep the value is about that value only', () => {
  const error = thrownBy(() =>
    z.object({ a: z.string().startsWith('b') }).parse({ a: 'x' }, { reportInput: true }),
  );
  assert.equal(failureOf(error, { a: 'x' }).code, 'SERVE_INPUT_INVALID');
  assert.equal(failureOf(error, { a: 'y' }).code, 'SERVE_INFERENCE_FAILED');
});

test('issues are bounded: 100 of them, and the length of each message and key', () => {
  const issues = Array.from({ length: 150 }, () => ({
    code: 'x',
    path: Array<string>(20).fill('k'.repeat(200)),
    message: 'm'.repeat(1000),
  }));
  const deep = Array.from({ length: 20 }).reduce<unknown>((inner) => ({ ['k'.repeat(200)]: inner }), 1);
  const error = Object.assign(new Error(), { name: 'ZodError', issues });
  const failure = failureOf(error, deep);
  assert.equal(failure.issues.length, 100);
  assert.deepEqual([failure.issues[0]?.path.length, failure.issues[0]?.message.length], [10, 500]);
});

test('an error whose getters throw, or that only looks like one of a library, is the failure of the app', () => {
  const hostile = Object.defineProperty(new Error('x'), 'name', {
    get: () => {
      throw new Error('no');
    },
  });
  for (const thrown of [
    hostile,
    { name: 'ZodError', issues: [] },
    { name: 'ZodError', issues: [null] },
    'ZodError',
  ])
    assert.equal(failureOf(thrown, {}).code, 'SERVE_INFERENCE_FAILED');
});
