/** Faults of clients and handlers, and kill -9, cost a server of custom services only the calls concerned. */
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { makeCues, type Cues } from '../helpers/cues.js';
import { editedApp } from '../helpers/edited-app.js';
import {
  managementOf,
  startManagedCommand,
  workerProcesses,
  type ManagedCommand,
} from '../helpers/managed-command.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { call, eventually, isAlive, type Answer, type ModelStatus } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };

/** Worth waiting for: batches of the tests are full, or begin for another reason, long before it is over. */
const LONG_MS = 30_000;

/** A service outside the store. */
const SECRET = 'export const handle = () => { throw new Error("reached"); };';

/** An answer in short: the item's entry, or the error. */
function inShort({ status, text }: Answer): string {
  const { name, of, message } = JSON.parse(text) as { name?: string; of?: number; message?: string };
  return message === undefined ? `${status} ${name} of ${of}` : `${status} ${message}`;
}

withEachRuntime(({ app }) => {
  const store = dirname(app('works-service'));
  const register = `POST /models?url=${basename(app('works-service'))}`;

  describe('on one server', LIMIT, () => {
    const args = ['--model-store', store, '--management-port', '0'];
    const shared = shareHere(null, { args });
    /** Each test registers its models and removes them, and their restarts with them. */
    const ofShared = async (): Promise<ManagedCommand & { cues: Cues }> => {
      const { server, cues } = shared;
      return { server, cues, management: await managementOf(server) };
    };

    test('a service, one batch at a time', LIMIT, async (t) => {
      const { server, management, cues } = await ofShared();
      const options = `batch_size=8&max_batch_delay=${LONG_MS}`;
      assert.equal(
        await management.said(`${register}&initial_workers=1&model_name=m&${options}`),
        '200 Workers scaled',
      );
      const pids = workerProcesses(server);
      const runBatch = (wishes: readonly object[]): Promise<Answer[]> =>
        Promise.all(wishes.map((wish, i) => management.infer('m', { name: `n${i}`, ...wish })));
      const eight = (third: object): object[] => Array.from({ length: 8 }, (_, i) => (i === 2 ? third : {}));
      const allNamed = '0 1 2 3 4 5 6 7'.replaceAll(/\d/g, 'n$&');

      await t.test('the handler throws: all 8 are answered, by the same process', async () => {
        const answers = await runBatch(eight({ throws: 'boom' }));
        assert.deepEqual(answers.map(inShort), Array(8).fill('503 Prediction failed'));
        assert.deepEqual(cues.notes(), [`run ${allNamed}`]);
        assert.deepEqual(await management.pids('m'), pids);
      });

      for (const how of ['by exception', 'by status'])
        await t.test(`item 3 fails ${how}: the others are answered`, async () => {
          const answers = await runBatch(eight({ fails: how }));
          const expected = Array.from({ length: 8 }, (_, i) => `200 n${i} of 8`);
          expected[2] = how === 'by status' ? '418 n2 of 8' : '418 n2 is wrong';
          assert.deepEqual(answers.map(inShort), expected);
          assert.equal(answers[2]?.headers.get('connection'), 'close');
        });

      await t.test(
        'item 3 is not JSON: the others are answered, and the handler sees only them',
        async () => {
          const rest = Array.from({ length: 8 }, (_, i) => i).filter((i) => i !== 2);
          const [bad, ...good] = await Promise.all([
            call(`${server.url}/predictions/m`, '{"name":'),
            ...rest.map((i) => management.infer('m', { name: `n${i}` })),
          ]);
          assert.deepEqual([bad.status, bad.json<{ type: string }>().type], [400, 'BadRequestException']);
          assert.deepEqual(
            good.map(inShort),
            rest.map((i) => `200 n${i} of 7`),
          );
          assert.equal(cues.notes().at(-1), `run ${allNamed.replace('n2 ', '')}`);
        },
      );

      const { workers } = await management.describe('m');
      assert.deepEqual([workers.map(({ restarts }) => restarts), workerProcesses(server)], [[0], pids]);
      await management.said('DELETE /models/m');
    });

    test(
      '100 malformed posts to a service: 400 each, it never sees one, and its process stays',
      LIMIT,
      async () => {
        const { server, management, cues } = await ofShared();
        await management.said(`${register}&initial_workers=1&model_name=m&batch_size=8&max_batch_delay=0`);
        const pids = workerProcesses(server);
        const malformed: readonly (readonly [type: string, body: string | Uint8Array])[] = [
          ['application/json', '{"name": '],
          ['application/json; charset=utf-8', new Uint8Array([0x22, 0xff, 0xfe, 0x22])],
          ['application/json', '['.repeat(200_000)],
          ['application/json', ''],
          ['text/plain', new Uint8Array([0xff, 0xfe])],
          [
            'multipart/form-data; boundary=x',
            '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nno end',
          ],
          [
            'multipart/form-data; boundary=x',
            '--x\r\nContent-Disposition: form-data; name="a"\r\nContent-Type: application/json\r\n\r\n{\r\n--x--\r\n',
          ],
        ];
        const answers = await Promise.all(
          Array.from({ length: 100 }, (_, i) => {
            const [type, body] = malformed[i % malformed.length] as (typeof malformed)[number];
            return call(`${server.url}/predictions/m`, body, { 'content-type': type });
          }),
        );
        for (const [i, { status, text }] of answers.entries()) {
          assert.equal(status, 400, `${malformed[i % malformed.length]?.[0]}: ${text}`);
          assert.equal((JSON.parse(text) as { type: string }).type, 'BadRequestException');
        }
        assert.deepEqual(cues.notes(), []);
        assert.equal(inShort(await management.infer('m', { name: 'good' })), '200 good of 1');
        assert.deepEqual([await management.pids('m'), workerProcesses(server)], [pids, pids]);
        await management.said('DELETE /models/m');
      },
    );

    test('kill -9 under load costs the calls of that process, and is described as it is', LIMIT, async () => {
      const { server, management, cues } = await ofShared();
      await management.said(`${register}&model_name=m&initial_workers=2`);
      const load = startLoad(() => management.infer('m', { name: 'load' }));
      const held = management.infer('m', { name: 'held', until: 'never' });
      await cues.untilNoted('run held');
      const other = await load.goesOn();
      const before = workerProcesses(server);
      const victim = before.find((pid) => pid !== other) ?? 0;
      assert.deepEqual([before.length, before.includes(other)], [2, true]);
      cues.give('init may not end');
      process.kill(victim, 'SIGKILL');

      assert.equal(inShort(await held), '500 Worker died.');
      assert.ok(!(await management.pids('m')).includes(victim));
      const isReplaced = (): boolean => workerProcesses(server).length === 2;
      await eventually(isReplaced, 60_000, () => 'no worker has taken its place');
      const described = await management.describe('m');
      assert.equal(described.status, 'Partial Healthy');
      assert.deepEqual(
        described.workers.map(({ pid }) => pid ?? 0).sort((a, b) => a - b),
        workerProcesses(server),
      );
      for (const { pid, status, restarts, lastError = '' } of described.workers) {
        const isOld = before.includes(pid ?? 0);
        assert.deepEqual([status, restarts], isOld ? ['READY', 0] : ['LOADING', 1]);
        assert.match(lastError, isOld ? /^$/ : /^signal SIGKILL/);
      }
      await load.goesOn();
      cues.give('init may end');
      const isHealthy = async (): Promise<boolean> => (await management.describe('m')).status === 'Healthy';
      await eventually(isHealthy, 60_000, () => 'it does not become healthy again');
      const pids = (await management.pids('m')).sort((a, b) => a - b);
      assert.deepEqual([pids, pids.includes(victim)], [workerProcesses(server), false]);
      const answers = await load.end();
      assert.deepEqual([...new Set(answers.map(inShort))], ['200 load of 1']);
      await management.said('DELETE /models/m');
    });

    test(
      'a client of a service that leaves while its call waits: the call is never run',
      LIMIT,
      async (t) => {
        const { server, management, cues } = await ofShared();
        const waiting = async (model: string): Promise<number> => {
          const description = await management.manage(`GET /models/${model}`);
          return description.json<{ jobQueueStatus: { pendingRequests: number } }>().jobQueueStatus
            .pendingRequests;
        };
        const untilWaiting = (model: string, count: number): Promise<void> =>
          eventually(
            async () => (await waiting(model)) === count,
            60_000,
            () => `${model}: there are never ${count} in line`,
          );
        const leave = (model: string): { leave: AbortController; left: Promise<void> } => {
          const leaving = new AbortController();
          const body = JSON.stringify({ name: 'leaves' });
          const left = assert.rejects(
            call(`${server.url}/predictions/${model}`, body, undefined, { signal: leaving.signal }),
            { name: 'AbortError' },
          );
          return { leave: leaving, left };
        };

        await t.test('for the worker', async () => {
          await management.said(`${register}&initial_workers=1&model_name=one`);
          const runs = management.infer('one', { name: 'runs', until: 'go on' });
          await cues.untilNoted('run runs');
          const { leave: leaving, left } = leave('one');
          await untilWaiting('one', 1);
          const stays = management.infer('one', { name: 'stays' });
          await untilWaiting('one', 2);
          leaving.abort();
          await left;
          await untilWaiting('one', 1);
          cues.give('go on');
          assert.deepEqual([inShort(await runs), inShort(await stays)], ['200 runs of 1', '200 stays of 1']);
          assert.deepEqual(cues.notes(), ['run runs', 'run stays']);
        });

        await t.test('for others to join its batch', async () => {
          await management.said(
            `${register}&initial_workers=1&model_name=two&batch_size=2&max_batch_delay=${LONG_MS}`,
          );
          const { leave: leaving, left } = leave('two');
          await untilWaiting('two', 1);
          leaving.abort();
          await left;
          await untilWaiting('two', 0);
          const answers = await Promise.all(['a', 'b'].map((name) => management.infer('two', { name })));
          assert.deepEqual(answers.map(inShort), ['200 a of 2', '200 b of 2']);
          assert.equal(cues.notes().at(-1), 'run a b');
        });

        await management.said('DELETE /models/one');
        await management.said('DELETE /models/two');
      },
    );

    test('a batch of a service past its time limit', LIMIT, async (t) => {
      const { server, management } = await ofShared();
      const options = `batch_size=2&max_batch_delay=${LONG_MS}&response_timeout=3`;
      await management.said(`${register}&initial_workers=1&model_name=m&${options}`);
      const [pid = 0] = workerProcesses(server);
      const runBatch = async (wish: object): Promise<string[]> => {
        const answers = await Promise.all([
          management.infer('m', { name: 'a' }),
          management.infer('m', { name: 'b', ...wish }),
        ]);
        return answers.map(inShort);
      };
      const late = Array<string>(2).fill('504 The call ran longer than 3000 ms (response_timeout).');
      const served = ['200 a of 2', '200 b of 2'];

      await t.test(
        'that ends within the grace: 504 for all of it, and the process serves the next',
        async () => {
          assert.deepEqual(await runBatch({ hangs: 'obedient' }), late);
          assert.deepEqual(await runBatch({}), served);
          assert.deepEqual(workerProcesses(server), [pid]);
        },
      );

      await t.test(
        'that does not: 504 for all of it, the process is gone, another one serves the next',
        async () => {
          assert.deepEqual(await runBatch({ hangs: 'deaf' }), late);
          assert.deepEqual(await runBatch({}), served);
          assert.ok(!isAlive(pid));
          const [next = 0, ...others] = workerProcesses(server);
          assert.deepEqual([others, await management.pids('m')], [[], [next]]);
          const { workers } = await management.describe('m');
          assert.match(workers[0]?.lastError ?? '', /run timeout/);
        },
      );

      await management.said('DELETE /models/m');
    });
  });
});

