/** The gateway's paths over plain HTTP: what its clients never send, and what they never look at. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeCues } from '../helpers/cues.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { shareHere } from '../helpers/shared-server.js';
import { call, eventually, type Answer } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

interface Reply {
  readonly id: string;
  readonly message: string;
  readonly callID?: string;
  readonly finished?: boolean;
  readonly code?: string;
  readonly modelOutputs?: readonly unknown[];
}

withOneRuntime(({ app }) => {
  describe('the gateway of an app that echoes', LIMIT, () => {
    const shared = shareHere(app('echoes'), { args: ['--max-body', '300kb'] });

    for (const path of ['/start/v2', '/start/v2/', '/start/v4', '/start/v4/']) {
      test(`${path} starts a call that /check/v2 and /check/v4/ know`, async () => {
        const started = await post(shared.server, path, {
          id: 'mine',
          modelInputs: { path },
          startOnly: true,
        });
        assert.equal(started.message, 'success');
        assert.equal(started.id, 'mine');
        assert.equal(started.finished, false);
        assert.equal(started.modelOutputs, undefined);
        for (const check of ['/check/v2', '/check/v4/']) {
          const { callID } = started;
          const ended = await post(shared.server, check, { callID, longPoll: true });
          assert.deepEqual(ended.modelOutputs, [{ path }]);
        }
      });
    }

    const INPUTS: readonly [why: string, body: string, output: unknown][] = [
      ['no input is an empty object', '{"apiKey":"k"}', {}],
      ['null is null', '{"modelInputs":null}', null],
      ['a list is a list', '{"modelInputs":[1,"\\u00fc"]}', [1, 'ü']],
      ['of two inputs the last counts, as in JSON.parse', '{"modelInputs":1,"modelInputs":2}', 2],
      [
        'an input is not mistaken for control fields',
        '{"modelInputs":{"startOnly":true}}',
        { startOnly: true },
      ],
      [
        'a small input in a large body stays itself',
        `{"junk":"${'x'.repeat(280_000)}","modelInputs":{"a":1}}`,
        { a: 1 },
      ],
    ];
    for (const [why, body, output] of INPUTS) {
      test(`start: ${why}`, async () => {
        const answer = await call(`${shared.server.url}/start/v4/`, body);
        assert.deepEqual(answer.json<Reply>().modelOutputs, [output]);
        assert.equal(answer.json<Reply>().finished, true);
      });
    }

    test("start takes a chunked body, and text that is curl's idea of a type", async () => {
      const chunks = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const part of ['{"modelInp', 'uts":{"a', '":"', 'ü"}}']) controller.enqueue(Buffer.from(part));
          controller.close();
        },
      });
      const init = { method: 'POST', body: chunks, duplex: 'half' } as RequestInit;
      const reply = (await (await fetch(`${shared.server.url}/start/v4`, init)).json()) as Reply;
      assert.deepEqual(reply.modelOutputs, [{ a: 'ü' }]);
      const typed = await call(`${shared.server.url}/start/v4`, '{"modelInputs":3}', {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/msgpack',
      });
      assert.deepEqual(typed.json<Reply>().modelOutputs, [3]);
    });

    test("every reply is ASCII, the call's id is the header's or the body's, and its times are included", async () => {
      const body = JSON.stringify({ id: 'in-body', modelInputs: 'ü🍌' });
      const answer = await call(`${shared.server.url}/start/v4/`, body);
      // eslint-disable-next-line no-control-regex
      assert.match(answer.text, /^[\x00-\x7f]*$/);
      assert.deepEqual(answer.json<Reply>().modelOutputs, ['ü🍌']);
      assert.equal(answer.headers.get('x-request-id'), 'in-body');
      assert.match(answer.headers.get('server-timing') ?? '', /^queue;dur=[\d.]+, run;dur=[\d.]+$/);
      const named = await call(`${shared.server.url}/start/v4/`, body, { 'x-request-id': 'in-header' });
      assert.equal(named.json<Reply>().id, 'in-header');
      const failed = await call(`${shared.server.url}/check/v4/`, JSON.stringify({ callID: 'ü🍌' }));
      // eslint-disable-next-line no-control-regex
      assert.match(failed.text, /^[\x00-\x7f]*$/);
    });

    const MISTAKES: readonly [why: string, path: string, body: string, code: string, message: RegExp][] = [
      [
        'no JSON',
        '/start/v4/',
        '{"modelInputs":',
        'SERVE_BAD_BODY',
        /not valid JSON: the error is at byte 15/,
      ],
      ['an empty body', '/start/v2/', '', 'SERVE_BAD_BODY', /not valid JSON/],
      ['no object', '/start/v4/', '[1]', 'SERVE_BAD_BODY', /must be a JSON object/],
      ['a body above --max-body', '/start/v4/', 'x'.repeat(400_000), 'SERVE_BODY_TOO_LARGE', /--max-body/],
      ['a check of many words', '/check/v4/', ' '.repeat(70_000), 'SERVE_BODY_TOO_LARGE', /larger/],
      [
        'a check without callID',
        '/check/v4/',
        '{}',
        'SERVE_NOT_FOUND',
        /callID does not exist.*the body has no callID/,
      ],
      ['a callID that was never given', '/check/v2', '{"callID":"call_0"}', 'SERVE_NOT_FOUND', /: call_0$/],
      ['a callID that is a number', '/check/v2', '{"callID":1}', 'SERVE_NOT_FOUND', /callID does not exist/],
    ];
    for (const [why, path, body, code, message] of MISTAKES) {
      test(`${why} is an "error" with status 200`, async () => {
        const answer = await call(`${shared.server.url}${path}`, body);
        assert.equal(answer.status, 200);
        const reply = answer.json<Reply>();
        assert.match(reply.message, /^inference server error: /);
        assert.match(reply.message, message);
        assert.equal(reply.code, code);
      });
    }

    test('a start counts once in sequence_number; a check, feedback and a GET do not', async () => {
      const before = await sequenceNumber(shared.server);
      await post(shared.server, '/start/v2/', {});
      const { callID } = await post(shared.server, '/start/v4/', {});
      await call(`${shared.server.url}/start/v4/`, 'no JSON');
      await post(shared.server, '/check/v4/', { callID });
      await post(shared.server, '/feedback/v2', { callID, feedback: {} });
      assert.equal((await fetch(`${shared.server.url}/start/v4/`)).status, 405);
      assert.equal((await sequenceNumber(shared.server)) - before, 3);
    });
  });

  test(
    'a check without longPoll gets "running" at once; a client that leaves a start ends nothing',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startHere(app('works'), { t, env: cues.env });
      const leaver = new AbortController();
      const left = call(
        `${server.url}/start/v4/`,
        JSON.stringify({ id: 'left', modelInputs: { until: 'go on' } }),
        {},
        { signal: leaver.signal },
      );
      await cues.untilNoted('begun left');
      leaver.abort();
      await assert.rejects(left);
      const { callID } = await post(server, '/start/v2/', { id: 'next', modelInputs: {} });
      const { message, modelOutputs } = await post(server, '/check/v2/', { callID });
      assert.equal(message, 'running');
      assert.equal(modelOutputs, undefined);
      cues.give('go on');
      assert.equal((await post(server, '/check/v2/', { callID, longPoll: true })).message, 'success');
      assert.deepEqual(cues.notes(), ['begun left', 'begun next'], 'nothing was aborted');
      const { replies } = await server.status();
      assert.deepEqual(replies, { ok: 2 });
      await server.stop();
    },
  );

  test(
    'outputs: no value is null; a value that is not JSON is an error that explains it',
    LIMIT,
    async (t) => {
      const server = await startHere(app('ends-as-told'), { t });
      const run = (end: string): Promise<Reply> => post(server, '/start/v4/', { modelInputs: { end } });
      assert.deepEqual((await run('nothing')).modelOutputs, [null]);
      assert.deepEqual((await run('emptyResponse')).modelOutputs, [null]);
      for (const [end, code] of [
        ['throws', 'SERVE_INFERENCE_FAILED'],
        ['refuses', 'SERVE_INFERENCE_FAILED'],
        ['bytes', 'SERVE_OUTPUT_INVALID'],
        ['stream', 'SERVE_OUTPUT_INVALID'],
        ['lies', 'SERVE_OUTPUT_INVALID'],
      ]) {
        const reply = await run(end as string);
        assert.equal(reply.code, code, `${end}: ${reply.message}`);
        assert.match(reply.message, /^inference server error: /);
        assert.ok(!reply.message.includes('secret'), 'what an app throws is for the log');
      }
      await server.stop();
    },
  );

  test("a route that the app has itself is the app's, once its routes are known", LIMIT, async (t) => {
    const cues = makeCues(t);
    cues.give('import may not end');
    const server = await startHere(app('has-gateway-routes'), { t, env: cues.env });
    const early = post(server, '/start/v4/', { id: 'early', modelInputs: { a: 1 } });
    await server.until(({ model }) => model.queue.arriving === 1);
    cues.give('import may end');
    assert.deepEqual((await early).modelOutputs, [{ root: { a: 1 }, id: 'early' }]);
    await server.until(({ state }) => state === 'ready');
    const own = await post(server, '/start/v4/', { a: 1 });
    assert.deepEqual(own, { own: { a: 1 } });
    const gateway = await post(server, '/start/v4', { id: 'late', modelInputs: { a: 2 } });
    assert.deepEqual(gateway.modelOutputs, [{ root: { a: 2 }, id: 'late' }], 'to the letter');
    await server.stop();
  });

  test(
    'a start of an app without the route / is an error that explains it, before its routes are known and after',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('import may not end');
      const server = await startHere(app('has-no-root'), { t, env: cues.env });
      const early = post(server, '/start/v4/', {});
      await server.until(({ model }) => model.queue.arriving === 1);
      cues.give('import may end');
      const refused =
        'inference server error: The app has no route /, the only route that can be called this way.';
      assert.equal((await early).message, refused);
      await server.until(({ state }) => state === 'ready');
      assert.equal((await post(server, '/start/v2/', {})).message, refused);
      await server.stop();
    },
  );

  test('a client that leaves while the body of its start arrives gives its place back', LIMIT, async (t) => {
    const server = await startHere(app('echoes'), { t });
    const connection = await RawConnection.open(server);
    connection.send('POST /start/v4/ HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\n{"modelInputs"');
    await server.until(({ model }) => model.queue.arriving === 1);
    connection.destroy();
    await server.until(({ model }) => model.queue.arriving === 0 && model.queue.bytes === 0);
    await server.stop();
  });

  test(
    'with keys, bodies that never come from clients without a key take no place from callers with one',
    LIMIT,
    async (t) => {
      const args = ['--api-key', 'right', '--queue-size', '4'];
      const server = await startHere(app('echoes'), { t, args });
      await server.until(({ state }) => state === 'ready');
      const strangers = await Promise.all(Array.from({ length: 70 }, () => RawConnection.open(server)));
      for (const { socket } of strangers)
        socket.write('POST /start/v4/ HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n{');
      const refused = (): number => strangers.filter(({ rest }) => rest.includes('SERVE_QUEUE_FULL')).length;
      await eventually(
        () => refused() === 6,
        60_000,
        () => `only so many are heard at a time, and ${refused()} were refused`,
      );
      const known = await call(server.url, '{}', { authorization: 'Bearer right' });
      assert.equal(known.status, 200);
      for (const { socket } of strangers) socket.destroy();
      const later = async (): Promise<boolean> =>
        (await post(server, '/start/v4/', { apiKey: 'right', modelInputs: 1 })).message === 'success';
      await eventually(later, 60_000, () => 'the key in a body is not heard any more');
      await server.stop();
    },
  );
});

async function post(server: { readonly url: string }, path: string, body: object): Promise<Reply> {
  const answer: Answer = await call(`${server.url}${path}`, JSON.stringify(body));
  assert.equal(answer.status, 200, answer.text);
  return answer.json<Reply>();
}

async function sequenceNumber(server: { readonly url: string }): Promise<number> {
  const status = (await (await fetch(`${server.url}/_k/status`)).json()) as { sequence_number: number };
  return status.sequence_number;
}
