import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Waiters } from '../../../supervisor/models/waiters.js';

const NEVER = new Promise<never>(() => {});

interface Model {
  state: 'starting' | 'ready' | 'latched';
  readonly waiters: Waiters<true>;
}

function makeModel(): Model {
  const waiters = new Waiters(() => {
    if (model.state === 'latched') throw new Error('in vain');
    return model.state === 'ready' ? true : null;
  });
  const model: Model = { state: 'starting', waiters };
  return model;
}

test('a waiter continues once the model is ready, not at an earlier change', async () => {
  const model = makeModel();
  let gone = 0;
  const waits = [1, 2].map(() => model.waiters.wait(NEVER).then(() => (gone += 1)));
  model.waiters.wake();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(gone, 0);
  model.state = 'ready';
  model.waiters.wake();
  await Promise.all(waits);
  await model.waiters.wait(NEVER);
});

test('a waiter gets the error once it waits in vain, at once or later', async () => {
  const model = makeModel();
  const wait = model.waiters.wait(NEVER);
  model.state = 'latched';
  model.waiters.wake();
  await assert.rejects(wait, /in vain/);
  await assert.rejects(model.waiters.wait(NEVER), /in vain/);
});

test('a waiter that gives up is removed', async () => {
  const model = makeModel();
  let leave!: () => void;
  const wait = model.waiters.wait(new Promise<void>((resolve) => (leave = resolve)));
  leave();
  await wait;
});
