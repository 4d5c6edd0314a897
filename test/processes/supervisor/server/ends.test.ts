/** The order in which the parts of a server end: one that ends too late may start, take or lose something. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { MemoryBudget } from '../../../../supervisor/budget/memory-budget.js';
import type { KeptWebhook } from '../../../../supervisor/jobs/job-record.js';
import type { JobStore } from '../../../../supervisor/jobs/job-store.js';
import { MemoryStore } from '../../../../supervisor/jobs/memory-store.js';
import { ManagedModel } from '../../../../supervisor/models/model.js';
import { OutputWriter } from '../../../../supervisor/observe/output-writer.js';
import type { ServeOptions } from '../../../../supervisor/plan/given-options.js';
import { planServer, type ServerPlan } from '../../../../supervisor/plan/plan-server.js';
import { OrphanGuard } from '../../../../supervisor/processes/orphan-guard.js';
import { SpareProcesses } from '../../../../supervisor/processes/spare-processes.js';
import { Server } from '../../../../supervisor/server/server.js';
import { startReceiver } from '../../../helpers/receiver.js';
import { fixture } from '../../../helpers/server.js';
import { deferred } from '../../../protocol/streams.js';

const LIMIT = { timeout: 60_000 };
const STORE_LIMITS = { retentionMs: 60_000, maxBytes: 1024 ** 2 };

/** The plan of a server whose only model has no worker before its first call. */
function planOf(options: ServeOptions = {}): Promise<ServerPlan> {
  const quiet = { host: '127.0.0.1', port: 0, logLevel: 'silent', gpus: 'none', minWorkers: 0 } as const;
  return planServer({ app: fixture('works.mjs'), ...quiet, ...options }, {});
}

/** Notes each call of this method, of one object or of all objects of a class. */
function note<Name extends string>(
  t: TestContext,
  story: string[],
  part: string,
  owner: Record<Name, () => unknown>,
  name: Name,
): void {
  const real = owner[name];
  owner[name] = function (this: unknown) {
    story.push(part);
    return real.call(this);
  };
  t.after(() => void (owner[name] = real));
}

/** A store that outlives the server, and finds this webhook of another process when it is stopped. */
function storeThatFinds(webhook: KeptWebhook): { store: JobStore; asked: Promise<void> } {
  const asked = deferred<void>();
  const found = deferred<readonly KeptWebhook[]>();
  const store = Object.assign(new MemoryStore(STORE_LIMITS), {
    isDurable: true,
    takeWebhooks: () => {
      asked.resolve();
      return found.promise;
    },
    stop: async () => {
      found.resolve([webhook]);
      await delay(50); // enough for a server that still takes webhooks
    },
  });
  return { store, asked: asked.promise };
}

test('a webhook that the store finds while the jobs stop is left to the next server', LIMIT, async (t) => {
  const receiver = await startReceiver(t);
  const body = Buffer.from('{}');
  const webhook = { id: 'msg_1', url: receiver.url, body, contentType: 'application/json', requestId: 'r' };
  const { store, asked } = storeThatFinds({ of: 'app', webhook });
  const server = new Server(await planOf(), store);
  await server.open();
  await asked;
  assert.equal((await server.close()).reason, 'drained');
  assert.equal(receiver.arrivals.length, 0);
});

for (const [end, before] of [
  ['close', ['spares', 'memory']],
  ['kill', ['spares']],
] as const) {
  test(`at a ${end} the ${before.join(' and ')} close before workers are killed`, LIMIT, async (t) => {
    const server = new Server(await planOf({ memoryBudget: '1 GB' }), new MemoryStore(STORE_LIMITS));
    await server.open();
    const story: string[] = [];
    note(t, story, 'spares', SpareProcesses.prototype, 'close');
    note(t, story, 'memory', MemoryBudget.prototype, 'close');
    note(t, story, 'workers', ManagedModel.prototype, 'killAll');
    void server[end]();
    await server.ended;
    const first = story.slice(0, story.indexOf('workers'));
    assert.deepEqual([...new Set(first)], before);
    assert.deepEqual([...new Set(story)].sort(), ['memory', 'spares', 'workers']);
  });
}

test('an open that fails closes all parts; it is no end, and has no last line', LIMIT, async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const { port } = other.address() as AddressInfo;
  const plan = await planOf({ port, logLevel: 'info' });
  const store = new MemoryStore(STORE_LIMITS);
  const [story, lines]: [string[], string[]] = [[], []];
  note(t, story, 'jobs', store, 'close');
  note(t, story, 'models', plan.store, 'close');
  note(t, story, 'guard', OrphanGuard.prototype, 'close');
  t.mock.method(OutputWriter.prototype, 'writeLines', (text: string) => lines.push(text));
  const exitListeners = process.listenerCount('exit');
  const server = new Server(plan, store);
  let hasEnded = false;
  void server.ended.then(() => (hasEnded = true));
  await assert.rejects(server.open(), { code: 'EADDRINUSE' });
  await delay(10);
  assert.deepEqual([story.sort(), hasEnded], [['guard', 'jobs', 'models'], false]);
  assert.equal(process.listenerCount('exit'), exitListeners);
  assert.doesNotMatch(lines.join(''), /stopped/);
});
