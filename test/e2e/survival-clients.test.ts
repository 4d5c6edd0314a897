/** Clients that send nonsense, leave, or do not read harm no other client. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask, errorOf, pidOf, warmUp } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { holdThree } from '../helpers/pipeline.js';
import { openStream } from '../helpers/stream.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, eventually, startServer } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import { UnreadAnswer } from '../helpers/unread.js';
import { openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 240_000 };
const MIB = 1024 * 1024;

/** The front chooses the worker of a call, whatever its language. */
withOneRuntime(({ app }) => {
  test('a call that takes long holds up no short one while another worker is there', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startHere(app('works'), { t, env: cues.env, args: ['--workers', '2'] });
    await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
    await warmUp(server);
    const long = ask(server, { until: 'go on' }, { id: 'long' });
    await cues.untilNoted('begun long');
    await server.until(({ model }) => model.workers.some(({ state }) => state === 'busy'));
    await pauseBeyond(performance.now(), 50); // long by any measure
    const answers = await Promise.all(Array.from({ length: 200 }, () => ask(server, {})));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
    cues.give('go on');
    assert.equal((await long).status, 200);
    await server.stop();
  });
});

withEachRuntime(({ app }) => {
  describe('on one server', () => {
    const shared = shareHere(app('works'));

    test(
      '100 malformed bodies: 400 each, the app never sees one, the worker is the same',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        const pid = await pidOf(server);
        const before = cues.notes().length;
        const malformed: readonly [string, string | Uint8Array][] = [
          ['application/json', '{"prompt": '],
          ['application/json', new Uint8Array([0xff, 0xfe, 0x00, 0x22])],
          ['application/json', `${'['.repeat(200_000)}`],
          ['application/msgpack', new Uint8Array([0xdf, 0xff, 0xff, 0xff, 0xff, 0x01])],
          [
            'multipart/form-data; boundary=x',
            '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nno end',
          ],
        ];
        const answers = await Promise.all(
          Array.from({ length: 100 }, (_, i) => {
            const [type, body] = malformed[i % malformed.length] as (typeof malformed)[number];
            return call(server.url, body, { 'content-type': type });
          }),
        );
        for (const answer of answers) {
          assert.equal(answer.status, 400, answer.text);
          assert.equal(errorOf(answer).code, 'SERVE_BAD_BODY');
        }
        assert.equal(cues.notes().length, before);
        assert.equal(await pidOf(server), pid);
      },
    );

    test('a client that leaves', LIMIT, async (t) => {
      const { server, cues } = shared;
      const pid = await pidOf(server);

      await t.test(
        'while its call runs: the handler sees the abort, the worker takes the next call',
        async () => {
          const leaves = new AbortController();
          const running = ask(server, { until: 'never' }, { id: 'running', signal: leaves.signal });
          await cues.untilNoted('begun running');
          leaves.abort();
          await assert.rejects(running);
          await cues.untilNoted('aborted running: the client left');
          assert.equal(await pidOf(server), pid);
        },
      );

      await t.test(
        'while its call waits in line: the handler never sees it, the line is shorter at once',
        async () => {
          const running = ask(server, { until: 'go on' }, { id: 'runs' });
          await cues.untilNoted('begun runs');
          const leaves = new AbortController();
          const queued = ask(server, {}, { id: 'queued', signal: leaves.signal });
          const waits = ask(server, {}, { id: 'waits' });
          await server.until(({ model }) => model.queue.waiting === 2);
          leaves.abort();
          await assert.rejects(queued);
          await server.until(({ model }) => model.queue.waiting === 1);
          cues.give('go on');
          assert.equal((await running).status, 200);
          assert.equal((await waits).status, 200);
          assert.ok(!cues.notes().includes('begun queued'));
        },
      );

      await t.test('while its call is with the worker, not begun: the handler never sees it', async () => {
        const { socket, ids } = await holdThree(server, cues);
        socket.destroy();
        await cues.untilNoted(`aborted ${ids[0]}: the client left`);
        await server.until(({ model }) => model.workers[0]?.held === 0);
        assert.equal(await pidOf(server), pid);
        for (const id of ids.slice(1)) assert.ok(!cues.notes().includes(`begun ${id}`));
      });
    });
  });

  describe('on one server of streams', () => {
    const shared = shareHere(app('streams'));

    test(
      'a client that leaves a stream: the generator is closed, the worker takes the next call',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        const pid = await pidOf(server);
        const stream = await openStream(server, { chunks: 1e6, bytes: 1000, everyMs: 1 });
        await cues.untilNoted('chunk 5');
        stream.destroy();
        await cues.untilNoted('closed');
        assert.equal(await pidOf(server), pid);
      },
    );

    test(
      'a stream of many small chunks to a reader that stops reading for a while causes no warning of leaks',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        const stream = await openStream(server, { chunks: 20_000, bytes: 1000 });
        stream.pause();
        await standsStill(cues.notes);
        let bytes = 0;
        for await (const piece of stream) bytes += (piece as Buffer).length;
        assert.equal(bytes, 20_000_000);
        assert.doesNotMatch(server.stderr(), /MaxListenersExceededWarning/);
      },
    );
  });

  test('a client that does not read a large stream', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--workers', '2', '--run-timeout', '5s'];
    const server = await startServer(app('streams'), { t, env: cues.env, args });
    await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
    const chunks = 80;
    const startedAtMs = performance.now();
    const stream = await openStream(server, { chunks, bytes: MIB / 4 });
    stream.pause();
    await standsStill(cues.notes);

    await t.test('holds up its generator: little is produced, little is kept', async () => {
      const produced = cues.notes().length;
      assert.ok(produced < chunks / 2, `${produced} of ${chunks} chunks were produced`);
      const { front } = await server.status();
      assert.ok(front.rssBytes < 200e6, `the front has ${front.rssBytes} bytes`);
    });

    await t.test('leaves the other worker to the others', async () => {
      const answers = await Promise.all(Array.from({ length: 50 }, () => ask(server, {})));
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
    });

    await t.test('gets all of it in the end, though that took longer than --run-timeout', async () => {
      const { model } = await server.status();
      const worker = model.workers.find(({ state }) => state === 'busy');
      let bytes = 0;
      for await (const piece of stream) {
        if (bytes === 0) await pauseBeyond(startedAtMs, 5300);
        bytes += (piece as Buffer).length;
      }
      assert.equal(bytes, (chunks * MIB) / 4);
      assert.ok(stream.complete);
      const after = await server.status();
      assert.equal(after.model.workers.find(({ index }) => index === worker?.index)?.pid, worker?.pid);
    });

    await server.stop();
  });

  test(
    '--stall-timeout cuts a stream that is not read: never a clean end, and its worker is free',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--stall-timeout', '1s'];
      const server = await startHere(app('streams'), { t, env: cues.env, args });
      const pid = await pidOf(server);
      const stream = await openStream(server, { chunks: 1000, bytes: MIB / 4 });
      stream.on('error', () => {}); // the reset may come before the stream is read, which reports it again
      stream.pause();
      await cues.untilNoted('closed');
      assert.equal(await pidOf(server), pid);
      await assert.rejects(stream.toArray());
      assert.ok(!stream.complete);
      await server.stop();
    },
  );

  describe('on one server with a run timeout', LIMIT, () => {
    const args = ['--run-timeout', '2s'];
    const shared = shareHere(app('streams'), { args, expectedRestarts: 1 });

    test(
      'a client that reads slowly, or a WebSocket that is silent, keeps its worker from others for --run-timeout at most; the worker stays',
      LIMIT,
      async (t) => {
        const { server: streams, cues } = shared;
        const pid = await pidOf(streams);
        const reader = await UnreadAnswer.ask(t, streams, { input: { chunks: 1e6, bytes: MIB / 64 } });
        reader.readSlowly(2000);
        await cues.untilNoted('chunk 0');
        assert.equal(await pidOf(streams), pid, 'the other caller is answered by the same worker');
        const { replies } = await streams.until(({ replies }) => replies['SERVE_SLOW_READER'] === 1);
        assert.equal(replies['ok'], 2);
        await cues.untilNoted('closed');

        const sockets = await startHere(app('websockets'), { t, args });
        const silent = await openSocket(t, sockets, '/echo');
        silent.socket.send('hello');
        await silent.heard(1);
        assert.equal((await call(`${sockets.url}/`, '{}')).status, 200);
        const [code, reason] = await silent.closed;
        assert.deepEqual([code, reason.split(':')[0]], [1008, 'SERVE_REQUEST_TIMEOUT']);
        await sockets.stop();
      },
    );

    test(
      'a client that stopped reading and then leaves: a handler that will not end is killed at --run-timeout all the same',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        const pid = await pidOf(server);
        const stream = await openStream(server, { chunks: 1000, bytes: MIB / 4, stays: true });
        stream.pause();
        await standsStill(cues.notes); // the clock of the call stands, too
        stream.destroy();
        await cues.untilNoted('closed');
        assert.notEqual(await pidOf(server), pid, 'the next call is answered, by another worker');
        const { model } = await server.status();
        assert.equal(model.workers[0]?.lastExit?.how, 'killed by the server: run timeout');
      },
    );
  });
});

/** Resolves once nothing new is noted for a while. */
async function standsStill(notes: () => string[]): Promise<void> {
  let count = 0;
  let sinceMs = performance.now();
  const isStill = (): boolean => {
    const now = notes().length;
    if (now !== count) [count, sinceMs] = [now, performance.now()];
    return count > 0 && performance.now() - sinceMs > 300;
  };
  await eventually(isStill, 60_000, () => `${count} notes and more to come`);
}

/** The one thing under test here is time itself. */
async function pauseBeyond(startedAtMs: number, ms: number): Promise<void> {
  await eventually(
    () => performance.now() - startedAtMs > ms,
    ms + 5000,
    () => 'time stands still',
  );
}
