/** Webhooks from a real app in a real worker, sent by the server to real receivers. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { Webhook as Verifier } from 'standardwebhooks';
import { ask, logLines } from '../helpers/ask.js';
import { deadUrl } from '../helpers/held-port.js';
import { startReceiver } from '../helpers/receiver.js';
import { withEachRuntime, withOneRuntime, type Language } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { eventually, fixture, runCommand, startServer, type Server } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const JAVASCRIPT_APP = fixture('sends-webhooks.mjs');
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const JSON_LOG = ['--log-format', 'json'];

async function said(server: Server, input: object, id = 'req-1'): Promise<string> {
  const answer = await ask(server, input, { id });
  assert.equal(answer.status, 200, answer.text);
  return answer.json<{ said: string }>().said;
}

function webhookLines(server: Server): Record<string, unknown>[] {
  return logLines(server).filter(({ webhookId }) => webhookId !== undefined);
}

/** The app's error for a webhook with 2 bytes too many. */
const TOO_LARGE: Readonly<Record<Language, string>> = {
  TypeScript: 'TypeError: sendWebhook: the JSON has 16777218 bytes; 16777216 are allowed',
  Python: 'ValueError: the body of a webhook has 16777218 bytes; 16777216 are allowed',
};

const MISTAKES: readonly (readonly [input: object, says: Readonly<Record<Language, RegExp>>])[] = [
  [
    { url: '/hook', json: 1 },
    {
      TypeScript: /^TypeError: the URL of a webhook must be absolute/,
      Python: /^ValueError: the URL of a webhook must be absolute/,
    },
  ],
  [
    { url: 'ftp://a/', json: 1 },
    {
      TypeScript: /^TypeError: .* http: or https:, not ftp:$/,
      Python: /^ValueError: .* http: or https:, not ftp:$/,
    },
  ],
  [
    { json: 1 },
    {
      TypeScript: /^TypeError: the URL of a webhook must be a string/,
      Python: /^TypeError: the URL of a webhook must be text, not NoneType$/,
    },
  ],
  [
    { url: 'http://127.0.0.1:9/', json: 1, options: { retries: 0.5 } },
    {
      TypeScript: /^TypeError: sendWebhook: retries must be a whole number from 0 to 10$/,
      Python: /^ValueError: the retries of a webhook must be a whole number from 0 to 10$/,
    },
  ],
  [
    { url: 'http://127.0.0.1:9/', json: 1, options: { timeoutMs: 0 } },
    {
      TypeScript: /^TypeError: sendWebhook: timeoutMs must be a whole number from 1 to 60000$/,
      Python: /^ValueError: the timeout_ms of a webhook must be a whole number from 1 to 60000$/,
    },
  ],
];

