/** The `ctx` of a call, and the destination of `ctx.log`. */
import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { ask, logLines } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, type Server } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

interface Context {
  readonly requestId: string;
  readonly headers: Record<string, string>;
  readonly contentType: string;
  readonly path: string;
  readonly query: [string, string][];
  readonly deadline: number | null;
  readonly worker: { index: number; gpu: string | null; threads: number };
  readonly aborted: boolean;
  readonly initContext: { keys: string[]; worker: { index: number } };
}

withEachRuntime(({ app }) => {
  describe("a call's context", LIMIT, () => {
    let server: Server;
    before(async () => {
      server = await startHere(app('tells-context'), {
        args: ['--log-format', 'json', '--access-log'],
      });
    });
    after(async () => {
      await server.stop();
    });

    const contextOf = async (headers: Record<string, string>, path = '', body = '{}'): Promise<Context> =>
      (await call(`${server.url}${path}`, body, headers)).json<Context>();

    test('has the id, the headers, the type, the path and the query as the client sent them', async () => {
      const headers = {
        'X-Request-Id': 'id-1',
        'Content-Type': 'Application/JSON; charset=utf-8',
        'X-Mixed': 'A b',
      };
      const context = await contextOf(headers, '/?a=1&b=%20x&a=2&c');
      assert.equal(context.requestId, 'id-1');
      assert.equal(context.contentType, headers['Content-Type']);
      assert.equal(context.headers['x-mixed'], 'A b');
      assert.equal(context.headers['content-type'], headers['Content-Type']);
      assert.equal(context.path, '/');
      assert.deepEqual(context.query.sort(), [
        ['a', '1'],
        ['a', '2'],
        ['b', ' x'],
        ['c', ''],
      ]);
    });

    test('joins repeated headers and has no type if the client sent none', async () => {
      const connection = await RawConnection.open(server);
      connection.post('{}', ['X-Part: one', 'x-part: two']);
      const { headers, contentType } = JSON.parse((await connection.reply()).body) as Context;
      connection.destroy();
      assert.deepEqual([headers['x-part'], contentType], ['one, two', '']);
    });

    test('knows the worker; init knows it too', async () => {
      const { worker, initContext } = await contextOf({});
      assert.deepEqual(worker, { index: 0, gpu: null, threads: worker.threads });
      assert.ok(worker.threads >= 1 && worker.threads <= availableParallelism());
      assert.deepEqual(initContext, { keys: ['log', 'metrics', 'worker'], worker });
    });

    test('is not aborted, and has no deadline unless the client has one', async () => {
      const { aborted, deadline } = await contextOf({});
      assert.equal(aborted, false);
      assert.equal(deadline, null);
      const sentAt = Date.now();
      const { deadline: given } = await contextOf({ 'x-request-timeout-seconds': '30' });
      const leftMs = (given ?? 0) - sentAt;
      assert.ok(leftMs >= 30_000 && leftMs < 45_000, `the deadline is ${leftMs} ms away`);
    });

    for (const [i, [given, seen]] of (
      [
        [TRACE, TRACE],
        ['00-4bf92f3577b34da6a3ce929d0e0e4736', undefined],
        ['00-00000000000000000000000000000000-00f067aa0ba902b7-01', undefined],
      ] as const
    ).entries()) {
      test(`traceparent ${given} is ${seen === undefined ? 'in no' : 'in each'} line of its call`, async () => {
        const id = `traced-${i}`;
        await ask(server, { log: 'warn' }, { id, headers: { traceparent: given } });
        await server.untilPrinted(`"requestId":"${id}","status":200`);
        const lines = logLines(server).filter(({ requestId }) => requestId === id);
        assert.deepEqual(lines.map(({ msg, traceparent }) => [msg, traceparent]).sort(), [
          ['POST /', seen],
          ['said at warn', seen],
        ]);
      });
    }

    test('log lines carry level, worker, request id, trace and the fields', async () => {
      const fields = { step: 3, nested: { a: [1] } };
      for (const level of ['info', 'warn', 'error']) {
        await ask(server, { log: level, fields }, { id: `log-${level}`, headers: { traceparent: TRACE } });
      }
      await server.untilPrinted('"requestId":"log-error","status":200');
      for (const level of ['info', 'warn', 'error']) {
        const line = logLines(server).find(
          ({ requestId, msg }) => requestId === `log-${level}` && msg !== 'POST /',
        );
        const { time, pid, ...told } = line ?? {};
        const expected = {
          level,
          worker: 0,
          requestId: `log-${level}`,
          traceparent: TRACE,
          msg: `said at ${level}`,
          ...fields,
        };
        assert.deepEqual(told, expected);
        assert.deepEqual([typeof time, pid], ['string', server.pid]);
      }
      assert.ok(logLines(server).some(({ msg, step }) => msg === 'said in init' && step === 1));
    });

    test('fields with the names of what each line has stand beside it', async () => {
      const fields = { level: 'fatal', time: 1, msg: 'forged', worker: 9, requestId: 'forged' };
      await ask(server, { log: 'warn', fields }, { id: 'log-forged' });
      await server.untilPrinted('"requestId":"log-forged","status":200');
      const line =
        server
          .stderr()
          .split('\n')
          .find((text) => text.includes('"app_msg"')) ?? '';
      assert.match(
        line,
        /^\{"level":"warn","time":"[^"]+","pid":\d+,"app_level":"fatal","app_time":1,"app_msg":"forged",/,
      );
      const { level, worker, requestId, msg } = JSON.parse(line) as Record<string, unknown>;
      assert.deepEqual([level, worker, requestId, msg], ['warn', 0, 'log-forged', 'said at warn']);
    });

    test('a line below --log-level is not written', async () => {
      await ask(server, { log: 'debug' }, { id: 'log-debug' });
      await server.untilPrinted('"requestId":"log-debug","status":200');
      assert.ok(!server.stderr().includes('said at debug'));
    });

    test('--access-log: one line per call with id, trace, status and times', async () => {
      await ask(server, {}, { id: 'access-1', headers: { traceparent: TRACE } });
      await server.untilPrinted('"requestId":"access-1"');
      const lines = logLines(server).filter(({ requestId }) => requestId === 'access-1');
      assert.equal(lines.length, 1);
      const { msg, status, traceparent, queueMs, runMs, ms } = lines[0] ?? {};
      assert.deepEqual([msg, status, traceparent], ['POST /', 200, TRACE]);
      for (const time of [queueMs, runMs, ms]) assert.ok(Number.isInteger(time) && (time as number) >= 0);
    });
  });

  describe('in the text for people', LIMIT, () => {
    const shared = shareHere(app('tells-context'));

    test('fields that cannot be shown to people are written as JSON, and end no server', LIMIT, async () => {
      const { server } = shared;
      const odd = { toString: 1 };
      for (const name of ['level', 'time', 'pid', 'name', 'caller', 'hasOwnProperty']) {
        const answer = await ask(server, { log: 'info', fields: { [name]: odd, of: name } });
        assert.equal(answer.status, 200, answer.text);
        await server.untilPrinted(`"of":"${name}"`);
      }
    });

    test('a field that breaks the line begins no other in the text for people', LIMIT, async () => {
      const { server } = shared;
      const names = ['name', 'pid', 'hostname', 'caller', 'other'];
      const fields = Object.fromEntries(names.map((name) => [name, `\nforged ${name}`]));
      await ask(server, {}, { id: 'quiet' });
      await ask(server, { log: 'info', fields });
      await server.untilPrinted('forged other');
      assert.ok(
        !server.stderr().includes('quiet'),
        'without --access-log a call that succeeds leaves no line',
      );
      for (const name of names) assert.match(server.stderr(), new RegExp(`^.+forged ${name}`, 'm'));
    });
  });
});

withOneRuntime(({ app }) => {
  test('--access-log has a line for a client that departed: no status, and the reason', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--log-format', 'json', '--access-log'];
    const server = await startHere(app('works'), { t, env: cues.env, args });
    const client = new AbortController();
    const answer = ask(server, { until: 'never' }, { id: 'departed', signal: client.signal });
    await cues.untilNoted('begun departed');
    client.abort();
    await assert.rejects(answer);
    await server.untilPrinted('SERVE_CANCELLED');
    const lines = logLines(server).filter(({ requestId }) => requestId === 'departed');
    assert.equal(lines.length, 1);
    const { msg, status, code } = lines[0] ?? {};
    assert.deepEqual([msg, status, code], ['POST /', null, 'SERVE_CANCELLED']);
    await server.stop();
  });
});
