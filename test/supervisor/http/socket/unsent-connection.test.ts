import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addQueues,
  inodeOf,
  passTime,
  slowest,
} from '../../../../supervisor/http/socket/unsent-connection.js';

const STALL_MS = 60_000;
const MINUTE_MS = 60_000;

type Reader = Parameters<typeof passTime>[0];

function newReader(facts: Partial<Reader> = {}): Reader {
  return { takenBytes: 0, waitedMs: 0, patienceMs: STALL_MS, ...facts };
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

test('queues are read from the tables of IPv4 and IPv6, by inode', () => {
  const queues = new Map<string, number>();
  addQueues(
    queues,
    `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 00000000 100 0 0 10 0
   1: 0100007F:1F40 0100007F:D2B8 01 003B5000:00000000 04:0000001E 00000000  1000        0 4712 4 00000000 20 4 31 10 -1
`,
  );
  addQueues(
    queues,
    `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
  12: 00000000000000000000000001000000:1F40 00000000000000000000000001000000:A1B2 01 0000000A:00000007 01:00000019 00000000     0        0 4713 2 00000000 20 4 0 10 -1
`,
  );
  assert.deepEqual(Object.fromEntries(queues), { 4712: 0x3b5000, 4713: 10 });
});

test('a file that is not a socket has no inode', () => {
  assert.equal(inodeOf(-1), null);
});
