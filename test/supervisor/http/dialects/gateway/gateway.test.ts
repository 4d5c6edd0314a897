/** Long polls of the gateway, with a mocked clock: an hour of them in no time. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import type { Call } from '../../../../../supervisor/dispatch/call.js';
import { countedJobs, fakeModel, onlyModel, pullJobs, serveHandler } from '../../serve-handler.js';

const LIMIT = { timeout: 240_000 };
const HEAD = { status: 200, contentType: 'application/json', headers: '', phrase: '' };

interface Reply {
  readonly message: string;
  readonly callID: string;
  readonly finished?: boolean;
  readonly modelOutputs?: readonly unknown[];
}

test(
  'a start is held for 50 s and then gets a callID to poll; a check is held until the job ends or 50 s have passed',
  LIMIT,
  async (t) => {
    const gateway = await openGateway(t);
    const started = gateway.post('/start/v4/', { modelInputs: 1 });
    await gateway.untilHeld(1);
    t.mock.timers.tick(49_999);
    assert.equal(gateway.heldNow(), 1);
    t.mock.timers.tick(1);
    const { message, callID, finished } = await started;
    assert.deepEqual([message, finished], ['success', false]);

    const running = gateway.post('/check/v4/', { callID, longPoll: true });
    await gateway.untilHeld(1);
    t.mock.timers.tick(50_000);
    assert.equal((await running).message, 'running');

    const ended = gateway.post('/check/v4/', { callID, longPoll: true });
    await gateway.untilHeld(1);
    const [call] = gateway.calls as [Call];
    call.reply(HEAD, [Buffer.from('"out"')], 5, 1);
    assert.deepEqual((await ended).modelOutputs, ['out']);
    assert.equal(gateway.heldNow(), 0);
  },
);

test('a client that leaves a long poll frees its timer', LIMIT, async (t) => {
  const gateway = await openGateway(t);
  const { callID } = await gateway.post('/start/v2/', {});
  const poll = gateway.open('/check/v2/', { callID, longPoll: true });
  await gateway.untilHeld(1);
  poll.destroy();
  await gateway.untilHeld(0);
});

test('a result is kept for at least ten minutes, but not forever', LIMIT, async (t) => {
  const gateway = await openGateway(t);
  const { callID } = await gateway.post('/start/v2/', {});
  (gateway.calls[0] as Call).reply(HEAD, [Buffer.from('1')], 1, 1);
  t.mock.timers.tick(10 * 60_000);
  assert.deepEqual((await gateway.post('/check/v2/', { callID })).modelOutputs, [1]);
  t.mock.timers.tick(10 * 60_000);
  assert.match((await gateway.post('/check/v2/', { callID })).message, /error: callID does not exist/);
});

interface Gateway {
  /** The jobs that were started. */
  readonly calls: readonly Call[];
  open(path: string, body: object): ReturnType<typeof request>;
  post(path: string, body: object): Promise<Reply>;
  /** Requests that are waiting for a job. */
  heldNow(): number;
  untilHeld(count: number): Promise<void>;
}

/** The dialect over real HTTP, with a queue that never runs its jobs. */
async function openGateway(t: TestContext): Promise<Gateway> {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const calls: Call[] = [];
  const keptJobs = countedJobs();
  pullJobs(keptJobs, 'the-only-one', (call) => calls.push(call));
  const model = fakeModel('the-only-one');
  const url = await serveHandler(t, { models: onlyModel(model), jobs: keptJobs });
  const open = (path: string, body: object): ReturnType<typeof request> => {
    const outgoing = request(url + path, { method: 'POST' });
    outgoing.on('error', () => {}); // of requests that the test ends
    outgoing.end(JSON.stringify(body));
    return outgoing;
  };
  return {
    calls,
    open,
    post: async (path, body) => {
      const [response] = (await once(open(path, body), 'response')) as [IncomingMessage];
      return JSON.parse(await text(response)) as Reply;
    },
    heldNow: () => keptJobs.watchers.count,
    untilHeld: async (count) => {
      const endMs = performance.now() + 60_000;
      while (keptJobs.watchers.count !== count) {
        assert.ok(performance.now() < endMs, `${keptJobs.watchers.count} are held, not ${count}`);
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}
