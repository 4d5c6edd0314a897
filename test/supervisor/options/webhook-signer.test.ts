import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { resolveOptions } from '../../../supervisor/options/resolve.js';
import { NotAllowed } from '../../../supervisor/options/units.js';
import { parseWebhookSecrets } from '../../../supervisor/options/secrets.js';

/** The key of the Standard Webhooks specification's example. */
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const OLD = `whsec_${Buffer.alloc(64, 7).toString('base64')}`;
const BODY = Buffer.from('{"test": 2432232314}');

test("a signer returns the signature of the specification's example", () => {
  const signed = parseWebhookSecrets(SECRET)('msg_p5jXN8AQM9LWM0D4loKWxJek', 1614265330, BODY);
  assert.equal(signed, 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

test('an independent implementation accepts the signatures of all current keys and of no other key', () => {
  const nowS = Math.floor(Date.now() / 1000);
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(nowS),
    'webhook-signature': parseWebhookSecrets(`${SECRET}, ${OLD}`)('msg_1', nowS, BODY),
  };
  for (const secret of [SECRET, OLD]) {
    assert.deepEqual(new Webhook(secret).verify(BODY, headers), { test: 2432232314 });
  }
  const stranger = new Webhook(`whsec_${Buffer.alloc(32, 1).toString('base64')}`);
  assert.throws(() => stranger.verify(BODY, headers));
  assert.throws(() => new Webhook(SECRET).verify('{"test": 1}', headers));
});

for (const [what, secret] of [
  ['without its prefix', SECRET.slice(6)],
  ['with another prefix', SECRET.replace('whsec_', 'whpk_')],
  ['of 23 bytes', `whsec_${Buffer.alloc(23).toString('base64')}`],
  ['of 65 bytes', `whsec_${Buffer.alloc(65).toString('base64')}`],
  ['that is not base64', `whsec_${'*'.repeat(40)}`],
  ['cut inside a byte', `${SECRET}A`],
  ['that is empty', ' , '],
  ['that is valid, beside one that is not', `${SECRET} whsec_short`],
  ['that is not a string', 5],
] as const) {
  test(`a secret ${what} is refused`, () => {
    assert.throws(() => parseWebhookSecrets(secret), NotAllowed);
  });
}

test('errors and printed options never show a secret', () => {
  const wrong = `${SECRET}!`;
  const options = (webhookSecret: unknown): unknown =>
    resolveOptions([{ values: { webhookSecret }, where: () => 'BANANA_WEBHOOK_SECRET' }]);
  assert.throws(
    () => options(wrong),
    (error: Error) => {
      assert.match(error.message, /^BANANA_WEBHOOK_SECRET: this value is not allowed; give whsec_ and/);
      assert.ok(!inspect(error).includes('MfKQ9'));
      return true;
    },
  );
  const good = options(SECRET);
  assert.ok(!`${inspect(good, { depth: 9, showHidden: true })}${JSON.stringify(good)}`.includes('MfKQ9'));
});
