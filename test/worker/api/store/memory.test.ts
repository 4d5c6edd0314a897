import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryBackend } from '../../../../worker/api/store/memory.js';
import { sweepRegularly } from '../../../../worker/api/store/rules.js';

const VALUE = Buffer.from('value');

test('expired values leave with the writes that follow', async (t) => {
  t.mock.timers.enable({ apis: ['Date', 'setInterval'] });
  const memory = new MemoryBackend();
  t.after(() => memory.close());
  await memory.set('lasting', VALUE, null);
  for (let i = 0; i < 10_000; i += 1) {
    await memory.set(`key ${i}`, VALUE, 100);
    t.mock.timers.setTime(i);
    assert.ok(memory.size <= 150, `at ${i}, 100 are alive and ${memory.size} are held`);
  }
  assert.ok(await memory.get('lasting'));
});

test('expired values are removed without further writes', async (t) => {
  t.mock.timers.enable({ apis: ['Date', 'setInterval'] });
  const memory = new MemoryBackend();
  const sweeping = sweepRegularly(memory);
  t.after(() => clearInterval(sweeping));
  await memory.set('lasting', VALUE, null);
  for (let i = 0; i < 3000; i += 1) await memory.set(`key ${i}`, VALUE, 100);
  t.mock.timers.tick(60_000);
  assert.equal(memory.size, 1);
  assert.ok(await memory.get('lasting'));
});
