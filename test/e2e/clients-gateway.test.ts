/** The published clients of majors 3 and 4, unmodified: what they ask of the platform's gateway, they get here. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { makeCues, type Cues, type Ending } from '../helpers/cues.js';
import { Thrown, startClient, type PublishedClient } from '../helpers/published-client.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { eventually, fixture, isAlive, type Server } from '../helpers/server.js';
import { startHere } from '../helpers/here.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };

interface Outcome {
  readonly id: string;
  readonly message: string;
  readonly created: number;
  readonly apiVersion: string;
  readonly callID?: string;
  readonly modelOutputs: readonly [unknown];
}

type At = Pick<Server, 'url'>;

interface Worked {
  readonly input: unknown;
  readonly pid: number;
}

withOneRuntime(({ app }) => {
  describe('on one server', () => {
    const shared = shareHere(app('works'), { args: ['--log-format', 'json'], expectedRestarts: 2 });
    const clientOf = shareClients(shared);

    for (const major of [3, 4] as const) {
      test(
        `${major}.0.0: run of a long call gets the reply as documented, in ${major === 3 ? 'a start and one check' : 'one request'}`,
        LIMIT,
        async () => {
          const { cues } = shared;
          const { client, paths } = clientOf(major);
          const run = client.ask<Outcome>('run', 'key', 'model', { until: 'go on', text: 'hi' });
          await cues.untilNoted(/^begun /);
          cues.give('go on');
          const { id, created, apiVersion, callID, modelOutputs, ...rest } = await run;
          assert.deepEqual(rest, { message: 'success' });
          assert.match(id, /^[\w-]{32,36}$/);
          assert.ok(Math.abs(created - Date.now() / 1000) < 60, 'seconds');
          assert.equal(typeof apiVersion, 'string');
          assert.deepEqual((modelOutputs[0] as Worked).input, { until: 'go on', text: 'hi' });
          assert.equal(modelOutputs.length, 1);
          if (major === 3) assert.match(callID as string, /^call_\w+$/);
          const asked = major === 3 ? ['/start/v2/', '/check/v2/'] : ['/start/v4/'];
          assert.deepEqual(paths, asked, 'a client asks again only when something has changed');
        },
      );

      test(
        `${major}.0.0: start answers while the call runs; check holds, and gives the result again`,
        LIMIT,
        async () => {
          const { cues } = shared;
          const { client, paths } = clientOf(major);
          const callID = await client.ask<string>('start', 'key', 'model', { until: 'go on' });
          await cues.untilNoted(/^begun /);
          const held = client.ask<Outcome>('check', 'key', callID);
          await eventually(
            () => paths.length === 2,
            60_000,
            () => `asked for ${paths.join()}`,
          );
          cues.give('go on');
          const first = await held;
          assert.equal(first.message, 'success');
          assert.deepEqual((first.modelOutputs[0] as Worked).input, { until: 'go on' });
          const again = await client.ask<Outcome>('check', 'key', callID);
          assert.deepEqual(again.modelOutputs, first.modelOutputs);
          assert.equal(cues.notes().filter((note) => note.startsWith('begun')).length, 1, 'ran once');
        },
      );

      test(`${major}.0.0: a megabyte of non-ASCII text goes there and back`, LIMIT, async () => {
        const { client } = clientOf(major);
        const inputs = { text: 'Grüße, 世界 🍌 \u2028'.repeat(50_000) };
        const { modelOutputs } = await client.ask<Outcome>('run', 'key', 'model', inputs);
        assert.ok(Buffer.byteLength(inputs.text) > 1e6);
        const { input } = modelOutputs[0] as Worked;
        assert.ok(JSON.stringify(input) === JSON.stringify(inputs), 'not a character is different');
      });

      test(
        `${major}.0.0: kill -9 of the worker fails the run that it had, and the next one works`,
        LIMIT,
        async () => {
          const { cues, server } = shared;
          const { client } = clientOf(major);
          const run = client.ask('run', 'key', 'model', { until: 'never' });
          await cues.untilNoted(/^begun /);
          process.kill((await server.status()).model.workers[0]?.pid as number, 'SIGKILL');
          await assert.rejects(run, says(/^inference server error: .*SIGKILL/));
          assert.equal((await client.ask<Outcome>('run', 'key', 'model', {})).message, 'success');
        },
      );
    }

    test('3.0.0: feedback is taken, and logged in one bounded line', LIMIT, async () => {
      const { server } = shared;
      const { client } = clientOf(3);
      const feedback = { rating: 'süß', text: 'x'.repeat(10_000) };
      const reply = await client.ask<Outcome>('feedback', 'key', 'call_1', feedback);
      assert.equal(reply.message, 'success');
      await server.untilPrinted('feedback on a call');
      const line = server
        .stderr()
        .split('\n')
        .find((text) => text.includes('feedback on a call')) as string;
      const logged = JSON.parse(line) as { callID: string; feedback: string };
      assert.equal(logged.callID, 'call_1');
      assert.ok(logged.feedback.startsWith('{"rating":"süß","text":"xxx'), logged.feedback);
      assert.ok(line.length < 3000, 'bounded');
    });

    test(
      "the Go SDK: run waits in /start/v3/ and gets a callID; start's result comes from /check/v3/",
      LIMIT,
      async () => {
        const { cues, server } = shared;
        const envelope = { id: 'uuid', created: 1649712752, apiKey: 'key' };
        const start = (modelInputs: object, startOnly: boolean): ReturnType<typeof goPost> =>
          goPost(server, '/start/v3/', { ...envelope, modelKey: 'model', modelInputs, startOnly });
        const run = start({ until: 'go on' }, false);
        await cues.untilNoted(/^begun /);
        cues.give('go on');
        const ran = await run;
        assert.deepEqual([ran.message, ran.finished, ran.modelOutputs.length], ['success', true, 1]);
        assert.match(ran.callID ?? '', /^call_\w+$/);
        const started = await start({ a: 1 }, true);
        assert.deepEqual([started.message, started.finished], ['success', false]);
        const check = { ...envelope, longPoll: true, callID: started.callID };
        const checked = await goPost(server, '/check/v3/', check);
        assert.deepEqual([checked.message, (checked.modelOutputs[0] as Worked).input], ['success', { a: 1 }]);
      },
    );
  });

  describe('on one server whose app ends calls as its input asks', () => {
    const shared = shareHere(app('ends-as-told'));
    const clientOf = shareClients(shared);

    for (const major of [3, 4] as const)
      test(`${major}.0.0: throws a string that names what went wrong`, LIMIT, async () => {
        const { client } = clientOf(major);
        const run = (end: string): Promise<unknown> => client.ask('run', 'key', 'model', { end });
        await assert.rejects(run('throws'), says(/^inference server error: The model failed on this call/));
        await assert.rejects(run('bytes'), says(/application\/octet-stream; only JSON/));
        await assert.rejects(run('stream'), says(/text\/plain; charset=utf-8; only JSON/));
        await assert.rejects(run('refuses'), says(/status 403: \{"message":"not for you"\}/));
        await assert.rejects(run('lies'), says(/application\/json; only JSON/));
        await assert.rejects(
          client.ask('check', 'key', 'call_unknown'),
          says(/callID does not exist.*: call_unknown$/),
        );
        const { modelOutputs } = (await run('list')) as Outcome;
        assert.deepEqual(modelOutputs, [[1, 'zwei', null]]);
      });

    test('a start that waits returns the callID of a call that failed, too', LIMIT, async () => {
      const { server } = shared;
      const failed = await goPost(server, '/start/v3/', { modelInputs: { end: 'throws' } });
      assert.match(failed.message, /^inference server error: /);
      assert.match(failed.callID ?? '', /^call_\w+$/);
      const checked = await goPost(server, '/check/v3/', { callID: failed.callID });
      assert.equal(checked.message, failed.message);
    });
  });
});

/** The queue, keys and the end of a server are the front's, which knows no language. */
describe('a server of its own', () => {
  test(
    '3.0.0, 4.0.0: runs that come during a slow init are held, however small the queue of calls is, and answered',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('init may not end');
      const args = ['--queue-size', '1'];
      const server = await startHere(fixture('works.mjs'), { t, args, env: cues.env });
      const held: Promise<Outcome>[] = [];
      for (const client of await bothClients(t, server))
        for (let i = 0; i < 2; i += 1) {
          const n = held.length + 1;
          held.push(client.ask<Outcome>('run', 'key', 'model', { n }));
          await server.until(({ model }) => model.queue.waiting === n);
        }
      assert.equal((await server.status()).state, 'starting');
      cues.give('init may end');
      for (const [i, run] of held.entries())
        assert.deepEqual(((await run).modelOutputs[0] as Worked).input, { n: i + 1 });
      await server.stop();
    },
  );

  test('3.0.0, 4.0.0: SIGTERM lets a run end and refuses the next one', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--drain-lag', '0ms', '--workers', '2'];
    const server = await startHere(fixture('works.mjs'), { t, env: cues.env, args });
    const clients = await bothClients(t, server);
    const runs = clients.map((client) => client.ask<Outcome>('run', 'key', 'model', { until: 'go on' }));
    await untilBegun(cues, 2);
    const { model } = await server.status();
    server.process.kill('SIGTERM');
    await server.until(({ state }) => state === 'draining');
    for (const client of clients)
      await assert.rejects(client.ask('run', 'key', 'model', {}), says(/error: The server is shutting down/));
    cues.give('go on');
    for (const run of runs) assert.equal((await run).message, 'success');
    assert.deepEqual(await server.ended, { code: 0, signal: null });
    assert.ok(model.workers.every(({ pid, restarts }) => restarts === 0 && !isAlive(pid as number)));
  });
});

