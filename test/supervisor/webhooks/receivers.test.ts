import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Receivers } from '../../../supervisor/webhooks/receivers.js';

interface Parcel {
  readonly name: string;
  readonly url: URL;
  readonly body: Uint8Array;
}

const LIMITS = { maxOwed: 100, maxOwedBytes: 1000, perReceiver: 2, atOnce: 3 };

/** A webhook to `http://<first letter>/`. */
function parcel(name: string, bytes = 0): Parcel {
  return { name, url: new URL(`http://${name.slice(0, 1)}/${name}`), body: Buffer.alloc(bytes) };
}

function setUp(limits: Partial<typeof LIMITS> = {}): {
  receivers: Receivers<Parcel>;
  started: () => string[];
} {
  const started: string[] = [];
  const receivers = new Receivers<Parcel>({ ...LIMITS, ...limits }, ({ name }) => started.push(name));
  return { receivers, started: () => started.splice(0) };
}

/** Ends the attempt and removes the webhook. */
function finish(receivers: Receivers<Parcel>, item: Parcel): void {
  receivers.leave(item);
  receivers.remove(item);
}

test('each receiver has a few attempts at a time, in the order of arrival', () => {
  const { receivers, started } = setUp();
  const items = ['a1', 'a2', 'a3', 'b1'].map((name) => parcel(name));
  for (const item of items) receivers.add(item);
  assert.deepEqual(started(), ['a1', 'a2', 'b1']);
  finish(receivers, items[0] as Parcel);
  assert.deepEqual(started(), ['a3']);
});

test('if all places are in use, free ones go to the receivers round-robin', () => {
  const { receivers, started } = setUp({ atOnce: 1 });
  const items = new Map(['a1', 'a2', 'a3', 'b1', 'c1', 'b2'].map((name) => [name, parcel(name)]));
  for (const item of items.values()) receivers.add(item);
  const order = started();
  for (let name = order[0]; name !== undefined; name = order[order.length - 1]) {
    finish(receivers, items.get(name) as Parcel);
    const next = started();
    if (next.length === 0) break;
    order.push(...next);
  }
  assert.deepEqual(order, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
});

test('a retry queues behind the other webhooks of its receiver', () => {
  const { receivers, started } = setUp({ perReceiver: 1 });
  const [first, second] = [parcel('a1'), parcel('a2')];
  receivers.add(first);
  receivers.add(second);
  receivers.leave(first);
  assert.deepEqual(started(), ['a1', 'a2']);
  receivers.queue(first);
  assert.deepEqual(started(), [], 'one at a time');
  finish(receivers, second);
  assert.deepEqual(started(), ['a1']);
});

test('a receiver that was owed nothing meanwhile is treated as a new one', () => {
  const { receivers, started } = setUp({ atOnce: 1 });
  const [first, second, third] = [parcel('a1'), parcel('a2'), parcel('a3')];
  receivers.add(first);
  finish(receivers, first);
  receivers.add(second);
  receivers.add(third);
  assert.deepEqual(started(), ['a1', 'a2']);
  finish(receivers, second);
  assert.deepEqual(started(), ['a3']);
  finish(receivers, third);
  assert.equal(receivers.excess(first.url, 1000), null, 'nothing is owed');
});

test('one receiver may have half of the limit, and its first webhook may have any size', () => {
  const { receivers } = setUp({ maxOwed: 4 });
  const { url } = parcel('a');
  assert.equal(receivers.excess(url, 1000), null);
  assert.match(
    receivers.excess(url, 1001) as string,
    /^with its 1001 bytes, more than 1000 bytes would wait/,
  );
  assert.equal(receivers.room, 4);
  receivers.add(parcel('a1', 300));
  assert.equal(receivers.room, 3);
  assert.equal(receivers.excess(url, 200), null);
  assert.match(receivers.excess(url, 201) as string, /more than 500 bytes to this receiver would wait/);
  receivers.add(parcel('a2'));
  assert.equal(receivers.excess(url, 0), '2 others to this receiver are not delivered yet');
  receivers.add(parcel('b1'));
  receivers.add(parcel('c1'));
  assert.equal(receivers.room, 0);
  assert.equal(receivers.excess(parcel('d').url, 0), '4 others are not delivered yet');
});

test('there is no room for webhooks of unknown size while half of the bytes are owed', () => {
  const { receivers } = setUp({ maxOwed: 4 });
  receivers.add(parcel('a1', 500));
  assert.equal(receivers.room, 0);
});
