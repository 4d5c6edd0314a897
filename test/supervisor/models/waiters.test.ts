import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Waiters } from '../../../supervisor/models/model-health.js';

class Model {
  state: 'starting' | 'ready' | 'latched' = 'starting';
  readonly #waiters = new Waiters();

  wait(givenUp?: Promise<unknown>): Promise<true | null> {
    return this.#waiters.wait(() => {
      if (this.state === 'latched') throw new Error('in vain');
      return this.state === 'ready' || null;
    }, givenUp);
  }

  wake(): void {
    this.#waiters.wake();
  }
}

test('a waiter continues once the model is ready, not at an earlier change', async () => {
  const model = new Model();
  let gone = 0;
  const waits = [1, 2].map(() => model.wait().then(() => (gone += 1)));
  model.wake();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(gone, 0);
  model.state = 'ready';
  model.wake();
  await Promise.all(waits);
  await model.wait();
});

test('a waiter gets the error once it waits in vain, at once or later', async () => {
  const model = new Model();
  const wait = model.wait();
  model.state = 'latched';
  model.wake();
  await assert.rejects(wait, /in vain/);
  await assert.rejects(model.wait(), /in vain/);
});

test('a waiter that gives up is removed', async () => {
  const model = new Model();
  let leave!: () => void;
  const wait = model.wait(new Promise<void>((resolve) => (leave = resolve)));
  leave();
  await wait;
});
