/** The page says why a call failed, has the lines of the log, and manages models: in a browser, against a real server. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { assertAccessible, assertFits, shareBrowser } from '../helpers/browser.js';
import { editedApp } from '../helpers/edited-app.js';
import { holdPort } from '../helpers/held-port.js';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';

const LIMIT = { timeout: 240_000 };
const KEY = 's3cret-management';
const FILES = {
  'app.mjs': `
    export const example = { fails: false };
    export function inference({ fails }) {
      console.log(fails ? 'it is about to fail' : 'it works well');
      if (fails) throw new RangeError('the seventh row is too long');
      return { pid: process.pid };
    }`,
  'store/second.mjs': 'export const inference = () => 2;',
};

const linesOf = (page: Page): Locator => page.getByRole('region', { name: 'Lines' }).getByRole('row');
const modelOf = (page: Page, name: string): Locator =>
  page.getByRole('article').filter({ has: page.getByRole('button', { name, exact: true }) });

describe('the page', { skip: needs('chromium') }, () => {
  const browser = shareBrowser();

  test(
    'says why a call failed, shows its log lines, and manages models with the key of that',
    LIMIT,
    async (t) => {
      const { folder } = editedApp(t, FILES);
      const port = String(await holdPort());
      const both = [
        '--host',
        '127.0.0.1',
        '--port',
        port,
        '--management-host',
        '127.0.0.1',
        '--management-port',
        port,
      ];
      const args = [...both, '--model-store', 'store', '--management-key', KEY];
      const server = await startHere('app.mjs', { t, args, cwd: folder, isAddressGiven: true });
      await browser.visit(server.url, { expected: [/status of (?:500|401)/] }, async (page) => {
        await callInVain(page);
        await readItsLines(page);
        await page.setViewportSize({ width: 375, height: 700 });
        await assertFits(page);
        await assertAccessible(page);
        await page.setViewportSize({ width: 1280, height: 900 });
        await page.getByRole('link', { name: 'Watch it' }).click();
        await seeAllColumns(page);
        await manage(page);
      });
      await server.stop();
    },
  );
});

async function callInVain(page: Page): Promise<void> {
  const send = page.getByRole('button', { name: 'Send', exact: true });
  const answer = page.getByRole('region', { name: 'Answer' });
  await send.click();
  await answer.getByText('200 OK').waitFor();
  await page.getByLabel('Input as JSON').fill('{"fails":true}');
  await send.click();
  await answer.getByText('RangeError: the seventh row is too long', { exact: true }).waitFor();
  assert.match(await answer.getByLabel('Stack of the error').innerText(), /at .*inference .*app\.mjs:5/);
  await assertAccessible(page);
}

async function readItsLines(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Log lines of this call' }).click();
  const lines = linesOf(page);
  await lines.filter({ hasText: 'error' }).filter({ hasText: 'RangeError: the seventh row' }).waitFor();
  await lines.filter({ hasText: 'it works well' }).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'All lines' }).click();
  await lines.filter({ hasText: 'it works well' }).first().waitFor();
  await lines.filter({ hasText: 'stdout' }).filter({ hasText: 'it is about to fail' }).first().waitFor();
  await page.getByLabel('Level').selectOption('errors');
  await lines.filter({ hasText: 'it works well' }).first().waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Hold' }).click();
  await assertAccessible(page);
  await page.getByRole('button', { name: 'Go on' }).click();
}

async function seeAllColumns(page: Page): Promise<void> {
  const row = page
    .getByRole('region', { name: 'Calls' })
    .getByRole('row')
    .filter({ hasText: 'INFERENCE_FAILED' });
  await row.getByRole('link').waitFor();
  const box = await page.getByRole('columnheader', { name: 'Request id' }).boundingBox();
  assert.ok(box !== null && box.x + box.width <= 1280, 'the last column is in the window');
  await page
    .getByRole('region', { name: 'Calls' })
    .getByText('RangeError: the seventh row is too long', { exact: true })
    .first()
    .waitFor();
}

async function manage(page: Page): Promise<void> {
  await page.getByText('Manage models').click();
  const field = page.getByLabel('Management key');
  await field.fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByText('The server does not know this key.').waitFor();
  await field.fill(KEY);
  await page.keyboard.press('Enter');
  const app = modelOf(page, 'app');
  await app.getByRole('button', { name: 'Restart worker 0 of app' }).click();
  await app.getByText('Done.').waitFor();
  await app.getByLabel('Least workers of app').fill('2');
  await app.getByRole('button', { name: 'Scale app' }).click();
  await app.getByRole('button', { name: 'Restart worker 1 of app' }).waitFor();
  await page.getByText('Load a model of the store').click();
  await page.getByRole('button', { name: 'Load second' }).click();
  const second = modelOf(page, 'second');
  await second.getByRole('button', { name: 'Unload second', exact: true }).waitFor();
  await second.getByText('1 of 1', { exact: true }).waitFor(); // else the load is told that its model has gone
  await assertAccessible(page);
  await second.getByRole('button', { name: 'Unload second', exact: true }).click();
  await second.getByRole('button', { name: 'Really: Unload second' }).click();
  await second.waitFor({ state: 'detached' });
  assert.equal((await page.content()).includes(KEY), false);
}
