/** Addresses of the management API, and keys that they need. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planManagement } from '../../../supervisor/plan/plan-listeners.js';
import { resolveOptions } from '../../../supervisor/options/resolve.js';

function planOf(
  values: Readonly<Record<string, unknown>>,
  hasKey: boolean,
): ReturnType<typeof planManagement> {
  const source = { values, where: (name: string) => `banana.json: ${name}` };
  return planManagement(resolveOptions([source]), hasKey);
}

test('without a port there is no management API', () => {
  assert.equal(planOf({ managementHost: '0.0.0.0' }, false), null);
});

const OWN_MACHINE: readonly object[] = [
  { managementPort: 8081 },
  { managementPort: 0, port: 0 },
  { managementPort: 8081, managementHost: 'localhost' },
  { managementPort: 8081, managementHost: '127.3.2.1' },
  { managementPort: 8081, managementHost: '::1' },
  { managementPort: '/run/m.sock', managementHost: '0.0.0.0' },
  { managementPort: 8000, host: '10.0.0.1' },
];

for (const values of OWN_MACHINE) {
  test(`${JSON.stringify(values)} is reached from this machine only and needs no key`, () => {
    const plan = planOf(values as Record<string, unknown>, false);
    assert.deepEqual([plan?.isShared, plan?.isOpenToAll], [false, false]);
  });
}

const REACHED: readonly (readonly [values: object, place: string, isShared: boolean])[] = [
  [{ managementPort: 8081, managementHost: '0.0.0.0' }, 'managementHost', false],
  [{ managementPort: 8081, managementHost: '::' }, 'managementHost', false],
  [{ managementPort: 8081, managementHost: '10.0.0.1' }, 'managementHost', false],
  [{ managementPort: 8081, managementHost: 'box.lan' }, 'managementHost', false],
  [{ managementPort: 8081, managementHost: 'localhost.example.com' }, 'managementHost', false],
  [{ managementPort: 8000 }, 'managementPort', true],
  [{ managementPort: 80, port: 80, host: '127.0.0.1' }, 'managementPort', true],
  [{ managementPort: '/run/b.sock', port: '/run/b.sock' }, 'managementPort', true],
];

for (const [given, place, isShared] of REACHED) {
  const values = given as Record<string, unknown>;
  test(`${JSON.stringify(values)} needs a key or managementInsecure`, () => {
    assert.throws(
      () => planOf(values, false),
      (thrown: Error) => {
        assert.ok(thrown.message.startsWith(`banana.json: ${place}: `), thrown.message);
        for (const cure of [
          '--management-key',
          '127.0.0.1',
          '--management-insecure',
          'BANANA_MANAGEMENT_INSECURE=1',
        ])
          assert.ok(thrown.message.includes(cure), `${cure} in ${thrown.message}`);
        return true;
      },
    );
    const withKey = planOf(values, true);
    assert.deepEqual([withKey?.isShared, withKey?.isOpenToAll], [isShared, false]);
    assert.equal(planOf({ ...values, managementInsecure: true }, false)?.isOpenToAll, true);
  });
}
