import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Closing } from '../../../../supervisor/server/host/closing.js';
import { deferred, nextTurn } from '../../../protocol/streams.js';

/** A closing whose parts a, b and c note their ends; b closes when the test lets it. */
function setUp() {
  const story: string[] = [];
  const closing = new Closing((thrown) => story.push(String(thrown)));
  const b = deferred();
  closing.onClose(() => void story.push('a closed'));
  closing.onKill(() => story.push('a killed'));
  closing.onClose(async () => {
    story.push('b closes');
    await b.promise;
    story.push('b closed');
  });
  closing.onKill(() => story.push('b killed'));
  closing.onClose(() => void story.push('c closed'));
  return { closing, story, letGo: b.resolve };
}

test('parts close in the reverse order, each once and after the one before has closed', async () => {
  const { closing, story, letGo } = setUp();
  const closed = Promise.all([closing.close(), closing.close()]);
  assert.deepEqual(story, ['c closed', 'b closes'], 'at once, as far as nothing is awaited');
  await nextTurn();
  assert.equal(story.length, 2);
  letGo();
  await closed;
  await closing.close();
  assert.deepEqual(story, ['c closed', 'b closes', 'b closed', 'a closed']);
});

test('a part that fails to end is reported, and the others end', async () => {
  const { closing, story, letGo } = setUp();
  closing.onClose(() => Promise.reject(new Error('d')));
  closing.onClose(() => {
    throw new Error('e');
  });
  closing.onKill(() => {
    throw new Error('f');
  });
  letGo();
  closing.kill();
  assert.deepEqual(story.splice(0), ['Error: f', 'b killed', 'a killed']);
  await closing.close();
  assert.deepEqual(story, ['Error: e', 'Error: d', 'c closed', 'b closes', 'b closed', 'a closed']);
});

test('the exit of the process kills the parts until they are closed', async () => {
  const before = process.listeners('exit');
  const { closing, letGo } = setUp();
  assert.deepEqual(process.listeners('exit'), [...before, closing.kill]);
  letGo();
  await closing.close();
  assert.deepEqual(process.listeners('exit'), before);
});
