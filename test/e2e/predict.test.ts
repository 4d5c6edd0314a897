/** KServe's first protocol and Vertex AI's: instances, each a call of the app, become predictions. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { needs } from '../helpers/needs.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, fixture, runCommand, type Answer } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };

function predict(url: string, model: string, instances: unknown, more: object = {}): Promise<Answer> {
  return call(`${url}/v1/models/${model}:predict`, JSON.stringify({ instances, ...more }));
}

/** Status, text of the error, and whether it may be sent again. */
function refusalOf(answer: Answer): unknown[] {
  const { error, ...others } = answer.json<{ error: string }>();
  assert.deepEqual(others, {});
  return [answer.status, error, answer.headers.get('x-should-retry')];
}

withEachRuntime(({ app, language }) => {
  describe('KServe V1', LIMIT, () => {
    const models = {
      params: app('tells-params'),
      refuses: app('refuses'),
      greets: app('potassium-default'),
      several: app('has-several-routes'),
      embeds: app('embedding'),
    };
    const args = Object.entries(models).flatMap(([name, path]) => ['--model', `${name}=${path}`]);
    const shared = shareHere(null, { args });
    const ask = (model: string, instances: unknown, more?: object): Promise<Answer> =>
      predict(shared.server.url, model, instances, more);

    test('each instance is an input of the app, and the parameters are its ctx.params', async () => {
      const parameters = { top_k: 3, mode: 'fast', draft: true };
      const answer = await ask('params', [1, { a: [null] }], { parameters, signature_name: 'ignored' });
      assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'application/json']);
      assert.deepEqual(answer.json(), {
        predictions: [
          { input: 1, params: parameters },
          { input: { a: [null] }, params: parameters },
        ],
      });
    });

    const ANSWERS: readonly (readonly [
      model: string,
      instances: readonly unknown[],
      predictions: unknown,
    ])[] = [
      ['greets', [{ name: 'a' }, { name: 'b' }], [{ out: 'hello a' }, { out: 'hello b' }]],
      ['refuses', [{ how: 'returns a Response' }], [{ made: 1 }]],
      ['embeds', [{ input: ['plain', 'x'], dimensions: 1 }], [[[5.1], [1.1]]]],
    ];
    for (const [model, instances, predictions] of ANSWERS)
      test(`the main route of ${model} answers`, async () => {
        assert.deepEqual((await ask(model, instances)).json(), { predictions });
      });

    const FINE = { how: 'returns a Response' };
    const REFUSED: readonly (readonly [
      why: string,
      model: string,
      instances: unknown,
      status: number,
      error: RegExp,
    ])[] = [
      [
        'an instance that the app refuses',
        'refuses',
        [FINE, { how: 'throws an HttpError' }],
        409,
        /^instances\[1\]: taken$/,
      ],
      [
        'an instance that fails',
        'refuses',
        [FINE, FINE, { how: 'unknown' }],
        500,
        /^instances\[2\]: The model failed on this call\.$/,
      ],
      ['an answer of an error', 'refuses', [{ how: 'throws a Response' }], 422, /^instances\[0\]: .*age/],
      ['no instances', 'params', [], 400, /^"instances" must be a list/],
      ['an unknown model', 'none', [1], 404, /none/],
      ['an unknown model with a slash', 'a%2Fb', [1], 404, /a\/b/],
      [
        'a model without a main route',
        'several',
        [1],
        400,
        /no route \/, and several others; call one of them: POST \/models\/several\//,
      ],
    ];
    for (const [why, model, instances, status, error] of REFUSED)
      test(`${why}: ${status}, in the form of KServe`, async () => {
        const [given, text, mayRetry] = refusalOf(await ask(model, instances));
        assert.deepEqual([given, mayRetry], [status, 'false']);
        assert.match(String(text), error);
      });

    test('a model has its readiness beside the path, which takes POST alone', async () => {
      const ready = await fetch(`${shared.server.url}/v1/models/params`);
      assert.equal(((await ready.json()) as { ready: boolean }).ready, true);
      const wrong = await fetch(`${shared.server.url}/v1/models/params:predict`);
      assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'POST']);
    });
  });

  test(
    'instances that do not fit the schema are 400 with the first issues, and none runs',
    { ...LIMIT, skip: language === 'Python' && needs('pydantic') },
    async (t) => {
      const { url, stop } = await startHere(app('schemas'), { t });
      const answer = await predict(url, 'schemas', [{ prompt: 'a' }, { prompt: 5, steps: 'x' }]);
      const [status, text, mayRetry] = refusalOf(answer);
      assert.deepEqual([status, mayRetry], [400, 'false']);
      assert.match(String(text), /^instances\[1\]: The input is invalid: prompt: .*; steps: /);
      const { predictions } = (await predict(url, 'schemas', [{ prompt: 'a' }])).json<{
        predictions: { steps: number; runs: number }[];
      }>();
      assert.deepEqual(
        predictions.map(({ steps, runs }) => [steps, runs]),
        [[10, 2]],
      ); // the example was the first
      const wrong = await predict(url, 'schemas', [{ prompt: 'a', how: 'wrong output' }]);
      assert.match(
        String(refusalOf(wrong)[1]),
        /^instances\[0\]: The model's output does not fit its (schema|type): vector/,
      );
      await stop();
    },
  );

  describe('an app with a batch function', LIMIT, () => {
    const shared = shareHere(app('batches'), { args: ['--batch-size', '4', '--max-batch-delay', '2m'] });

    test('gets the instances of a request together, with the inputs of other callers', async () => {
      const { url } = shared.server;
      const others = ['c', 'd', 'e'].map((name) => call(url, JSON.stringify({ name })));
      await shared.server.until(({ model }) => model.queue.waiting === 3);
      const answer = await predict(url, 'batches', [{ name: 'a' }, { name: 'b' }]);
      const sizes = (await Promise.all(others)).map((one) => one.json<{ of: number }>().of);
      const { predictions } = answer.json<{ predictions: readonly { name: string; of: number }[] }>();
      assert.deepEqual(
        predictions.map(({ name, of }) => [name, of]),
        [
          ['a', 4],
          ['b', 1],
        ],
      );
      assert.deepEqual(
        sizes,
        [4, 4, 4],
        'of five inputs, the app takes four at once, the callers of one first',
      );
    });
  });
});

