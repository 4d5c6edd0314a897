import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiKeys } from '../../../../supervisor/http/access/api-keys.js';
import { preference } from '../../../../supervisor/http/call/find-route.js';
import { idempotencyKey, wishedJob } from '../../../../supervisor/http/call/wished-job.js';
import type { RequestContext } from '../../../../supervisor/http/request/request-context.js';
import { digestOf } from '../../../../supervisor/options/secrets.js';

for (const [prefer, expected] of [
  [undefined, false],
  ['respond-async', true],
  ['Respond-Async, wait=10', true],
  ['wait=10 , respond-async; foo', true],
  ['respond-asynchronously', false],
  ['return=minimal', false],
] as const)
  test(`Prefer: ${prefer} ${expected ? 'asks' : 'does not ask'} for an early answer`, () =>
    assert.equal(preference(prefer === undefined ? {} : { prefer }, 'respond-async') !== null, expected));

test('a job may begin at once, within a day, after more urgent ones, unless its client says otherwise', () => {
  const usual = { delayMs: 0, ttlMs: 24 * 3_600_000, priority: 0, idempotencyKey: null };
  assert.deepEqual(wishedJob({}), usual);
  const headers = {
    'x-banana-job-delay-seconds': '1.5',
    'x-banana-job-ttl-seconds': '2592000',
    'x-banana-job-priority': '9',
    'idempotency-key': 'k',
  };
  const wished = { delayMs: 1500, ttlMs: 2_592_000_000, priority: 9, idempotencyKey: 'k' };
  assert.deepEqual(wishedJob(headers), wished);
});

for (const [name, wrong] of [
  ['X-Banana-Job-Delay-Seconds', ['-1', '', 'soon', '1e3', '2592001', 'Infinity']],
  ['X-Banana-Job-TTL-Seconds', ['0', '0.0', '-1', '2592001']],
  ['X-Banana-Job-Priority', ['10', '-1', '1.5', '']],
  ['Idempotency-Key', ['', 'x'.repeat(256)]],
] as const)
  test(`${name} out of range is refused by name`, () => {
    for (const value of wrong)
      assert.throws(() => wishedJob({ [name.toLowerCase()]: value }), {
        code: 'SERVE_BAD_REQUEST',
        message: new RegExp(`^${name} must be `),
      });
  });

/** A request with this key for calls, to a server with keys or without. */
function contextOf(apiKey: string, keys: readonly string[]): RequestContext {
  return {
    backend: { keys: new ApiKeys(keys.map((one) => digestOf(one))) },
    request: { headers: { 'x-key': apiKey } },
    headerNames: { keys: ['x-key'] },
  } as unknown as RequestContext;
}

const CLAIM = {
  key: 'k',
  model: 'm',
  route: '/',
  contentType: 'a/b',
  pieces: [Buffer.from('body')],
  keyInBody: null as string | null,
};

type Claim = typeof CLAIM;
const claimed = (
  context: RequestContext,
  { key, pieces, keyInBody, ...call }: Claim,
): ReturnType<typeof idempotencyKey> => idempotencyKey(context, key, call, pieces, keyInBody);

test('an idempotency key belongs to its route and to the key used; without keys all callers are one', async () => {
  const open = await claimed(contextOf('a', []), CLAIM);
  const same = await claimed(contextOf('b', []), {
    ...CLAIM,
    pieces: [Buffer.from('bo'), Buffer.from('dy')],
  });
  assert.deepEqual(same, open);
  const keys = ['a', 'b'];
  const scopes = [
    open.scope,
    (await claimed(contextOf('a', keys), CLAIM)).scope,
    (await claimed(contextOf('b', keys), CLAIM)).scope,
    (await claimed(contextOf('', keys), { ...CLAIM, keyInBody: 'c' })).scope,
    (await claimed(contextOf('a', keys), { ...CLAIM, route: '/other' })).scope,
    (await claimed(contextOf('a', keys), { ...CLAIM, key: 'other' })).scope,
  ];
  assert.equal(new Set(scopes).size, scopes.length);
  assert.ok(
    scopes.every((scope) => /^[\w-]{43}$/.test(scope)),
    'digests',
  );
});

test('its content is the type and the body', async () => {
  const of = async (changes: object): Promise<string> =>
    (await claimed(contextOf('', []), { ...CLAIM, ...changes })).content;
  assert.notEqual(await of({}), await of({ contentType: 'a/c' }));
  assert.notEqual(await of({}), await of({ pieces: [Buffer.from('other')] }));
  const large = [Buffer.alloc(3 * 1024 * 1024, 1)];
  assert.equal(await of({ pieces: large }), await of({ pieces: [...large, Buffer.alloc(0)] }));
});
