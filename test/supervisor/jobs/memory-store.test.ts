/** The store in memory: the promises of every store, and its own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { collectNow } from '../../../supervisor/memory/gc.js';
import { MemoryStore } from '../../../supervisor/jobs/memory-store.js';
import { Heap } from '../../../supervisor/jobs/heap.js';
import { conformance, LIMITS, StoreBench } from './conformance.js';
import { followsModel } from './store-property.js';

conformance('memory', (limits) => {
  const store = new MemoryStore(limits);
  return Promise.resolve({ store, close: () => store.close() });
});

followsModel(
  'memory',
  (limits) => {
    const store = new MemoryStore(limits);
    return Promise.resolve({ store, close: () => store.close() });
  },
  300,
);

test('memory: what waits fails when the server ends', async () => {
  const bench = new StoreBench(new MemoryStore(LIMITS));
  const [running, waiting] = [await bench.accept({ priority: 1 }), await bench.accept({ delayMs: 1000 })];
  await bench.begin();
  assert.deepEqual(bench.store.queuedHere(), [waiting]);
  await bench.store.stop();
  const record = await bench.record(waiting);
  assert.deepEqual([record.state, record.end?.error?.code], ['failed', 'SERVE_SHUTTING_DOWN']);
  assert.equal(await bench.state(running), 'running');
});

test('memory: a job that has ended keeps nothing of its call, which does not count any more', async () => {
  const bench = new StoreBench(new MemoryStore({ ...LIMITS, maxBytes: 1e9 }));
  const usedBytes = (): number => {
    collectNow();
    return process.memoryUsage().heapUsed;
  };
  const before = usedBytes();
  for (let i = 0; i < 1000; i += 1) {
    const id = await bench.accept({ headers: Buffer.alloc(20_000, 'x').toString() });
    await bench.begin();
    await bench.answer(id);
    bench.changed.length = 0;
  }
  const keptBytes = usedBytes() - before;
  assert.ok(keptBytes < 5e6, `${keptBytes} bytes`);
  assert.equal((await bench.store.list({ state: null, limit: 1000, from: null })).records.length, 1000);
});

test('items come by time, whatever is added and removed in between', () => {
  const step = fc.oneof(
    fc.record({ add: fc.nat(20) }),
    fc.record({ remove: fc.nat(20) }),
    fc.constant({ take: 1 }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const heap = new Heap<'index', { atMs: number; index: number }>('index', ({ atMs }) => atMs);
      let items: { atMs: number; index: number }[] = [];
      const earliest = (): number => Math.min(Infinity, ...items.map(({ atMs }) => atMs));
      for (const one of steps) {
        if ('add' in one) {
          const item = { atMs: one.add, index: -1 };
          items.push(item);
          heap.add(item);
        } else if ('remove' in one) {
          const item = items[one.remove];
          if (item !== undefined) heap.remove(item);
          items = items.filter((other) => other !== item);
          if (item !== undefined) heap.remove(item); // a second time: nothing
        } else {
          const taken = heap.first;
          if (taken !== undefined) heap.remove(taken);
          items = items.filter((other) => other !== taken);
        }
        assert.deepEqual([heap.least, heap.length], [earliest(), items.length]);
      }
    }),
  );
});
