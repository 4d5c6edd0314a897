/**
 * Sends the requests of Banana's Python clients of majors 3 to 6 from Python: the clients themselves are not on npm. They
 * differ from the npm packages in their headers, and in that every request is a new connection with a Content-Length.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeCues } from '../helpers/cues.js';
import { startPython, type PythonReply } from '../helpers/python-clients.js';
import { needs } from '../helpers/needs.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000, skip: needs('python3') };
const KEY = 's3cret';

interface Outcome {
  readonly id: string;
  readonly message: string;
  readonly created: number;
  readonly callID?: string;
  readonly finished?: boolean;
  readonly modelOutputs?: readonly { readonly input: unknown }[];
}

/** The JSON of an answer with status 200; these clients raise on anything else. */
function jsonOf<T>({ status, headers, text }: PythonReply): T {
  assert.equal(status, 200, text);
  assert.match(headers['content-type'] ?? '', /^application\/json\b/);
  assert.equal(headers['content-encoding'], undefined, 'though gzip would be taken');
  return JSON.parse(text) as T;
}

function codeOf({ text }: PythonReply): string {
  return (JSON.parse(text) as { error: { code: string } }).error.code;
}

withOneRuntime(({ app, potassium }) => {
  describe('on one server', () => {
    const shared = shareHere(app('works'));

    test(
      'major 3: start gives a callID at once; check is held until the result is there',
      LIMIT,
      async (t) => {
        const { cues, server } = shared;
        const python = startPython(t, server);
        const inputs = { until: 'go on', text: 'süß 🍌' };
        const started = jsonOf<Outcome>(
          await python.send('start', { version: 2, apiKey: KEY, modelInputs: inputs }),
        );
        assert.deepEqual([started.message, started.finished], ['success', false]);
        await cues.untilNoted(/^begun /);
        const held = python.send('check', { version: 2, apiKey: KEY, callID: started.callID });
        cues.give('go on');
        const ended = jsonOf<Outcome>(await held);
        assert.equal(ended.message, 'success');
        assert.deepEqual(
          ended.modelOutputs?.map(({ input }) => input),
          [inputs],
        );
      },
    );

    test(
      'major 4: run is answered in one request; startOnly leaves the result to check',
      LIMIT,
      async (t) => {
        const { cues, server } = shared;
        const python = startPython(t, server);
        const start = (modelInputs: object, startOnly: boolean): Promise<PythonReply> =>
          python.send('start', { version: 4, apiKey: KEY, modelInputs, startOnly });
        const run = start({ until: 'go on' }, false);
        await cues.untilNoted(/^begun /);
        cues.give('go on');
        const ran = jsonOf<Outcome>(await run);
        assert.deepEqual([ran.message, ran.finished, ran.modelOutputs?.length], ['success', true, 1]);
        assert.ok(Number.isInteger(ran.created));
        const started = jsonOf<Outcome>(await start({ until: 'go on', second: true }, true));
        assert.deepEqual([started.finished, started.modelOutputs], [false, undefined]);
        const { callID } = started;
        const checked = jsonOf<Outcome>(await python.send('check', { version: 4, apiKey: KEY, callID }));
        assert.deepEqual(checked.modelOutputs?.[0]?.input, { until: 'go on', second: true });
      },
    );

    test(
      '3.0.1: run is answered in one request, with its callID; startOnly leaves the result to check',
      LIMIT,
      async (t) => {
        const { cues, server } = shared;
        const python = startPython(t, server);
        const start = (modelInputs: object, startOnly: boolean): Promise<PythonReply> =>
          python.send('start', { version: 3, apiKey: KEY, modelInputs, startOnly });
        const run = start({ until: 'go on' }, false);
        await cues.untilNoted(/^begun /);
        cues.give('go on');
        const ran = jsonOf<Outcome>(await run);
        assert.deepEqual([ran.message, ran.finished, ran.modelOutputs?.length], ['success', true, 1]);
        assert.match(ran.callID ?? '', /^call_\w+$/);
        const { callID } = jsonOf<Outcome>(await start({ second: true }, true));
        const checked = jsonOf<Outcome>(await python.send('check', { version: 3, apiKey: KEY, callID }));
        assert.deepEqual(checked.modelOutputs?.[0]?.input, { second: true });
      },
    );
  });

  test('majors 3 and 4: every failure is 200 with "error" in its message', LIMIT, async (t) => {
    const server = await startHere(app('ends-as-told'), { t, args: ['--api-key', KEY] });
    const python = startPython(t, server);
    for (const version of [2, 3, 4]) {
      const checked = await python.send('check', { version, apiKey: KEY, callID: 'call_unknown' });
      assert.match(jsonOf<Outcome>(checked).message, /error: callID does not exist.*call_unknown$/);
      const strange = await python.send('start', { version, apiKey: 'wrong', modelInputs: {} });
      assert.match(jsonOf<Outcome>(strange).message, /error: The apiKey is not valid/);
    }
    const thrown = await python.send('start', {
      version: 4,
      apiKey: KEY,
      modelInputs: { end: 'throws' },
      startOnly: false,
    });
    assert.match(jsonOf<Outcome>(thrown).message, /error: The model failed on this call/);
    await server.stop();
  });

  test(
    'major 4 with BANANA_SERVER=local: bare inputs to / are 200 and JSON, during a slow init too',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('init may not end');
      const server = await startHere(app('works'), { t, env: cues.env });
      const python = startPython(t, server);
      const modelInputs = { prompt: 'süß 🍌', list: [1, null] };
      const early = python.send('direct', { modelInputs });
      await server.until(({ model }) => model.queue.waiting === 1);
      cues.give('init may end');
      assert.deepEqual(jsonOf<{ input: unknown }>(await early).input, modelInputs);
      assert.deepEqual(
        jsonOf<{ input: unknown }>(await python.send('direct', { modelInputs: {} })).input,
        {},
      );
      await server.stop();
    },
  );

  describe('on one server of routes', () => {
    const args = ['--api-key', KEY, '--max-body', '100kb', '--queue-size', '0'];
    const shared = shareHere(potassium(), { args });

    for (const major of [5, 6]) {
      test(`major ${major}: call gets the output in ASCII, and its id back`, LIMIT, async (t) => {
        const python = startPython(t, shared.server);
        const value = { prompt: 'süß 🍌' };
        const custom = { 'X-Custom': 'yes' };
        const args = { major, apiKey: KEY, route: '/', value, requestId: 'mine', headers: custom };
        const reply = await python.send('call', args);
        const { json, id, custom: seen } = jsonOf<Record<string, unknown>>(reply);
        assert.deepEqual([json, id, seen], [value, 'mine', 'yes']);
        assert.match(reply.text, /^[\x20-\x7e]*$/);
        assert.equal(reply.headers['x-banana-request-id'], 'mine');
        const warm = await python.send('call', { ...args, route: '/_k/warmup', value: {} });
        assert.deepEqual(jsonOf(warm), { warm: true });
      });

      test(`major ${major}: the statuses that its users know, each with its error`, LIMIT, async (t) => {
        const { cues, server } = shared;
        const python = startPython(t, server);
        const call = (route: string, value: unknown, apiKey = KEY): Promise<PythonReply> =>
          python.send('call', { major, apiKey, route, value, requestId: `to ${route}`.replaceAll(' ', '-') });

        const refused = async (reply: Promise<PythonReply>): Promise<unknown> => {
          const settled = await reply;
          return [settled.status, codeOf(settled)];
        };
        assert.deepEqual(await refused(call('/', null)), [400, 'SERVE_BAD_BODY'], 'json=None sends nothing');
        assert.deepEqual(await refused(call('/', {}, 'wrong')), [401, 'SERVE_UNAUTHORIZED']);
        assert.deepEqual(await refused(call('/nowhere', {})), [404, 'SERVE_NOT_FOUND']);
        // Python sends the whole body before it reads: a connection that is reset meanwhile would lose the reply.
        assert.deepEqual(await refused(call('/', 'x'.repeat(20_000_000))), [413, 'SERVE_BODY_TOO_LARGE']);
        assert.deepEqual(await refused(call('/answer', 'a throw')), [500, 'SERVE_INFERENCE_FAILED']);

        const running = call('/work', { until: 'go on', result: 'done' });
        await cues.untilNoted(/^begun /);
        const full = await call('/', {});
        assert.deepEqual([full.status, codeOf(full)], [503, 'SERVE_QUEUE_FULL']);
        assert.match(full.headers['retry-after'] ?? '', /^\d+$/);
        cues.give('go on');
        assert.equal(jsonOf(await running), 'done');
      });
    }
  });
});
