import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StartCosts } from '../../../supervisor/budget/learner.js';

test('the first worker of a model takes what its workers share too; each is the most that was seen', () => {
  const costs = new StartCosts();
  assert.equal(costs.find('m@1', 'memory', true), null);
  costs.learn('m@1', 'memory', true, 100);
  assert.equal(costs.find('m@1', 'memory', false), 100, 'as the first one, as long as no other was seen');
  costs.learn('m@1', 'memory', false, 60);
  costs.learn('m@1', 'memory', false, 50);
  costs.learn('m@1', 'memory', true, 120);
  assert.deepEqual([costs.find('m@1', 'memory', true), costs.find('m@1', 'memory', false)], [120, 60]);
  assert.equal(costs.find('m@1', 'gpu 0', true), null);
});

test('the least with which a worker was ready is kept beside', () => {
  const costs = new StartCosts();
  for (const bytes of [80, 70, 90]) costs.learnReady('m@1', 'memory', bytes);
  assert.equal(costs.findLeast('m@1', 'memory'), 70);
  assert.equal(costs.find('m@1', 'memory', true), null);
});

test('a model that is removed is forgotten in every pool', () => {
  const costs = new StartCosts();
  for (const model of ['m@1', 'm@2'])
    for (const pool of ['memory', 'gpu 0']) costs.learn(model, pool, true, 1);
  costs.forget('m@1');
  assert.deepEqual(
    costs.all().map(({ model }) => model),
    ['m@2', 'm@2'],
  );
});
