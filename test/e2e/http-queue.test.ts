/** Queue limits, deadlines and Retry-After: calls that wait, calls that are refused. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { ask, askPastDeadline, errorOf } from '../helpers/ask.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withOneRuntime, type Runtime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { shareHere } from '../helpers/shared-server.js';
import type { Answer, Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

interface Busy {
  readonly server: Server;
  readonly cues: Cues;
  /** The call that the one worker is running. */
  readonly running: Promise<Answer>;
  /** Lets it end, and stops the server if that is not shared. */
  release(): Promise<void>;
}

/** A server whose only worker runs a call until it is released. */
async function busyServer(app: Runtime['app'], t: TestContext, ...args: string[]): Promise<Busy> {
  const cues = makeCues(t);
  const server = await startHere(app('works'), { t, args, env: cues.env });
  await server.until(({ state }) => state === 'ready');
  const { release, ...busy } = await keepBusy({ server, cues });
  return {
    ...busy,
    release: async () => {
      await release();
      await server.stop();
    },
  };
}

async function keepBusy({ server, cues }: Pick<Busy, 'server' | 'cues'>): Promise<Busy> {
  const running = ask(server, { until: 'go' }, { id: 'running' });
  await cues.untilNoted('begun running');
  const release = async (): Promise<void> => {
    cues.give('go');
    assert.equal((await running).status, 200);
  };
  return { server, cues, running, release };
}

