/** `resultWebhook`: what handlers answer is posted too, and no receiver can harm a caller. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { deadUrl } from '../helpers/held-port.js';
import { startReceiver } from '../helpers/receiver.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';

const LIMIT = { timeout: 240_000 };

withEachRuntime(({ app }) => {
  const APP = app('result-webhook');

  test(
    'JSON answers are posted with the id of the call: of handlers that succeed, of background functions with any status and as errors',
    LIMIT,
    async (t) => {
      const receiver = await startReceiver(t);
      const env = { HOOK: receiver.url };
      const server = await startHere(APP, { t, env, expectedRestarts: 1 });
      const slow = { url: `${server.url}/slow` };
      assert.equal((await ask(server, { throws: true })).status, 500);
      assert.equal((await ask(server, { text: true })).status, 200);
      assert.equal((await ask(server, { status: 400 })).status, 400);
      assert.equal((await ask({ url: `${server.url}/quiet` }, {})).status, 200);
      assert.deepEqual((await ask(server, { ask: 'ü' }, { id: 'r1' })).json(), { answer: 'ü' });
      await receiver.until(1);
      assert.deepEqual((await ask(slow, { ask: 2 }, { id: 'r2' })).json(), { started: true });
      await receiver.until(2);
      await ask(slow, { status: 404 }, { id: 'r3' });
      await receiver.until(3);
      assert.deepEqual(
        receiver.arrivals.map(({ path, headers, body }) => [
          path,
          headers['x-banana-request-id'],
          body.toString(),
        ]),
        [
          ['/', 'r1', '{"answer":"ü"}'],
          ['/slow', 'r2', '{"slow":2}'],
          ['/slow', 'r3', '{"failed":true}'],
        ],
      );

      // The error of a background function that fails, or dies with its worker.
      assert.equal((await ask(slow, { throws: true }, { id: 'error-1' })).status, 200);
      await receiver.until(4);
      assert.equal((await ask(slow, { exits: true }, { id: 'error-2' })).status, 200);
      await receiver.until(5);
      await ask(slow, { refuses: true }, { id: 'error-3' });
      await receiver.until(6);
      assert.deepEqual(
        receiver.arrivals.slice(3).map(({ path, headers, body }) => {
          const { error } = JSON.parse(body.toString()) as {
            error: Record<string, unknown>;
          };
          const { requestId, code, source, status } = error;
          return [path, headers['x-banana-request-id'], requestId, code, source, status];
        }),
        [
          ['/slow', 'error-1', 'error-1', 'SERVE_INFERENCE_FAILED', 'app', 500],
          ['/slow', 'error-2', 'error-2', 'SERVE_WORKER_LOST', 'server', 500],
          ['/slow', 'error-3', 'error-3', 'SERVE_HTTP_ERROR', 'app', 409],
        ],
      );
      await server.stop();
    },
  );
});

withOneRuntime(({ app }) => {
  const APP = app('result-webhook');

  test('calls sent before the routes are known have their results posted as well', LIMIT, async (t) => {
    const receiver = await startReceiver(t);
    const server = await startHere(APP, { t, env: { HOOK: receiver.url } });
    const answers = await Promise.all([1, 2].map((n) => ask(server, { ask: n })));
    assert.deepEqual(
      answers.map((answer) => answer.json()),
      [{ answer: 1 }, { answer: 2 }],
    );
    await receiver.until(2);
    await server.stop();
  });

  test(
    'a hanging receiver and a dead one delay no caller and fail no call; one line for each lost webhook',
    LIMIT,
    async (t) => {
      const receiver = await startReceiver(t, () => {});
      for (const hook of [receiver.url, await deadUrl()]) {
        const server = await startHere(APP, { t, env: { HOOK: hook }, args: ['--drain-timeout', '2s'] });
        await server.until(({ state }) => state === 'ready');
        for (let n = 0; n < 5; n += 1)
          assert.deepEqual((await ask(server, { ask: n })).json(), { answer: n });
        if (hook === receiver.url) await receiver.until(1);
        await server.stop();
        assert.equal(server.stderr().match(/WARN: Webhook to /g)?.length, 5);
      }
    },
  );
});