/** The front alone registers models; it knows no language. */
withOneRuntime(({ app }) => {
  test('a synchronous registration that is still waiting for its workers', LIMIT, async (t) => {
    const start = async (): Promise<ManagedCommand & { cues: Cues; registered: Promise<string> }> => {
      const cues = makeCues(t);
      cues.give('init may not end');
      const managed = await startManagedCommand(t, { env: cues.env }, dirname(app('works-service')));
      const registered = managed.management.said(
        `POST /models?url=${basename(app('works-service'))}&initial_workers=1&model_name=m`,
      );
      // A process that is there may be that which finds the interpreter.
      await managed.server.until(({ models }) => typeof models[0]?.workers[0]?.pid === 'number');
      return { ...managed, cues, registered };
    };

    await t.test('gets an error that the model was unregistered', async () => {
      const { server, management, registered } = await start();
      assert.equal(await management.said('DELETE /models/m'), '200 Model "m" unregistered');
      assert.equal(await registered, '404 The model m was unregistered before its workers were ready.');
      assert.deepEqual(workerProcesses(server), []);
      await server.stop();
    });

    await t.test('takes no call along when the server stops: those that are held are answered', async () => {
      const { server, management, registered, cues } = await start();
      const held = management.infer('m', { name: 'held' });
      const isHeld = async (): Promise<boolean> => {
        const { queue } = (await server.status()).models[0] as ModelStatus;
        return queue.waiting + queue.arriving === 1;
      };
      await eventually(isHeld, 60_000, () => 'the call does not arrive');
      server.process.kill('SIGTERM');
      assert.equal(await registered, '503 The server is shutting down.');
      cues.give('init may end');
      assert.equal(inShort(await held), '200 held of 1');
      assert.deepEqual(await server.ended, { code: 0, signal: null });
    });
  });
});

