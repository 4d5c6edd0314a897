/** Schemas of inputs and answers: what the app gets, what a client is told, in every dialect. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { supervise, ServeError } from '../../index.js';
import { ask, errorOf, type ErrorBody } from '../helpers/ask.js';
import { needs } from '../helpers/needs.js';
import { endOf, jobIdOf } from '../helpers/potassium.js';
import { Thrown, startClient } from '../helpers/published-client.js';
import { startReceiver } from '../helpers/receiver.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, fixture, type Answer } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };

interface Issue {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

function issuesOf(answer: Answer): readonly Issue[] {
  return answer.json<{ error: { issues?: readonly Issue[] } }>().error.issues ?? [];
}

function pathsOf(answer: Answer): string[] {
  return issuesOf(answer).map(({ path }) => path.join('.'));
}

function post(url: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return call(url, JSON.stringify(body), { 'content-type': 'application/json', ...headers });
}

interface Output {
  readonly text: string;
  readonly steps: number;
  readonly runs: number;
}

const WRONG = { prompt: 5, steps: 'secret' };

withEachRuntime(({ language, app }) => {
  const skip = language === 'Python' && needs('pydantic');

  describe('an app with schemas', { ...LIMIT, skip }, () => {
    const shared = shareHere(app('schemas'), { args: ['--log-format', 'text'] });

    test('the app gets what its schema makes of the input, and the client what the other makes of the answer', async () => {
      const answer = await ask(shared.server, { prompt: 'hi' });
      const { runs: _, ...told } = answer.json<Output>();
      assert.deepEqual(told, { text: 'HI', steps: 10, vector: [0.5, 1] });
      const response = await ask(shared.server, { prompt: 'hi', how: 'response' });
      assert.equal('more' in response.json<object>(), false);
    });

    test('an input that does not fit is 422 with each wrong value, and no code of the app runs', async () => {
      const before = (await ask(shared.server, { prompt: 'a' })).json<Output>().runs;
      const answer = await ask(shared.server, WRONG, { id: 'wrong-1' });
      const { code, source, begun, message } = errorOf(answer);
      assert.deepEqual([answer.status, code, source, begun], [422, 'SERVE_INPUT_INVALID', 'app', false]);
      assert.deepEqual(pathsOf(answer), ['prompt', 'steps']);
      assert.ok(issuesOf(answer).every((issue) => issue.message.length > 5));
      assert.match(message, /^The input is invalid: prompt: .*; steps: /);
      assert.equal((await ask(shared.server, { prompt: 'a' })).json<Output>().runs, before + 1);
    });

    test("the log has one line of it, with the places and without the client's values", async () => {
      await ask(shared.server, WRONG, { id: 'wrong-2' });
      await shared.server.untilPrinted(/INFO: .*the input of a call is invalid.*"wrong-2"/);
      const lines = shared.server
        .stderr()
        .split('\n')
        .filter((line) => line.includes('wrong-2'));
      assert.equal(lines.length, 1, lines.join('\n'));
      assert.match(lines[0] as string, /"code":"SERVE_INPUT_INVALID".*"paths":\["prompt","steps"\]/);
      assert.doesNotMatch(shared.server.stderr(), /secret/);
    });

    test('an answer that does not fit is SERVE_OUTPUT_INVALID, which names the place', async () => {
      const answer = await ask(shared.server, { prompt: 'a', how: 'wrong output' });
      const { code, message } = errorOf(answer);
      assert.deepEqual([answer.status, code], [500, 'SERVE_OUTPUT_INVALID']);
      assert.match(message, /vector\.0/);
    });

    test('an error of the library about the input, which the app lets through, is 422 too; any other is 500', async () => {
      if (language === 'Python') return; // test/python/test_statuses.py
      const answer = await ask(shared.server, { prompt: 'bad', how: 'checks again' });
      assert.deepEqual(
        [answer.status, errorOf(answer).code, pathsOf(answer)],
        [422, 'SERVE_INPUT_INVALID', ['prompt']],
      );
      const other = await ask(shared.server, { prompt: 'bad', how: 'checks an answer' });
      assert.deepEqual([other.status, errorOf(other).code], [500, 'SERVE_INFERENCE_FAILED']);
    });

    test('/openapi.json has both schemas', async () => {
      const document = await (await fetch(`${shared.server.url}/openapi.json`)).text();
      assert.match(document, /"vector":\{[^}]*"items":\{/);
      assert.match(document, /"default":10/);
    });

    test('an HttpError may have issues', async () => {
      const answer = await ask(shared.server, { prompt: 'a', how: 'refuses' });
      assert.deepEqual([answer.status, errorOf(answer).code], [422, 'SERVE_HTTP_ERROR']);
      assert.deepEqual(issuesOf(answer), [{ path: ['prompt', 0], message: 'unkind' }]);
    });

    test("Banana's published client gets 500 with the status in the error, at once", async (t) => {
      const client = await startClient(t, 6, shared.server);
      for (const inputs of [WRONG, { prompt: 'a', how: 'refuses' }]) {
        const thrown: unknown = await client.ask('call', '/', inputs).catch((error: unknown) => error);
        assert.ok(thrown instanceof Thrown);
        assert.equal((JSON.parse(thrown.message) as { error: { status: number } }).error.status, 422);
      }
      assert.doesNotMatch(client.printed(), /Retrying/);
    });

    test('the gateway answers 200 with code and issues', async () => {
      const answer = await post(`${shared.server.url}/start/v4/`, { modelInputs: WRONG });
      const { message, code, issues } = answer.json<ErrorBody & { issues: readonly Issue[] }>();
      assert.deepEqual([answer.status, code, issues.length], [200, 'SERVE_INPUT_INVALID', 2]);
      assert.match(message, /^inference server error: The input is invalid: prompt: /);
    });

    for (const path of ['/predictions/schemas', '/models/schemas/invoke', '/invocations'])
      test(`${path} of Multi Model Server and SageMaker answers 400 with the first wrong value`, async () => {
        const answer = await post(shared.server.url + path, WRONG);
        const { code, type, message } = answer.json<{ code: number; type: string; message: string }>();
        assert.deepEqual([answer.status, code, type], [400, 400, 'BadRequestException']);
        assert.match(message, /^prompt: [^;]*$/);
      });

    test('V2 answers 400 with one field', async () => {
      const inputs = [{ name: 'prompt', datatype: 'FP32', shape: [1], data: [1] }];
      const answer = await post(`${shared.server.url}/v2/models/schemas/infer`, { inputs });
      assert.equal(answer.status, 400);
      const body = answer.json<{ error: string }>();
      assert.deepEqual(Object.keys(body), ['error']);
      assert.match(body.error, /^The input is invalid: prompt: /);
    });

    test('a job fails with this error', async () => {
      const accepted = await post(`${shared.server.url}/`, WRONG, { prefer: 'respond-async' });
      assert.equal(accepted.status, 202);
      const { state, error } = await endOf(shared.server, accepted.json<{ jobId: string }>().jobId);
      assert.deepEqual([state, error?.code, error?.status], ['failed', 'SERVE_INPUT_INVALID', 422]);
      assert.deepEqual(
        (error as { issues?: readonly Issue[] }).issues?.map(({ path }) => path),
        [['prompt'], ['steps']],
      );
    });

    test('supervise() rejects with a ServeError that has the issues', async () => {
      await using model = await supervise(app('schemas'), { prints: 'ignore' });
      const thrown: unknown = await model(WRONG).catch((error: unknown) => error);
      assert.ok(thrown instanceof ServeError);
      assert.deepEqual(
        [thrown.code, thrown.begun, thrown.issues.map(({ path }) => path)],
        ['SERVE_INPUT_INVALID', false, [['prompt'], ['steps']]],
      );
    });
  });

  test('of a batch, an input that does not fit fails alone', { ...LIMIT, skip }, async (t) => {
    const server = await startHere(app('schemas'), {
      t,
      args: ['--batch-size', '4', '--max-batch-delay', '2s'],
    });
    const answers = await Promise.all(
      [{ prompt: 'a' }, WRONG, { prompt: 'b' }, { prompt: 'c' }].map((input) => ask(server, input)),
    );
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 422, 200, 200],
    );
    await server.stop();
  });
});

describe('each library of schemas', LIMIT, () => {
  const shared = shareHere(fixture('schemas-potassium.mjs'));

  for (const library of ['zod', 'valibot', 'arktype']) {
    test(`${library} checks inputs and answers`, async () => {
      const at = `${shared.server.url}/${library}`;
      assert.deepEqual((await post(at, { prompt: 'a' })).json(), { text: 'a 10' });
      const wrong = await post(at, { prompt: 5 });
      assert.deepEqual(
        [wrong.status, errorOf(wrong).code, pathsOf(wrong)],
        [422, 'SERVE_INPUT_INVALID', ['prompt']],
      );
      const output = await post(at, { prompt: 'wrong output' });
      assert.deepEqual([output.status, errorOf(output).code], [500, 'SERVE_OUTPUT_INVALID']);
      assert.match(errorOf(output).message, /text: /);
    });

    test(`an error of ${library} that the app lets through is 422 if it is about the input`, async () => {
      const at = `${shared.server.url}/${library}/itself`;
      for (const wrong of [{ prompt: 5 }, {}]) {
        const answer = await post(at, wrong);
        assert.deepEqual(
          [answer.status, errorOf(answer).code, pathsOf(answer)],
          [422, 'SERVE_INPUT_INVALID', ['prompt']],
        );
      }
      const other = await post(at, { prompt: 'fits', ofAnother: true });
      assert.deepEqual([other.status, errorOf(other).code], [500, 'SERVE_INFERENCE_FAILED']);
    });
  }

  test('an asynchronous check is awaited, for a handler and a background function', async () => {
    const answer = await post(`${shared.server.url}/late`, { id: 'taken' });
    assert.deepEqual([answer.status, issuesOf(answer)], [422, [{ path: ['id'], message: 'is taken' }]]);
    const started = await post(`${shared.server.url}/background`, { id: 'taken' });
    assert.equal(started.status, 200);
    assert.equal((await endOf(shared.server, jobIdOf(started))).error?.code, 'SERVE_INPUT_INVALID');
  });

  test('the webhook of a background function has the error, whose caller had 200', async (t) => {
    const receiver = await startReceiver(t);
    const server = await startHere(fixture('schemas-potassium.mjs'), { t, env: { HOOK: receiver.url } });
    assert.equal((await post(`${server.url}/background`, { id: 'taken' })).status, 200);
    await receiver.until(1);
    const { error } = JSON.parse(String(receiver.arrivals[0]?.body)) as { error: Record<string, unknown> };
    assert.deepEqual(
      [error['code'], error['status'], error['issues']],
      ['SERVE_INPUT_INVALID', 422, [{ path: ['id'], message: 'is taken' }]],
    );
    await server.stop();
  });

  test('no more than 100 wrong values are told', async () => {
    const children = Array.from({ length: 200 }, () => ({ name: 5, children: [] }));
    const answer = await post(`${shared.server.url}/tree`, { name: 'root', children });
    assert.deepEqual([answer.status, issuesOf(answer).length], [422, 100]);
    assert.match(errorOf(answer).message, /\(and 197 more\)/);
  });
});
