/** kill -9 of a worker: the call that it ran is lost, its client gets an error, every other call is answered. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { fixture, isAlive, type WorkerStatus } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

const pidOf = (worker: WorkerStatus | undefined): number => worker?.pid as number;

describe('kill -9 of one of two workers', { timeout: 240_000 }, () => {
  const args = ['--workers', '2', '--restart-limit', '0'];
  const shared = shareServer(fixture('works.mjs'), { args, expectedRestarts: 3 });

  /** The workers, once both are idle. */
  async function idleWorkers(): Promise<readonly WorkerStatus[]> {
    const { model } = await shared.server.until((status) =>
      status.model.workers.every(({ state }) => state === 'idle'),
    );
    return model.workers;
  }

  test('the client of a busy worker gets 500 SERVE_WORKER_LOST; the calls that run elsewhere or wait are answered', async () => {
    await idleWorkers();
    const lost = ask(shared.server, { until: 'never' }, { id: 'lost' });
    await shared.cues.untilNoted('begun lost');
    const { model } = await shared.server.status();
    const busy = pidOf(model.workers.find(({ state }) => state === 'busy'));
    const elsewhere = ask(shared.server, { until: 'go' }, { id: 'elsewhere' });
    await shared.cues.untilNoted('begun elsewhere');
    const waiting = [1, 2, 3].map((i) => ask(shared.server, { i }, { id: `waiting-${i}` }));
    await shared.server.until(({ model }) => model.queue.waiting === 3);

    process.kill(busy, 'SIGKILL');
    const answer = await lost;
    assert.equal(answer.status, 500, answer.text);
    assert.deepEqual([errorOf(answer).code, errorOf(answer).requestId], ['SERVE_WORKER_LOST', 'lost']);
    assert.match(errorOf(answer).message, /signal SIGKILL/);
    for (const { status, text } of await Promise.all(waiting)) assert.equal(status, 200, text);
    shared.cues.give('go');
    assert.equal((await elsewhere).status, 200);
    assert.equal(shared.cues.notes().length, 5, 'each call has begun once');
  });

  test('it is replaced, and /status and the log have the cause of its death and the call that it ran', async () => {
    const workers = await idleWorkers();
    assert.ok(workers.every((worker) => isAlive(pidOf(worker))));
    const exits = workers.flatMap(({ lastExit }) => lastExit ?? []);
    assert.deepEqual(
      exits.map(({ how, during, requestId }) => [how, during, requestId]),
      [['signal SIGKILL', 'call', 'lost']],
    );
    await shared.server.untilPrinted(/worker \d died \(signal SIGKILL\) while running call lost/);
  });

  test('the calls that come after the death of an idle worker are answered', async () => {
    const [first] = await idleWorkers();
    process.kill(pidOf(first), 'SIGKILL');
    const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => ask(shared.server, i)));
    for (const [i, answer] of answers.entries()) assert.equal(answer.json<{ input: number }>().input, i);
  });

  test('a call that was sent to the worker and had not begun runs once, in another worker', async () => {
    await idleWorkers();
    const held = ask(shared.server, { until: 'go' }, { id: 'held' });
    await shared.cues.untilNoted('begun held');
    const { model } = await shared.server.status();
    const idle = pidOf(model.workers.find(({ state }) => state === 'idle'));
    process.kill(idle, 'SIGSTOP');
    const unread = ask(shared.server, 'x'.repeat(4_000_000), { id: 'unread' });
    await shared.server.until(({ model }) => model.workers.find(({ pid }) => pid === idle)?.held === 1);
    process.kill(idle, 'SIGKILL');
    assert.equal((await unread).status, 200);
    shared.cues.give('go');
    assert.equal((await held).status, 200);
    assert.deepEqual(shared.cues.notes(), ['begun held', 'begun unread']);
  });
});