test('a url that points outside the store registers nothing and starts nothing', LIMIT, async (t) => {
  const { path } = editedApp(t, {
    'secret/service.mjs': SECRET,
    'store/m/other.mjs': SECRET,
    'store-secret/service.mjs': SECRET,
  });
  for (const [target, link] of [
    ['secret', 'store/folder'],
    [`secret/service.mjs`, `store/file.mjs`],
    [`secret/service.mjs`, `store/m/service.mjs`],
    ['store-secret', 'store/twin'],
  ] as const)
    symlinkSync(path(target), path(link));
  const { server, management } = await startManagedCommand(t, {}, path('store'));
  const rows: readonly (readonly [url: string, status: number])[] = [
    ['../secret', 404],
    ['../../x', 404],
    [`m/../../secret/service.mjs`, 404],
    ['..', 404],
    ['.', 404],
    ['%2e%2e/secret', 404],
    [path('secret'), 404],
    [path(`secret/service.mjs`), 404],
    [`file://${path('secret')}`, 404],
    ['folder', 404],
    [`folder/service.mjs`, 404],
    [`file.mjs`, 404],
    ['twin', 404],
    ['m', 400],
    [`m&handler=../../secret/service.mjs:handle`, 400],
    [`m&handler=service.mjs`, 400],
  ];
  const json = { 'content-type': 'application/json' };
  for (const [url, status] of rows) {
    const asQuery = await management.manage(`POST /models?url=${url}&model_name=x&initial_workers=1`);
    assert.equal(asQuery.status, status, `${url}: ${asQuery.text}`);
    const [plain = '', handler = 'handler='] = decodeURIComponent(url).split('&');
    const body = JSON.stringify({
      url: plain,
      handler: handler.slice('handler='.length),
      initial_workers: 1,
    });
    const asBody = await management.manage('POST /models', { body, headers: json });
    assert.equal(asBody.status, status, `${url}: ${asBody.text}`);
  }
  assert.deepEqual((await management.manage('GET /models')).json(), { models: [] });
  assert.deepEqual(workerProcesses(server), []);
  assert.ok(!server.stderr().includes('reached'), server.stderr());
  await server.stop();
});

interface Load {
  /** Resolves once a call is answered that began after this was asked, with the process that answered it. */
  goesOn(): Promise<number>;
  /** Every answer. */
  end(): Promise<Answer[]>;
}

const CLIENTS = 4;

function startLoad(ask: () => Promise<Answer>): Load {
  /** In the order in which they ended, each with its number in the order in which the calls began. */
  const ended: { readonly number: number; readonly answer: Answer }[] = [];
  let begun = 0;
  let isOver = false;
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (!isOver) {
      const number = (begun += 1);
      ended.push({ number, answer: await ask() });
      await delay(5); // the start of a worker needs the CPU, too
    }
  });
  return {
    goesOn: async () => {
      const before = begun;
      const next = (): Answer | undefined => ended.find(({ number }) => number > before)?.answer;
      await eventually(
        () => next() !== undefined,
        60_000,
        () => `only ${ended.length} calls of ${begun} were answered`,
      );
      return next()?.json<{ pid: number }>().pid ?? 0;
    },
    end: async () => {
      isOver = true;
      await Promise.all(clients);
      return ended.map(({ answer }) => answer);
    },
  };
}