withOneRuntime(({ app }) => {
  test(
    'Vertex AI has its own paths, before those of the app, and its port unless one is given',
    LIMIT,
    async (t) => {
      const env = { AIP_HTTP_PORT: '1', AIP_HEALTH_ROUTE: '/healthcheck', AIP_PREDICT_ROUTE: '/greet' };
      const server = await startHere(app('potassium-default'), { t, env });
      const { url } = server;
      await server.until(({ state }) => state === 'ready');
      const health = await fetch(`${url}/healthcheck`);
      assert.deepEqual([health.status, await health.json()], [200, { state: 'ready' }]);
      const answer = await call(
        `${url}/greet`,
        JSON.stringify({ instances: [{ name: 'a' }], parameters: { n: 1 } }),
      );
      assert.deepEqual(answer.json(), { predictions: [{ out: 'hello a' }] });
      assert.equal(refusalOf(await call(`${url}/greet`, '{"name":"a"}'))[0], 400);
      const own = await call(`${url}/models/potassium-default/greet`, '{"name":"b"}', {
        'content-type': 'application/json',
      });
      assert.deepEqual(own.json(), { out: 'hello b' });
      const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as {
        paths: Record<string, object>;
      };
      assert.match(JSON.stringify(paths['/greet']), /"instances".*"predictions"/);
      for (const line of [
        /health is on http:.*\/healthcheck/,
        /predictions are on http:.*\/greet/,
        /\/greet is a route of the app/,
      ])
        assert.match(server.stderr(), line);
      await server.stop();
    },
  );
});

test('a path of Vertex AI that is none is refused at the start', LIMIT, async (t) => {
  const { ended, stderr } = runCommand([fixture('echoes.mjs'), '--port', '0'], {
    t,
    env: { AIP_PREDICT_ROUTE: 'predict' },
  });
  assert.equal((await ended).code, 2);
  assert.match(
    stderr(),
    /AIP_PREDICT_ROUTE: "predict" is not allowed; give a path that begins with a slash\./,
  );
});