withEachRuntime(({ language, app }) => {
  const APP = app('sends-webhooks');

  describe('on one server with a secret', () => {
    const args = [...JSON_LOG, '--log-level', 'debug'];
    const shared = shareHere(APP, { env: { BANANA_WEBHOOK_SECRET: SECRET }, args, expectedRestarts: 1 });
    after(() => {
      const { server } = shared;
      assert.ok(!`${server.stdout()}${server.stderr()}`.includes('MfKQ9'), 'the secret is printed nowhere');
    });

    test(
      'sendWebhook: the JSON arrives, typed arrays included, with the id of its call and signed by the server',
      LIMIT,
      async (t) => {
        const receiver = await startReceiver(t);
        const { server } = shared;
        for (const form of ['arguments', 'object']) {
          const input = { url: `${receiver.url}/${form}`, json: { text: 'ü', form }, form };
          const answer = await ask(server, input, { id: `req-${form}` });
          assert.deepEqual(answer.json(), { said: 'resolved', secret: null }, 'the key stays in the front');
        }
        await receiver.until(2);
        for (const { path, headers, body } of receiver.arrivals) {
          const form = path.slice(1);
          assert.equal(headers['content-type'], 'application/json');
          assert.equal(headers['x-banana-request-id'], `req-${form}`);
          const verified = new Verifier(SECRET).verify(body, headers as Record<string, string>);
          assert.deepEqual(verified, { text: 'ü', form });
        }
      },
    );

    test(
      'a webhook of several MB arrives whole, among others and answers; over 16 MiB is refused',
      LIMIT,
      async (t) => {
        const receiver = await startReceiver(t);
        const { server } = shared;
        const json = 'x'.repeat(3_000_000);
        assert.equal(await said(server, { url: receiver.url, json, together: 3 }), 'resolved');
        await receiver.until(3);
        for (const { body } of receiver.arrivals) assert.ok(body.equals(Buffer.from(JSON.stringify(json))));
        const tooLarge = await said(server, { url: receiver.url, json: 'x'.repeat(16 * 1024 ** 2) });
        assert.equal(tooLarge, TOO_LARGE[language]);
      },
    );

    test(
      'the death of a worker right after sendWebhook resolved loses nothing, a retry that was due later included',
      LIMIT,
      async (t) => {
        const receiver = await startReceiver(t, (response, count) => {
          response.statusCode = count === 1 ? 503 : 200;
          response.end();
        });
        const { server } = shared;
        const answer = await ask(server, { url: receiver.url, json: { n: 1 }, die: true });
        assert.equal(answer.status, 500, 'the worker died');
        await receiver.until(2);
        assert.equal(receiver.arrivals[1]?.body.toString(), '{"n":1}');
        await server.until(({ model }) => model.workers.some(({ state }) => state === 'idle'));
      },
    );

    test(
      'a dead receiver: sendWebhook resolves even with await, and the log has one line, without token',
      LIMIT,
      async () => {
        const url = await deadUrl();
        const { server } = shared;
        const options = { await: true, retries: 1 };
        assert.equal(
          await said(server, { url: `${url}/hook?token=hunter2`, json: 1, options }, 'dead'),
          'resolved',
        );
        await server.untilPrinted('(2 attempts)');
        const lines = webhookLines(server).filter(
          ({ requestId, level }) => requestId === 'dead' && level !== 'debug',
        );
        assert.equal(lines.length, 1, 'await: true waits for the last attempt');
        assert.match(
          lines[0]?.['msg'] as string,
          new RegExp(`^Webhook to ${url}/hook failed with connection error: .* \\(2 attempts\\)$`),
        );
        assert.equal(lines[0]?.['attempts'], 2);
        assert.doesNotMatch(server.stderr(), /hunter2/);
      },
    );

    test('a wrong URL or option of a webhook is an error in the app, which names it', LIMIT, async () => {
      const { server } = shared;
      for (const [input, says] of MISTAKES) assert.match(await said(server, input), says[language]);
    });
  });

  test(
    'a webhook that is waited for has arrived; one from shutdown arrives before the server ends',
    LIMIT,
    async (t) => {
      let deliver = (): void => {};
      const receiver = await startReceiver(t, (response, count) => {
        if (count === 1) deliver = () => response.end();
        else response.end();
      });
      const server = await startHere(app('delivers-webhooks'), { t, env: { HOOK: receiver.url } });
      const answer = ask(server, { n: 1 });
      await receiver.until(1);
      assert.equal((await server.status()).model.inFlight, 1, 'it waits for the delivery');
      deliver();
      assert.equal((await answer).json(), 'delivered');
      assert.deepEqual(await server.stop(), { code: 0, signal: null });
      assert.deepEqual(
        receiver.arrivals.map(({ body }) => body.toString()),
        ['{"n":1}', '{"shutdown":true}'],
      );
    },
  );
});