describe('one server without a queue', () => {
  const shared = shareHere(fixture('works.mjs'), { args: ['--queue-size', '0'] });

  for (const major of [3, 4] as const)
    test(`${major}.0.0: a full queue is reported at once, and the next run works`, LIMIT, async (t) => {
      const { cues, server } = shared;
      const client = await startClient(t, major, server);
      const callID = await client.ask<string>('start', 'key', 'model', { until: 'go on' });
      await cues.untilNoted(/^begun /);
      await assert.rejects(
        client.ask('run', 'key', 'model', {}),
        says(/^inference server error: The queue is full/),
      );
      cues.give('go on');
      assert.equal((await client.ask<Outcome>('check', 'key', callID)).message, 'success');
      assert.equal((await client.ask<Outcome>('run', 'key', 'model', {})).message, 'success');
    });
});

describe('a server with API keys', () => {
  const key = 's3cret-of-the-gateway';
  const args = ['--api-key', key, '--access-log', '--log-level', 'debug'];
  const shared = shareHere(fixture('tells-context.mjs'), { args });
  after(() => {
    const { server } = shared;
    assert.ok(!(server.stdout() + server.stderr()).includes(key), 'the key is in no log');
  });

  for (const major of [3, 4] as const)
    test(`${major}.0.0: the key in the body counts`, LIMIT, async (t) => {
      const { server } = shared;
      const client = await startClient(t, major, server);
      assert.equal((await fetch(`${server.url}/livez`)).status, 200);
      const { message, modelOutputs } = await client.ask<Outcome>('run', key, 'model', {});
      assert.equal(message, 'success');
      assert.ok(!JSON.stringify(modelOutputs).includes(key), 'the app is not told');
      const refusal = says(/^inference server error: The apiKey is not valid/);
      await assert.rejects(client.ask('run', 'wrong', 'model', {}), refusal);
      await assert.rejects(client.ask('check', 'wrong', 'call_1'), refusal);
      if (major === 3) {
        await assert.rejects(client.ask('feedback', 'wrong', 'call_1', {}), refusal);
        assert.equal((await client.ask<Outcome>('feedback', key, 'call_1', { ok: 1 })).message, 'success');
      }
    });
});

