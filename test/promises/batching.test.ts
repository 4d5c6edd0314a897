/** An app with `inferenceBatch`: calls run together, and each client gets the answer to its own input. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { askTogether, statuses } from '../helpers/batch-server.js';
import { call, fixture } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

describe('batches of three', { timeout: 240_000 }, () => {
  const args = ['--workers', '1', '--batch-size', '3', '--max-batch-delay', '60s'];
  const shared = shareServer(fixture('batches.mjs'), { args, expectedRestarts: 1 });

  test('three calls run together as soon as they are three, and each gets the entry of its own input', async () => {
    const answers = await askTogether(shared.server, [{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
    assert.deepEqual(
      answers
        .map((answer) => answer.json<{ name: string; id: string; of: number }>())
        .map(({ name, id, of }) => [name, id, of]),
      [
        ['a', 'id-0', 3],
        ['b', 'id-1', 3],
        ['c', 'id-2', 3],
      ],
    );
    assert.deepEqual(shared.cues.notes(), ['run a b c']);
  });

  test('six calls run as two batches, one after the other', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const answers = await askTogether(
      shared.server,
      names.map((name) => ({ name })),
    );
    assert.deepEqual(
      answers.map((answer) => answer.json<{ name: string; of: number }>()).map(({ name, of }) => [name, of]),
      names.map((name) => [name, 3]),
    );
    assert.equal(shared.cues.notes().length, 2);
  });

  test('an entry that is an error or a Response is the answer to its own call alone', async () => {
    const answers = await askTogether(shared.server, [
      { name: 'a', gives: 'Error' },
      { name: 'b', gives: 'Response' },
      { name: 'c' },
    ]);
    assert.deepEqual(statuses(answers), [500, 418, 200]);
    assert.equal(answers[1]?.text, 'b');
  });

  test('a malformed body is 400 for its own client, and the others run without it', async () => {
    const [bad, ...good] = await Promise.all([
      call(shared.server.url, '{"name":'),
      ask(shared.server, { name: 'a' }),
      ask(shared.server, { name: 'b' }),
    ]);
    assert.deepEqual([bad.status, errorOf(bad).code], [400, 'SERVE_BAD_BODY']);
    assert.deepEqual(statuses(good), [200, 200]);
    assert.deepEqual(shared.cues.notes(), ['run a b']);
  });

  test('a throw fails all calls of its batch, and the next batch is answered', async () => {
    const failed = await askTogether(shared.server, [
      { name: 'a' },
      { name: 'b', throws: 'boom' },
      { name: 'c' },
    ]);
    assert.deepEqual(
      failed.map((answer) => errorOf(answer).code),
      Array(3).fill('SERVE_INFERENCE_FAILED'),
    );
    const next = await askTogether(shared.server, [{ name: 'd' }, { name: 'e' }, { name: 'f' }]);
    assert.deepEqual(statuses(next), [200, 200, 200]);
  });

  test('a client that leaves while its batch waits is not part of it', async () => {
    const leaving = new AbortController();
    const left = ask(shared.server, { name: 'left' }, { signal: leaving.signal });
    await shared.server.until(({ model }) => model.queue.waiting === 1);
    leaving.abort();
    await assert.rejects(left);
    await shared.server.until(({ model }) => model.queue.waiting === 0);
    await askTogether(shared.server, [{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
    assert.deepEqual(shared.cues.notes(), ['run a b c']);
  });

  test('the death of the worker fails every call of its batch, and none of them runs again', async () => {
    const answers = await askTogether(shared.server, [
      { name: 'a' },
      { name: 'b', dies: 'SIGKILL' },
      { name: 'c' },
    ]);
    assert.deepEqual(
      answers.map((answer) => errorOf(answer).code),
      Array(3).fill('SERVE_WORKER_LOST'),
    );
    const next = await askTogether(shared.server, [{ name: 'd' }, { name: 'e' }, { name: 'f' }]);
    assert.deepEqual(statuses(next), [200, 200, 200]);
    assert.deepEqual(shared.cues.notes(), ['run a b c', 'run d e f']);
  });
});
