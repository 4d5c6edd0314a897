import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MIN_SLAB_BYTES, Slabs } from '../../../supervisor/memory/slabs.js';

const MIB = 1024 * 1024;

test('a released slab is reused for the next body of similar size', () => {
  const slabs = new Slabs();
  const first = slabs.take(10 * MIB - 5);
  assert.equal(first.buffer.length, 10 * MIB - 5);
  first.release();
  const second = slabs.take(10 * MIB);
  assert.equal(second.buffer.buffer, first.buffer.buffer);
  assert.equal(second.buffer.length, 10 * MIB);
});

test('two leases at the same time never share memory', () => {
  const slabs = new Slabs();
  const first = slabs.take(MIB);
  assert.notEqual(slabs.take(MIB).buffer.buffer, first.buffer.buffer);
  first.release();
  first.release(); // a second time does nothing
  assert.equal(slabs.take(MIB).buffer.buffer, first.buffer.buffer);
  assert.notEqual(slabs.take(MIB).buffer.buffer, first.buffer.buffer);
});

test('a small body gets no slab', () => {
  const slabs = new Slabs();
  const small = slabs.take(MIN_SLAB_BYTES - 1);
  assert.equal(small.buffer.length, MIN_SLAB_BYTES - 1);
  small.release();
  assert.equal(slabs.freeBytes, 0);
});

test('a slab is at most a quarter larger than its body', () => {
  const slabs = new Slabs();
  for (const bytes of [MIN_SLAB_BYTES, MIN_SLAB_BYTES + 1, MIB - 1, MIB, MIB + 1, 10 * MIB, 100 * MIB]) {
    const { byteLength } = slabs.take(bytes).buffer.buffer;
    assert.ok(byteLength >= bytes && byteLength <= bytes * 1.25, `${bytes}: ${byteLength}`);
  }
});

test('no more than 64 MiB are kept, and for 10 s', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const slabs = new Slabs();
  const taken = Array.from({ length: 10 }, () => slabs.take(10 * MIB));
  for (const lease of taken) lease.release();
  assert.equal(slabs.freeBytes, 60 * MIB);
  t.mock.timers.tick(10_000);
  assert.equal(slabs.freeBytes, 0);
  slabs.take(MIB).release();
  assert.equal(slabs.freeBytes, MIB);
});

test('onUse reports when large bodies arrive, and when none has arrived for 10 s', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const told: boolean[] = [];
  const slabs = new Slabs();
  slabs.onUse = (inUse) => told.push(inUse);
  slabs.take(MIN_SLAB_BYTES - 1);
  assert.deepEqual(told, []);
  slabs.take(MIB);
  slabs.take(MIB);
  t.mock.timers.tick(10_000);
  assert.deepEqual(told, [true, false]);
  slabs.take(MIB);
  assert.deepEqual(told, [true, false, true]);
});

test('a slab that is released on an idle server is not kept', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const slabs = new Slabs();
  const late = slabs.take(MIB);
  t.mock.timers.tick(10_000);
  late.release();
  assert.equal(slabs.freeBytes, 0);
});