function says(text: RegExp): (thrown: unknown) => boolean {
  return (thrown) => {
    assert.ok(thrown instanceof Thrown);
    assert.equal(thrown.kind, 'string', thrown.message);
    assert.match(thrown.message, text);
    return true;
  };
}

const bothClients = (t: Ending, server: At): Promise<PublishedClient[]> =>
  Promise.all(([3, 4] as const).map((major) => startClient(t, major, server)));

const untilBegun = (cues: Cues, count: number): Promise<void> =>
  eventually(
    () => cues.notes().filter((note) => note.startsWith('begun ')).length === count,
    60_000,
    () => cues.notes().join('\n'),
  );

/** Called in a `describe`: clients of both majors for all of its tests, each of which begins without paths. */
function shareClients(shared: { readonly server: At }): (major: 3 | 4) => Noted {
  const clients = new Map<3 | 4, Noted>();
  const endings: (() => void)[] = [];
  const ending: Ending = { after: (then) => endings.push(then) };
  before(async () => {
    for (const major of [3, 4] as const) clients.set(major, await startNoted(ending, major, shared.server));
  }, LIMIT);
  after(() => endings.forEach((end) => end()));
  beforeEach(() => clients.forEach(({ paths }) => paths.splice(0)));
  return (major) => {
    const noted = clients.get(major);
    assert.ok(noted !== undefined, 'the client has started');
    return noted;
  };
}

interface Noted {
  readonly client: PublishedClient;
  /** The paths that the client asked for. */
  readonly paths: string[];
}

/** A client that asks through a proxy. */
async function startNoted(t: Ending, major: 3 | 4, server: At): Promise<Noted> {
  const paths: string[] = [];
  const client = await startClient(t, major, await notingProxy(t, server, paths));
  return { client, paths };
}

/** Hands everything on, and notes the paths that were asked for. */
async function notingProxy(t: Ending, server: At, paths: string[]): Promise<{ url: string }> {
  const proxy = createServer((request, response) => {
    paths.push(request.url ?? '');
    const { method = '', headers } = request;
    const onward = httpRequest(`${server.url}${request.url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  }).listen(0, '127.0.0.1');
  t.after(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  await once(proxy, 'listening');
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
}

/** The Go SDK is not on npm: its requests are those of Go's net/http, one JSON value with a Content-Length. */
async function goPost(server: At, path: string, body: object): Promise<Outcome & { finished?: boolean }> {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers = {
    'User-Agent': 'Go-http-client/1.1',
    'Content-Length': bytes.length,
    'Content-Type': 'application/json',
    'Accept-Encoding': 'gzip',
  };
  const request = httpRequest(`${server.url}${path}`, { method: 'POST', headers }).end(bytes);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const chunks = (await response.toArray()) as Buffer[];
  assert.equal(response.statusCode, 200);
  assert.equal(response.headers['content-encoding'], undefined, 'though gzip would be taken');
  return JSON.parse(Buffer.concat(chunks).toString()) as Outcome;
}
