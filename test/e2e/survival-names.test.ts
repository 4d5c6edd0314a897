/** Webhooks to names that no name server resolves hold up neither calls nor the end of the server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { needs } from '../helpers/needs.js';
import { startReceiver } from '../helpers/receiver.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startServer } from '../helpers/server.js';
import { stallNames } from '../helpers/own-names.js';

const LIMIT = { timeout: 240_000, skip: needs('unshare', 'root') };
const urlOf = (i: number): string => `http://name${i}.stalls.test/`;

withOneRuntime(({ app }) => {
  const APP = app('sends-webhooks');

  for (const [how, again, args, code] of [
    ['a drain ends in its time', [], ['--drain-timeout', '2s'], 0],
    ['a second Ctrl-C stops at once', ['SIGINT'], [], 130],
  ] as const) {
    test(`${how}, while look-ups of webhooks stall`, LIMIT, async (t) => {
      const names = await stallNames(t);
      const server = await startServer(APP, { t, command: names.command, args });
      for (let i = 0; i < 2; i += 1) {
        assert.equal((await ask(server, { url: urlOf(i), json: {} })).status, 200);
        await names.untilAsked(`name${i}.stalls.test`);
      }
      server.process.kill('SIGINT');
      await server.untilPrinted('sending 2 webhooks');
      for (const signal of again) server.process.kill(signal);
      assert.deepEqual(await server.ended, { code, signal: null });
    });
  }

  test('a webhook to a name that is known arrives while many other look-ups stall', LIMIT, async (t) => {
    const names = await stallNames(t);
    const receiver = await startReceiver(t);
    const server = await startServer(APP, { t, command: names.command });
    for (let i = 0; i < 6; i += 1) {
      await ask(server, { url: urlOf(i), json: {} });
      await names.untilAsked(`name${i}.stalls.test`);
    }
    const url = receiver.url.replace('127.0.0.1', 'localhost');
    await ask(server, { url, json: { known: true } });
    await receiver.until(1);
    server.process.kill('SIGINT');
    await server.untilPrinted('sending 6 webhooks');
    server.process.kill('SIGINT');
    await server.ended;
  });
});