withOneRuntime(({ app }) => {
  const APP = app('sends-webhooks');

  describe('on one server', () => {
    const shared = shareHere(APP, { args: ['--drain-timeout', '300ms'] });

    test('connections to receivers are closed when nothing is sent any more', LIMIT, async (t) => {
      const receiver = await startReceiver(t);
      const { server } = shared;
      await said(server, { url: receiver.url, json: 1, together: 30 });
      await receiver.until(30);
      await eventually(
        () => receiver.connections() === 0,
        60_000,
        () => `${receiver.connections()} connections stay open`,
      );
    });

    test('sendWebhook without JSON rejects with a TypeError that explains it', LIMIT, async () => {
      const input = { url: 'http://127.0.0.1:9/' };
      assert.match(await said(shared.server, input), /^TypeError: sendWebhook: json is undefined/);
    });

    test(
      'a hanging receiver delays neither its caller nor a later one, nor the webhooks of others',
      LIMIT,
      async (t) => {
        const hanging = await startReceiver(t, () => {});
        const working = await startReceiver(t);
        const { server } = shared;
        assert.equal(await said(server, { url: hanging.url, json: 1, together: 20 }), 'resolved');
        assert.equal(await said(server, { url: working.url, json: 2 }), 'resolved');
        await working.until(1);
        await hanging.until(1);
        assert.ok(hanging.arrivals.length <= 8, 'and it does not get all at once');
      },
    );
  });

  test('SIGTERM: a webhook still owed is delivered before the server ends', LIMIT, async (t) => {
    const answers: (() => void)[] = [];
    const receiver = await startReceiver(t, (response) => answers.push(() => response.end()));
    const server = await startHere(APP, { t, args: JSON_LOG });
    assert.equal(await said(server, { url: receiver.url, json: 1, together: 9 }), 'resolved');
    await receiver.until(8);
    server.process.kill('SIGTERM');
    await server.untilPrinted('sending 9 webhooks');
    for (const answer of answers.splice(0)) answer();
    await receiver.until(9);
    answers[0]?.();
    assert.deepEqual(await server.ended, { code: 0, signal: null });
    assert.deepEqual(webhookLines(server), []);
  });

  test('SIGTERM: what cannot be sent within the drain timeout is reported by id', LIMIT, async (t) => {
    const hanging = await startReceiver(t, () => {});
    const server = await startHere(APP, { t, args: [...JSON_LOG, '--drain-timeout', '1s'] });
    assert.equal(await said(server, { url: hanging.url, json: 1 }), 'resolved');
    await hanging.until(1);
    server.process.kill('SIGTERM');
    assert.deepEqual(await server.ended, { code: 0, signal: null });
    const lines = webhookLines(server);
    assert.equal(lines.length, 1);
    assert.equal(lines[0]?.['webhookId'], hanging.arrivals[0]?.headers['webhook-id']);
    assert.match(lines[0]?.['msg'] as string, /was not sent: the server stopped after 1 attempt$/);
  });

  test('a second signal does not wait for webhooks, and reports them too', LIMIT, async (t) => {
    const hanging = await startReceiver(t, () => {});
    const server = await startServer(APP, { t, args: JSON_LOG });
    assert.equal(await said(server, { url: hanging.url, json: 1 }), 'resolved');
    await hanging.until(1);
    server.process.kill('SIGINT');
    await server.untilPrinted('sending 1 webhook');
    server.process.kill('SIGINT');
    assert.deepEqual(await server.ended, { code: 130, signal: null });
    assert.equal(webhookLines(server).length, 1);
  });
});

for (const [what, args, where] of [
  ['on the command line', ['--webhook-secret', 'whsec_hunter2'], '--webhook-secret'],
  ['behind a mistyped flag', ['--webhook-secert=whsec_hunter2'], '--webhook-secert'],
] as const) {
  test(`a wrong secret ${what} ends the start with code 2, and is not repeated`, LIMIT, async (t) => {
    const command = runCommand([JAVASCRIPT_APP, '--port', '0', ...args], { t });
    assert.equal((await command.ended).code, 2);
    assert.ok(command.stderr().includes(where), command.stderr());
    assert.doesNotMatch(command.stderr(), /hunter2/);
  });
}
