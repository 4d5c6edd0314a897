import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  ERRORS,
  ServeError,
  asCallErrorCode,
  describeThrown,
  type ErrorCode,
} from '../../protocol/errors.js';

test('ServeError takes the message of its code unless it is given one, and keeps cause and detail', () => {
  const cause = new Error('why');
  const plain = new ServeError('SERVE_DEADLINE');
  assert.equal(plain.message, ERRORS.SERVE_DEADLINE.message);
  assert.equal(plain.detail, '');
  assert.equal('cause' in plain, false);
  const full = new ServeError('SERVE_QUEUE_FULL', 'own words', {
    cause,
    detail: 'for the log',
    retryAfterS: 3,
  });
  assert.deepEqual(
    [full.name, full.code, full.message, full.detail, full.retryAfterS, full.cause],
    ['ServeError', 'SERVE_QUEUE_FULL', 'own words', 'for the log', 3, cause],
  );
});

test('every code has a whole sentence for the client', () => {
  for (const [code, { message }] of Object.entries(ERRORS)) {
    assert.match(code, /^SERVE_[A-Z_]+$/);
    assert.match(message, /^[A-Z].*\.$/, code);
  }
});

for (const code of ['SERVE_BAD_BODY', 'SERVE_OUTPUT_INVALID', 'SERVE_OUTPUT_TOO_LARGE', 'SERVE_CANCELLED']) {
  test(`asCallErrorCode keeps ${code}`, () => assert.equal(asCallErrorCode(code), code));
}

for (const unknown of [
  '',
  'SERVE_NEW',
  'toString',
  '__proto__',
  'SERVE_QUEUE_FULL',
  'SERVE_CONFIG',
  'serve_deadline',
]) {
  test(`asCallErrorCode takes ${JSON.stringify(unknown)} for a failure of the model`, () => {
    assert.equal(asCallErrorCode(unknown), 'SERVE_INFERENCE_FAILED' satisfies ErrorCode);
  });
}

function hostile(): unknown[] {
  const throwing = (): never => {
    throw new Error('trap');
  };
  const everyTrap = new Proxy(
    {},
    {
      get: throwing,
      getPrototypeOf: throwing,
      has: throwing,
      ownKeys: throwing,
      getOwnPropertyDescriptor: throwing,
    },
  );
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  return [
    everyTrap,
    new Proxy(new Error('inside'), { get: throwing }),
    revoked,
    Object.create(null),
    { toString: throwing },
    { [Symbol.toPrimitive]: () => ({}) },
    Object.defineProperty(new Error('m'), 'message', { get: throwing }),
    Object.defineProperty(new Error('m'), 'stack', { get: throwing }),
    Object.defineProperty(new Error('m'), 'cause', { get: throwing }),
    Object.assign(new Error('m'), { message: Symbol('m'), stack: 5 }),
    Object.assign(new Error('m'), { cause: everyTrap }),
  ];
}

for (const [i, thrown] of hostile().entries()) {
  test(`describeThrown gives text for hostile value ${i}`, () => {
    const { message, stack } = describeThrown(thrown);
    assert.equal(typeof message, 'string');
    assert.equal(typeof stack, 'string');
    assert.notEqual(message, '');
  });
}

for (const [thrown, message] of [
  [undefined, 'thrown value: undefined'],
  [null, 'thrown value: null'],
  ['text', 'text'],
  [5, 'thrown value: 5'],
  [5n, 'thrown value: 5n'],
  [['a', { b: 1 }], "thrown value: [ 'a', { b: 1 } ]"],
  [Symbol('s'), 'thrown value: Symbol(s)'],
  [new TypeError('bad'), 'bad'],
] as const) {
  test(`describeThrown returns ${message}`, () => {
    assert.equal(describeThrown(thrown).message, message);
  });
}

test('describeThrown shows the stack and every cause', () => {
  const { stack } = describeThrown(new Error('outer', { cause: new Error('middle', { cause: 'inner' }) }));
  assert.match(
    stack,
    /^Error: outer\n\s+at [^]*\n {2}caused by: Error: middle\n\s+at [^]*\n {2}caused by: inner$/,
  );
});

test('describeThrown shows the first and last ten of a long chain of causes, and each of a circle once', () => {
  const chain = Array.from({ length: 3000 }, (_, i) => new Error(`level ${i}`));
  for (const [i, error] of chain.entries()) if (i > 0) error.cause = chain[i - 1];
  const { stack } = describeThrown(chain.at(-1));
  const shown = Array.from(
    stack.matchAll(/level (\d+)|\((\d+) more causes\)/g),
    ([, level, left]) => left ?? Number(level),
  );
  const levels = (from: number): number[] => Array.from({ length: 10 }, (_, i) => from - i);
  assert.deepEqual(shown, [...levels(2999), '2980', ...levels(9)]);
  const circle = new Error('one', { cause: new Error('two') });
  (circle.cause as Error).cause = circle;
  assert.equal(describeThrown(circle).stack.match(/Error: /g)?.length, 2);
});

test('describeThrown shows the parts of an AggregateError, each with its causes, and how many are left out', () => {
  const part = new Error('part', { cause: 'its cause' });
  const { message, stack } = describeThrown(new AggregateError([part, 'text'], 'both', { cause: 'why' }));
  assert.equal(message, 'both');
  assert.match(
    stack,
    /^AggregateError: both\n\s+at [^]*\n {2} {2}part 1 of 2: Error: part\n\s+at [^]*\n {4}caused by: its cause\n {4}part 2 of 2: text\n {2}caused by: why$/,
  );
  const many = describeThrown(new AggregateError(Array.from({ length: 100 }, (_, i) => `try ${i}`)));
  assert.match(many.stack, /part 8 of 100: try 7\n {4}and 92 more parts$/);
});

test('describeThrown shows the content of an object without running its code', () => {
  const thrown = {
    code: 5,
    nested: { list: ['a'] },
    get secret(): never {
      throw new Error('was read');
    },
    toString: () => 'own words',
  };
  const { message, stack } = describeThrown(thrown);
  assert.equal(
    message,
    "thrown value: { code: 5, nested: { list: [ 'a' ] }, secret: [Getter], toString: [Function: toString] }",
  );
  assert.equal(stack, message);
});

test('describeThrown stays short on an error that is its own cause', () => {
  const error = new Error('loop');
  error.cause = error;
  const { message, stack } = describeThrown(error);
  assert.equal(message, 'loop');
  assert.ok(stack.length < 20_000, `${stack.length} characters`);
});

test('describeThrown never throws', () => {
  fc.assert(
    fc.property(fc.anything({ withNullPrototype: true }), (thrown) => {
      assert.equal(typeof describeThrown(thrown).message, 'string');
    }),
  );
});