withOneRuntime(({ app }) => {
  test(
    "the app's own queueTimeout holds for a call that waits since before it was known",
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      for (const cue of ['import may not end', 'init may not end']) cues.give(cue);
      const server = await startHere(app('waits-briefly'), { t, env: cues.env });
      const held = ask(server, {}, { id: 'held' });
      await server.until(({ model }) => model.queue.arriving === 1);
      cues.give('import may end');
      const answer = await held; // without a worker: init goes on
      assert.deepEqual([answer.status, errorOf(answer).code], [504, 'SERVE_QUEUE_TIMEOUT']);
      cues.give('init may end');
      await server.until(({ state }) => state === 'ready');
      assert.equal((await ask(server, {}, { id: 'next' })).status, 200);
      assert.deepEqual(cues.notes(), ['begun next']);
      await server.stop();
    },
  );

  test(
    "X-Request-Timeout-Seconds: at the client's deadline a running call gets 504, its handler the abort, its worker lives on",
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startHere(app('works'), { t, env: cues.env });
      await server.until(({ state }) => state === 'ready');
      const id = await askPastDeadline(server, cues, { until: 'never' });
      await cues.untilNoted(`aborted ${id}: the client's deadline passed`);
      assert.equal((await ask(server, {})).status, 200);
      await server.stop();
    },
  );

  test(
    '--queue-size 1: one call waits, the next is refused; the one that waited is answered',
    LIMIT,
    async (t) => {
      const { server, cues, release } = await busyServer(app, t, '--queue-size', '1');
      const waiting = ask(server, {}, { id: 'waiting' });
      await server.until(({ model }) => model.queue.waiting === 1);
      assertRefused(await ask(server, {}, { id: 'refused' }), 'SERVE_QUEUE_FULL');
      await release();
      assert.equal((await waiting).status, 200);
      assert.deepEqual(
        cues.notes().filter((note) => note.startsWith('begun')),
        ['begun running', 'begun waiting'],
      );
    },
  );

  describe('a server in which nothing waits', LIMIT, () => {
    const shared = shareHere(app('works'), { args: ['--queue-size', '0'] });

    test('a refused client keeps its connection, and is served on it later', LIMIT, async () => {
      const { server, cues, running } = await keepBusy(shared);
      const connection = await RawConnection.open(server);
      connection.post('{}');
      const { status, headers } = await connection.reply();
      assert.deepEqual([status, headers['connection']], [503, 'keep-alive']);
      cues.give('go');
      await running;
      connection.post('{}');
      assert.equal((await connection.reply()).status, 200);
      connection.destroy();
    });

    test('--queue-size 0 refuses whenever the worker is busy, and only then', LIMIT, async () => {
      const { server, cues, running } = await keepBusy(shared);
      for (let i = 0; i < 3; i += 1) assertRefused(await ask(server, {}), 'SERVE_QUEUE_FULL');
      cues.give('go');
      await running;
      for (let i = 0; i < 3; i += 1) assert.equal((await ask(server, {})).status, 200);
    });
  });

  describe('a server with --queue-bytes', LIMIT, () => {
    const shared = shareHere(app('works'), { args: ['--queue-bytes', '1kb'] });

    test(
      '--queue-bytes counts bodies that wait and bodies that are still arriving, chunked ones too',
      LIMIT,
      async () => {
        const { server, release } = await keepBusy(shared);
        const body = (bytes: number): string => JSON.stringify('x'.repeat(bytes - 2));
        const waiting = ask(server, 'x'.repeat(398)); // 400 bytes with its quotes
        await server.until(({ model }) => model.queue.bytes === 400);

        const arriving = await RawConnection.open(server);
        const head = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
        arriving.send(`${head}190\r\n"${'x'.repeat(399)}\r\n`); // 400 bytes so far
        await server.until(({ model }) => model.queue.bytes === 800 && model.queue.arriving === 1);

        assertRefused(await ask(server, 'x'.repeat(398)), 'SERVE_QUEUE_FULL');
        const chunked = await RawConnection.open(server);
        chunked.send(`${head}190\r\n${body(400)}\r\n0\r\n\r\n`);
        const { status, body: text } = await chunked.reply();
        assert.deepEqual(
          [status, (JSON.parse(text) as { error: { code: string } }).error.code],
          [503, 'SERVE_QUEUE_FULL'],
        );
        chunked.destroy();

        arriving.destroy();
        await server.until(({ model }) => model.queue.bytes === 400 && model.queue.arriving === 0);
        const fits = ask(server, 'x'.repeat(398));
        await server.until(({ model }) => model.queue.waiting === 2);
        await release();
        assert.deepEqual([(await waiting).status, (await fits).status], [200, 200]);
      },
    );

    test('a body that grows beyond --queue-bytes is refused while it arrives', LIMIT, async () => {
      const { server, release } = await keepBusy(shared);
      const connection = await RawConnection.open(server);
      connection.send('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
      connection.send(`320\r\n${'x'.repeat(800)}\r\n`);
      await server.until(({ model }) => model.queue.bytes === 800);
      connection.send(`320\r\n${'x'.repeat(800)}\r\n`);
      const { status, headers } = await connection.reply();
      assert.equal(status, 503);
      assert.ok(Number(headers['retry-after']) >= 1);
      connection.destroy();
      await server.until(({ model }) => model.queue.bytes === 0);
      await release();
    });
  });

  test('--queue-timeout: a call that waited too long gets 504 and never runs', LIMIT, async (t) => {
    const { server, cues, release } = await busyServer(app, t, '--queue-timeout', '1s');
    const startedAtMs = performance.now();
    const answers = await Promise.all(['late-1', 'late-2'].map((id) => ask(server, {}, { id })));
    const tookMs = performance.now() - startedAtMs;
    for (const answer of answers) {
      assert.deepEqual([answer.status, errorOf(answer).code], [504, 'SERVE_QUEUE_TIMEOUT']);
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
    }
    assert.ok(tookMs >= 999, `not before its time: ${tookMs} ms`);
    await release();
    assert.deepEqual(
      cues.notes().filter((note) => note.startsWith('begun')),
      ['begun running'],
    );
  });

  describe('a server with one worker', LIMIT, () => {
    const shared = shareHere(app('works'));

    test('a call whose deadline passes while it waits gets 504 then, and never runs', LIMIT, async () => {
      const { server, cues, release } = await keepBusy(shared);
      const startedAtMs = performance.now();
      const answer = await ask(server, {}, { id: 'late', headers: { 'x-request-timeout-seconds': '0.2' } });
      assert.deepEqual([answer.status, errorOf(answer).code], [504, 'SERVE_DEADLINE']);
      assert.ok(performance.now() - startedAtMs >= 199, 'not before its time');
      await release();
      assert.ok(!cues.notes().includes('begun late'));
    });

    test('a time limit that is no duration is 400, whatever the worker is doing', LIMIT, async () => {
      const { server, cues, release } = await keepBusy(shared);
      for (const seconds of ['soon', '0', '-1', '', '1 s', 'NaN', 'Infinity', '1e9', '86401', '1,2']) {
        const answer = await ask(server, {}, { headers: { 'x-request-timeout-seconds': seconds } });
        assert.deepEqual([answer.status, errorOf(answer).code], [400, 'SERVE_BAD_REQUEST'], seconds);
        assert.match(
          errorOf(answer).message,
          /X-Request-Timeout-Seconds must be a number of seconds above 0/,
        );
      }
      await release();
      assert.equal(cues.notes().filter((note) => note.startsWith('begun')).length, 1);
    });
  });

  test(
    'a predicted wait beyond the deadline is refused at once, with 503 and when to come back',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startHere(app('works'), { t, env: cues.env });
      const within = (seconds: string): { headers: Record<string, string> } => ({
        headers: { 'x-request-timeout-seconds': seconds },
      });
      // Too little is known at first to predict anything: all of these are admitted.
      for (let i = 0; i < 5; i += 1) assert.equal((await ask(server, { ms: 900 }, within('60'))).status, 200);
      const running = ask(server, { until: 'go' }, { id: 'running' });
      await cues.untilNoted('begun running');
      // The running call is half done on average: 450 ms to wait and 900 to run.
      const refused = await ask(server, {}, { id: 'refused', ...within('1.2') });
      assertRefused(refused, 'SERVE_OVERLOADED'); // at the deadline it would be SERVE_DEADLINE
      const patient = ask(server, {}, within('60'));
      await server.until(({ model }) => model.queue.waiting === 1);
      cues.give('go');
      assert.deepEqual([(await running).status, (await patient).status], [200, 200]);
      assert.ok(!cues.notes().includes('begun refused'));
      await server.stop();
    },
  );

  test('Retry-After grows with the queue and the time calls take', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startHere(app('works'), { t, args: ['--queue-size', '6'], env: cues.env });
    for (let i = 0; i < 5; i += 1) await ask(server, { ms: 400 });
    const running = ask(server, { until: 'go' }, { id: 'running' });
    await cues.untilNoted('begun running');
    const waiting = Array.from({ length: 6 }, () => ask(server, {}));
    await server.until(({ model }) => model.queue.waiting === 6);
    const refused = await ask(server, {});
    // Seven calls of 0.4 s before it, the first half done: 2.6 s, and more if the machine is slow.
    const seconds = Number(refused.headers.get('retry-after'));
    assert.ok(refused.status === 503 && seconds >= 3 && seconds <= 30, `Retry-After: ${seconds}`);
    cues.give('go');
    for (const answer of await Promise.all([running, ...waiting])) assert.equal(answer.status, 200);
    await server.stop();
  });
});

/** A refusal now, with the time to come back. */
function assertRefused(answer: Answer, code: string): void {
  assert.deepEqual([answer.status, errorOf(answer).code], [503, code], answer.text);
  const seconds = Number(answer.headers.get('retry-after'));
  assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 300, `Retry-After: ${seconds}`);
  assert.match(answer.headers.get('server-timing') ?? '', /^queue;dur=[\d.]+, run;dur=0$/);
}
