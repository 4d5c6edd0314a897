/** Statuses that an app chooses, in every way of writing an app, on the paths of every dialect. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorOf } from '../helpers/ask.js';
import { endOf, jobIdOf } from '../helpers/potassium.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { scrape } from '../helpers/scrape.js';
import { startHere } from '../helpers/here.js';
import { call, type Answer } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import { openSocket } from '../helpers/web-socket.js';

withEachRuntime(({ app }) => {
  const models = {
    banana: app('refuses'),
    potassium: app('refuses-potassium'),
    service: app('refuses-service'),
  };
  const args = Object.entries(models).flatMap(([name, path]) => ['--model', `${name}=${path}`]);

  describe('a status of the app', { timeout: 240_000 }, () => {
    const shared = shareHere(null, { args: [...args, '--metrics', '--access-log'] });
    const send = (path: string, body: unknown, id = ''): Promise<Answer> => {
      const headers = { 'content-type': 'application/json', ...(id === '' ? {} : { 'x-request-id': id }) };
      return call(shared.server.url + path, JSON.stringify(body), headers);
    };

    for (const kind of Object.keys(models)) {
      for (const [how, status, message] of [
        ['throws an HttpError', 409, 'taken'],
        ['throws an HttpError of 5xx', 503, 'upstream is down'],
        ['returns an HttpError', 404, 'gone'],
      ] as const) {
        test(`an app of the kind ${kind} that ${how} answers ${status} with its message`, async () => {
          const house = await send(`/models/${kind}/`, { how });
          const { code, source, ...rest } = errorOf(house);
          assert.deepEqual(
            [house.status, code, source, rest.message],
            [status, 'SERVE_HTTP_ERROR', 'app', message],
          );
          const mms = await send(`/predictions/${kind}`, { how });
          const told = { code: status, type: 'InternalServerException', message };
          assert.deepEqual([mms.status, mms.json()], [status, told]);
          const gateway = await send('/start/v4/', { modelKey: kind, modelInputs: { how } });
          assert.equal(gateway.status, 200);
          assert.equal(gateway.json<{ message: string }>().message, `inference server error: ${message}`);
        });
      }

      test(`an app of the kind ${kind} answers with the status and the body of a Response`, async () => {
        for (const path of [`/models/${kind}/`, `/predictions/${kind}`]) {
          const returned = await send(path, { how: 'returns a Response' });
          assert.deepEqual([returned.status, returned.json()], [201, { made: 1 }]);
          assert.equal(returned.headers.get('x-made'), 'yes');
          const thrown = await send(path, { how: 'throws a Response' });
          assert.deepEqual([thrown.status, thrown.json()], [422, { wrong: 'age' }]);
        }
      });
    }

    test('an HttpError with a status that is no error is an error of the app, and the log names the range', async () => {
      const answer = await send('/models/banana/', { how: 'makes an HttpError of no error' });
      assert.deepEqual([answer.status, errorOf(answer).code], [500, 'SERVE_INFERENCE_FAILED']);
      await shared.server.untilPrinted(/200 is not a status from 400 to 599/);
    });

    /** Number of calls that ended with the code. */
    const countOf = async (model: string, dialect: string, code: string): Promise<number> =>
      (await scrape(shared.server.url)).sum('banana_calls_total', { model, dialect, code }) ?? 0;

    test('4xx is no failure of the model: not in the log, and ok in the metrics; 5xx is one', async () => {
      const count = (code: string): Promise<number> => countOf('banana', 'banana', code);
      const [ok, failed] = [await count('ok'), await count('SERVE_HTTP_ERROR')];
      assert.equal((await send('/models/banana/', { how: 'throws an HttpError' }, 'refusal')).status, 409);
      assert.equal(
        (await send('/models/banana/', { how: 'throws an HttpError of 5xx' }, 'broken')).status,
        503,
      );
      assert.deepEqual([await count('ok'), await count('SERVE_HTTP_ERROR')], [ok + 1, failed + 1]);
      await shared.server.untilPrinted(/INFO: POST \/models\/banana\/ .*"refusal".*"status":409/);
      await shared.server.untilPrinted(/ERROR: [^]*upstream is down[^]*"broken"/);
      assert.doesNotMatch(shared.server.stderr(), /ERROR: .*"refusal"/);
    });

    for (const [how, status, level] of [
      ['throws an HttpError', 409, 'INFO'],
      ['throws an HttpError of 5xx', 503, 'WARN'],
    ] as const)
      test(`a job whose function ${how} has failed with ${status}, which the log shows as ${level}`, async () => {
        const count = (code: string): Promise<number> => countOf('potassium', 'banana', code);
        const before = [await count('ok'), await count('SERVE_HTTP_ERROR')] as const;
        const started = await send('/models/potassium/later', { how }, `job-${status}`);
        const job = await endOf(shared.server, jobIdOf(started));
        const { code, source } = job.error ?? {};
        assert.deepEqual([job.state, code, source], ['failed', 'SERVE_HTTP_ERROR', 'app']);
        assert.equal(job.error?.status, status);
        const id = `"job-${status}"`;
        await shared.server.untilPrinted(
          new RegExp(`${level}: the background job .*${id}.*"status":${status}`),
        );
        await shared.server.untilPrinted(new RegExp(`INFO: POST /models/.*${id}.*"status":${status}`));
        const isFailure = status >= 500;
        const expected = [before[0] + (isFailure ? 0 : 1), before[1] + (isFailure ? 1 : 0)];
        assert.deepEqual([await count('ok'), await count('SERVE_HTTP_ERROR')], expected);
        if (isFailure) return;
        assert.doesNotMatch(shared.server.stderr(), new RegExp(`(WARN|ERROR): .*${id}`));
      });

    test('the close of a WebSocket whose function throws an HttpError of 4xx is 1008 with its status', async (t) => {
      const headers = { 'x-request-id': 'socket' };
      const { closed } = await openSocket(t, shared.server, '/models/potassium/socket', headers);
      assert.deepEqual(await closed, [1008, 'SERVE_HTTP_ERROR: 409 taken']);
      await shared.server.untilPrinted(/INFO: GET \/models\/.*"socket".*"status":409/);
      assert.doesNotMatch(shared.server.stderr(), /(WARN|ERROR): .*"socket"/);
    });

    test("a job's access line has the status of its Response, and a refused call of the gateway that of its HttpError", async () => {
      const started = await send('/models/potassium/later', { how: 'throws a Response' }, 'answered');
      const job = await endOf(shared.server, jobIdOf(started));
      assert.deepEqual([job.state, job.status], ['succeeded', 422]);
      await shared.server.untilPrinted(/INFO: POST \/models\/.*"answered".*"status":422/);
      const inputs = { modelKey: 'banana', modelInputs: { how: 'throws an HttpError' } };
      assert.equal((await send('/start/v4/', inputs, 'enveloped')).status, 200);
      await shared.server.untilPrinted(/INFO: POST \/start\/v4\/ .*"enveloped".*"status":409/);
      assert.doesNotMatch(shared.server.stderr(), /(WARN|ERROR): .*"enveloped"/);
    });
  });

  test(
    'in a batch, an entry that is an HttpError or a Response answers its own call',
    { timeout: 240_000 },
    async (t) => {
      const server = await startHere(app('refuses'), {
        t,
        args: ['--batch-size', '2', '--max-batch-delay', '1m'],
      });
      const pair = (first: string, second: string): Promise<Answer[]> =>
        Promise.all([first, second].map((how) => call(server.url, JSON.stringify({ how }))));
      const statuses = async (...how: [string, string]): Promise<number[]> =>
        (await pair(...how)).map(({ status }) => status);
      assert.deepEqual(await statuses('returns a Response', 'returns an HttpError'), [201, 404]);
      assert.deepEqual(await statuses('throws an HttpError', 'throws an HttpError'), [409, 409]);
      assert.deepEqual(await statuses('throws a Response', 'throws a Response'), [422, 422]);
      await server.stop();
    },
  );
});
