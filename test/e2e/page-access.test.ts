/** Access to the page at `/`: keys, other machines, other pages, Multi Model Server's mode. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { assertAccessible, ELSEWHERE, shareBrowser } from '../helpers/browser.js';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { eventually, fixture } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const KEY = 'the+key/of~this-server';

const answerOf = (page: Page): Locator => page.getByRole('region', { name: 'Answer' });
const send = (page: Page): Promise<void> => page.getByRole('button', { name: 'Send', exact: true }).click();

/** Talks with the route `/echo` of the fixture that has WebSockets. */
async function talk(page: Page): Promise<void> {
  await page.getByLabel('Route').selectOption({ label: '/echo, WebSocket' });
  await page.getByRole('button', { name: 'Connect' }).click();
  await page.getByLabel('Message', { exact: true }).fill('hello');
  await page.keyboard.press('Enter');
  await page.getByRole('log').getByText('received: hello').waitFor();
}

describe('access to the page', { skip: needs('chromium') }, () => {
  const browser = shareBrowser();

  test(
    'with a key: asked for, kept for the tab, sent with calls and WebSockets, never shown',
    LIMIT,
    async (t) => {
      const server = await startHere(fixture('websockets.mjs'), {
        t,
        env: { BANANA_API_KEY: KEY },
      });
      await browser.visit(server.url, { expected: [/status of 401/] }, async (page) => {
        const field = page.getByLabel('API key');
        await field.fill('wrong');
        await page.keyboard.press('Enter');
        await page.getByText('The server does not know this key.').waitFor();
        await assertAccessible(page);
        await field.fill(KEY);
        await page.getByRole('button', { name: 'Use this key' }).click();
        await page.getByLabel('Route').selectOption({ label: '/' });
        await send(page);
        await answerOf(page).getByText('{ "calls": 1 }').waitFor();
        assert.match(
          await page.getByLabel('The call for curl', { exact: true }).innerText(),
          /X-Banana-Api-Key: YOUR_API_KEY/,
        );
        await talk(page);
        await page.reload();
        await page.getByLabel('Route').waitFor();
        assert.equal((await page.content()).includes(KEY), false);
        assert.equal(page.url().includes('key'), false);
        await page.getByRole('button', { name: 'Forget the key' }).click();
        await field.waitFor();
      });
      await server.stop();
    },
  );

  test('beside --cors-origin of another page the console works', LIMIT, async (t) => {
    const args = ['--cors-origin', 'https://app.example.com'];
    const server = await startHere(fixture('websockets.mjs'), { t, args });
    await browser.visit(server.url, {}, async (page) => {
      await talk(page);
    });
    await server.stop();
  });

  test(
    'from another machine by plain http: copying works, and the words of the app are hidden',
    LIMIT,
    async (t) => {
      const server = await startHere(fixture('killable.mjs'), { t, expectedRestarts: 1 });
      const elsewhere = server.url.replace('127.0.0.1', ELSEWHERE);
      await browser.visit(elsewhere, { expected: [/status of 500/] }, async (page) => {
        await page.getByLabel('Input as JSON').fill('{"dies":"SIGSEGV"}');
        assert.equal(await page.evaluate('isSecureContext'), false);
        await page.getByRole('button', { name: 'Copy the call for curl' }).click();
        await page.getByText('Copied', { exact: true }).waitFor();
        await page.getByLabel('Input as JSON').fill('');
        await page.getByLabel('Input as JSON').focus();
        await page.keyboard.press('Control+V');
        const pasted = (): Promise<string> => page.getByLabel('Input as JSON').inputValue();
        await eventually(
          async () => /^curl http:\/\/elsewhere\.test:\d+\/ /.test(await pasted()),
          60_000,
          () => 'the call for curl is not pasted',
        );
        await page.getByLabel('Input as JSON').fill('{"dies":"SIGSEGV"}');
        await send(page);
        await answerOf(page).getByText('500 Internal Server Error').waitFor();
        const alert = page.getByRole('article').filter({ hasText: 'died: signal SIGSEGV' });
        await alert.getByText(/^Last words of worker/).click();
        await alert.getByText('--api-key').waitFor();
      });
      await server.stop();
    },
  );

  test('in the mode of Multi Model Server the inference listener has the page', LIMIT, async (t) => {
    const store = mkdtempSync(join(tmpdir(), 'banana-page-'));
    t.after(() => rmSync(store, { recursive: true, force: true }));
    writeFileSync(
      join(store, 'says.mjs'),
      'export const handle = (data) => data && data.map(({ body }) => ({ says: body }));',
    );
    const args = ['--model-store', store, '--models', 'all', '--management-port', '0'];
    const server = await startHere(null, { t, args });
    await browser.visit(server.url, {}, async (page) => {
      await page.getByLabel('Path').selectOption('/predictions/says');
      await page.getByLabel('Input as JSON').fill('{"a":1}');
      await send(page);
      await answerOf(page).getByText('says: { "a": 1 }').waitFor();
      await page.getByRole('link', { name: 'Watch it' }).click();
      await page.getByRole('region', { name: 'Calls' }).getByText('/predictions/says').waitFor();
    });
    await server.stop();
  });
});
