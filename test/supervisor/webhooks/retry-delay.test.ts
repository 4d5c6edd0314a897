import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextStep, parseRetryAfterMs, type Attempt } from '../../../supervisor/webhooks/deliver.js';

const NOW_MS = Date.parse('2026-01-02T03:04:05Z');

function answered(status: number, retryAfter: string | null = null): Attempt {
  return { status, retryAfter };
}

for (const status of [200, 201, 204, 299]) {
  test(`status ${status} is a delivery`, () => {
    assert.deepEqual(nextStep(answered(status), 1, 3, NOW_MS, 0), { action: 'delivered' });
  });
}

for (const [status, why] of [
  [301, 'status 301: redirects are not followed'],
  [307, 'status 307: redirects are not followed'],
  [400, 'status 400'],
  [404, 'status 404'],
  [410, 'status 410'],
] as const) {
  test(`status ${status} is final, even with retries left`, () => {
    assert.deepEqual(nextStep(answered(status, '1'), 1, 3, NOW_MS, 0), { action: 'give up', why });
  });
}

for (const [what, attempt] of [
  ['408', answered(408)],
  ['429', answered(429)],
  ['500', answered(500)],
  ['504', answered(504)],
  ['a timeout', { status: null, why: 'timeout: no answer within 10 s' }],
  ['a connection error', { status: null, why: 'connection error: ECONNREFUSED' }],
] as readonly (readonly [string, Attempt])[]) {
  test(`${what} is retried after 1, 4 and 16 s, and given up after the last retry`, () => {
    const delays = [1, 2, 3].map((attempts) => {
      const step = nextStep(attempt, attempts, 3, NOW_MS, 0);
      return step.action === 'retry' ? step.delayMs : step.action;
    });
    assert.deepEqual(delays, [1000, 4000, 16_000]);
    assert.equal(nextStep(attempt, 4, 3, NOW_MS, 0).action, 'give up');
    assert.equal(nextStep(attempt, 1, 0, NOW_MS, 0).action, 'give up');
  });
}

test('jitter adds up to a quarter of the delay, which stays at 60 s from the fifth on', () => {
  const delay = (attempts: number, random: number): number => {
    const step = nextStep(answered(500), attempts, 10, NOW_MS, random);
    return step.action === 'retry' ? step.delayMs : Number.NaN;
  };
  assert.equal(delay(1, 1), 1250);
  assert.equal(delay(2, 0.5), 4500);
  assert.equal(delay(5, 0), 60_000);
  assert.equal(delay(10, 0), 60_000);
});

test('the delay is at least Retry-After; a shorter one does not change it', () => {
  for (const status of [429, 503]) {
    for (const random of [0, 1]) {
      const step = nextStep(answered(status, '7'), 1, 3, NOW_MS, random);
      assert.equal(step.action === 'retry' && step.delayMs, random === 0 ? 7000 : 8750);
    }
    const shorter = nextStep(answered(status, '2'), 2, 3, NOW_MS, 0);
    assert.equal(shorter.action === 'retry' && shorter.delayMs, 4000);
  }
  const date = nextStep(answered(503, 'Fri, 02 Jan 2026 03:04:25 GMT'), 1, 3, NOW_MS, 0);
  assert.equal(date.action === 'retry' && date.delayMs, 20_000);
});

test('a receiver that asks for more than a minute gets no retry', () => {
  assert.deepEqual(nextStep(answered(503, '3600'), 1, 3, NOW_MS, 0), {
    action: 'give up',
    why: 'status 503 and asked to wait 60 min',
  });
});

for (const [value, expected] of [
  ['0', 0],
  [' 12 ', 12_000],
  ['Fri, 02 Jan 2026 03:04:06 GMT', 1000],
  ['Fri, 02 Jan 2026 03:00:00 GMT', 0],
  ['soon', null],
  ['-5', null],
  ['1.5', null],
  ['', null],
  [null, null],
] as const) {
  test(`Retry-After ${JSON.stringify(value)} is ${expected === null ? 'ignored' : `${expected} ms`}`, () => {
    assert.equal(parseRetryAfterMs(value, NOW_MS), expected);
  });
}
