import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planMetrics } from '../../../supervisor/plan/plan-listeners.js';
import { resolveOptions } from '../../../supervisor/options/resolve.js';

function plan(values: Record<string, unknown>): ReturnType<typeof planMetrics> {
  return planMetrics(resolveOptions([{ values, where: (name) => name }]).options);
}

test('metrics are off by default', () => {
  assert.equal(plan({}), null);
  assert.equal(plan({ metricsHost: '::1' }), null);
});

for (const [what, values, expected] of [
  ['--metrics', { metrics: true }, { isOnMain: true, listener: null }],
  ['--metrics-port', { metricsPort: 8082 }, { isOnMain: false, listener: { host: '127.0.0.1', port: 8082 } }],
  [
    'both',
    { metrics: true, metricsPort: '/run/m.sock' },
    { isOnMain: true, listener: { host: '127.0.0.1', port: '/run/m.sock' } },
  ],
  ["--metrics-port with the server's own port", { metricsPort: 8000 }, { isOnMain: true, listener: null }],
] as const) {
  test(`${what}: the listeners of the metrics`, () => assert.deepEqual(plan(values), expected));
}
