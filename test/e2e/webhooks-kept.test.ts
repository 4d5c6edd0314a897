/** Webhooks that are owed outlive a kill of their server: a store keeps them with the jobs. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { RedisServer } from '../processes/worker/api/store/redis-server.js';
import { ask } from '../helpers/ask.js';
import { needs } from '../helpers/needs.js';
import { startReceiver, type Arrival, type Receiver } from '../helpers/receiver.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { eventually, startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

async function killed(server: Server): Promise<void> {
  server.process.kill('SIGKILL');
  await server.ended;
}

function storeArgs(t: TestContext): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'banana-webhooks-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return ['--jobs', `local:${folder}`];
}

const idOf = ({ headers }: Arrival): unknown => headers['webhook-id'];

/** Resolves once so many webhooks were tried, however often each. */
function untilTried({ arrivals }: Receiver, count: number): Promise<void> {
  return eventually(
    () => new Set(arrivals.map(idOf)).size === count,
    60_000,
    () => `tried: ${arrivals.map(idOf).join()}`,
  );
}

withOneRuntime(({ app }) => {
  test(
    'the end of a job, and an answer, that no receiver took are posted by the next server, with the same ids',
    LIMIT,
    async (t) => {
      let isUp = false;
      const receiver = await startReceiver(t, (response) => response.writeHead(isUp ? 200 : 503).end());
      const start = { t, env: { HOOK: receiver.url }, args: storeArgs(t) };
      const first = await startServer(app('result-webhook'), start);
      await ask({ url: `${first.url}/slow` }, { ask: 1 }, { id: 'job' });
      await ask(first, { ask: 2 }, { id: 'call' });
      await untilTried(receiver, 2);
      await killed(first);
      await eventually(
        () => receiver.connections() === 0, // what it has sent is read
        60_000,
        () => `${receiver.connections()} connections are open`,
      );
      const tried = receiver.arrivals.map(idOf).sort();
      const before = receiver.arrivals.length;
      isUp = true;
      const second = await startHere(app('result-webhook'), start);
      await receiver.until(before + 2);
      const arrived = receiver.arrivals.slice(before);
      assert.deepEqual(arrived.map(idOf).sort(), [...new Set(tried)]);
      assert.deepEqual(
        arrived
          .map(({ headers, body }) => `${String(headers['x-banana-request-id'])} ${body.toString()}`)
          .sort(),
        ['call {"answer":2}', 'job {"slow":1}'],
      );
      await second.stop();
      const third = await startHere(app('result-webhook'), start);
      await third.stop();
      assert.equal(receiver.arrivals.length, before + 2, 'what was delivered is forgotten');
    },
  );

  test(
    'a stop leaves webhooks that it could not deliver to the next server, and says so',
    LIMIT,
    async (t) => {
      const receiver = await startReceiver(t, (response, count) => {
        if (count > 1) response.end(); // the first attempt hangs
      });
      const start = { t, env: { HOOK: receiver.url }, args: storeArgs(t) };
      const first = await startHere(app('result-webhook'), {
        ...start,
        args: [...start.args, '--drain-timeout', '1s'],
      });
      await ask(first, { ask: 1 }, { id: 'call' });
      await receiver.until(1);
      await first.stop();
      assert.match(first.stderr(), /waits in the store: the server stopped/);
      const second = await startHere(app('result-webhook'), start);
      await receiver.until(2);
      assert.equal(new Set(receiver.arrivals.map(idOf)).size, 1);
      await second.stop();
    },
  );

  test(
    'with Redis, a server that lives sends what one that was killed owed',
    { ...LIMIT, skip: needs('redis-server') },
    async (t) => {
      const redis = await RedisServer.start();
      t.after(() => redis.down());
      let isUp = false;
      const taken = new Set<unknown>();
      const receiver = await startReceiver(t, (response, _count, arrival) => {
        if (isUp) taken.add(idOf(arrival));
        response.writeHead(isUp ? 200 : 503).end();
      });
      const args = ['--jobs', `redis://127.0.0.1:${redis.port}`];
      const start = { t, env: { HOOK: receiver.url }, args };
      const first = await startServer(app('result-webhook'), start);
      await ask({ url: `${first.url}/slow` }, { ask: 1 }, { id: 'job' });
      await ask(first, { ask: 2 }, { id: 'call' });
      await untilTried(receiver, 2);
      const second = await startHere(app('result-webhook'), start);
      await killed(first);
      isUp = true;
      await eventually(
        () => taken.size === 2,
        60_000,
        () => `taken: ${[...taken].join()}`,
      );
      assert.deepEqual(taken, new Set(receiver.arrivals.map(idOf)));
      await second.stop();
    },
  );
});
