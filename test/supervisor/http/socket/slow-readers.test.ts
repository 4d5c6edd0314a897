import assert from 'node:assert/strict';
import { test } from 'node:test';
import { passTime, slowest, type Reader } from '../../../../supervisor/http/socket/slow-readers.js';

const STALL_MS = 60_000;
const MINUTE_MS = 60_000;

function newReader(facts: Partial<Reader> = {}): Reader {
  return { unsentBytes: 1, takenBytes: 0, waitedMs: 0, patienceMs: STALL_MS, ...facts };
}

/** Passes time in steps of a second until the reader is out of patience, at most an hour. Returns the ms. */
function patienceOf(reader: Reader, tookInSecond: (second: number) => number): number {
  let second = 0;
  while (reader.patienceMs > 0 && second < 3600) {
    second += 1;
    passTime(reader, 1000, tookInSecond(second), STALL_MS);
  }
  return second * 1000;
}

test('a reader that takes nothing lasts for the stall timeout', () => {
  assert.equal(
    patienceOf(newReader(), () => 0),
    STALL_MS,
  );
});

test('a reader that takes a byte a minute gains no time', () => {
  const ms = patienceOf(newReader(), (second) => (second % 60 === 0 ? 1 : 0));
  assert.equal(ms, STALL_MS + 1000); // one check later
});

test('a reader at the minimum rate never runs out of patience, whether it takes bytes every second or in lumps', () => {
  assert.equal(
    patienceOf(newReader(), () => 1000),
    60 * MINUTE_MS,
  );
  assert.equal(
    patienceOf(newReader(), (second) => (second % 50 === 0 ? 50_000 : 0)),
    60 * MINUTE_MS,
  );
});

test('a fast reader that stops lasts for the stall timeout only', () => {
  const reader = newReader();
  passTime(reader, 1000, 1e9, STALL_MS);
  assert.equal(
    patienceOf(reader, () => 0),
    STALL_MS,
  );
});

test('the slowest reader is the one with the lowest rate', () => {
  const fast = newReader({ takenBytes: 50e6, waitedMs: 10_000 });
  const slow = newReader({ takenBytes: 2e6, waitedMs: 10_000 });
  const stopped = newReader({ waitedMs: 10_000 });
  assert.equal(slowest([fast, slow, stopped]), stopped);
  assert.equal(slowest([fast, slow]), slow);
  assert.equal(slowest([]), null);
});

test('among readers that took nothing, the one that has waited longest is the slowest, never a new one', () => {
  const older = newReader({ waitedMs: 900 });
  const newer = newReader({ waitedMs: 100 });
  const fresh = newReader();
  const slow = newReader({ takenBytes: 10_000, waitedMs: 10_000 });
  assert.equal(slowest([fresh, newer, older]), older);
  assert.equal(slowest([fresh, slow, newer]), slow);
});
