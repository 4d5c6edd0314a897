/** The view "Watch it" of the page at `/`, and what it says before all else, in a browser, against real servers. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { assertAccessible, assertFits, shareBrowser } from '../helpers/browser.js';
import { makeCues } from '../helpers/cues.js';
import { holdPort } from '../helpers/held-port.js';
import { editedApp } from '../helpers/edited-app.js';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { call, eventually, fixture, startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
/** The browser logs each attempt to connect to a server that is gone. */
const GONE = [
  /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|status of 503/,
];

const BROKEN = `
  export const init = () => {
    throw new Error('the weights are missing. Get them:\\n    make weights');
  };
  export const inference = () => {};`;

const alertsOf = (page: Page): Locator => page.getByRole('region', { name: 'Alerts' }).getByRole('article');
const callsOf = (page: Page): Locator => page.getByRole('region', { name: 'Calls' });

describe('watching a server', { skip: needs('chromium') }, () => {
  const browser = shareBrowser();

  test('a worker that is killed, and what became of each call, stand on one screen', LIMIT, async (t) => {
    const { env } = makeCues(t);
    const args = ['--model', `broken=${editedApp(t, { 'broken.mjs': BROKEN }).path('broken.mjs')}`];
    const server = await startHere(fixture('killable.mjs'), { t, args, env, expectedRestarts: 2 });
    await browser.visit(`${server.url}/#watch`, { size: [1440, 900] }, async (page) => {
      // A model that cannot start is the first thing one sees, with its reason and what to do; the other one is well.
      const first = alertsOf(page).first();
      await first.getByText('broken has given up: no worker can start').waitFor();
      const reason = first.getByText('the weights are missing').first();
      assert.match(
        await reason.innerText(),
        /Get them:\n {4}make weights/,
        'a command to copy has its own line',
      );
      await first.getByText('correct it, then start the server again').waitFor();

      await killWorker(server, () => page.getByRole('row').getByText('busy').waitFor());
      await alertsOf(page).getByText('died: signal SIGKILL').waitFor();
      const rows = callsOf(page).getByRole('row');
      for (const texts of [
        ['the-running-call', '500 WORKER_LOST'],
        ['the-waiting-call', '200'],
        ['died: signal SIGKILL', 'the-running-call'],
      ] as const) {
        const row = texts.reduce((found, hasText) => found.filter({ hasText }), rows);
        await row.waitFor();
        await eventually(
          () => isInWindow(page, row),
          60_000,
          () => `${texts.join(' ')} is not in the window`,
        );
      }
      await assertAccessible(page);

      await page.getByLabel('all models in one chart').check();
      const charts = page.getByRole('region', { name: 'All models, the last ten minutes' });
      const ofCalls = charts.getByRole('figure').filter({ hasText: 'Calls per second' }).first();
      assert.match(
        await ofCalls.innerText(),
        /killable[^]*broken/,
        'a line for each model, the busiest first',
      );

      await page.getByRole('searchbox', { name: 'Filter calls' }).fill('the-waiting-call');
      await rows.filter({ hasText: 'the-running-call' }).first().waitFor({ state: 'detached' });
      await page.setViewportSize({ width: 375, height: 700 });
      await assertFits(page);
      await assertAccessible(page);
    });
    await server.stop();
  });

  test('a model that is being loaded says what it does, and can be called then', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startHere(fixture('imports-on-cue.mjs'), { t, env: cues.env });
    await browser.visit(server.url, {}, async (page) => {
      const loading = page.getByRole('region', { name: 'Loading' });
      await loading.getByText(/worker 0 imports the app, for \d+ s/).waitFor();
      await page.getByText('The routes are not known until the app is loaded.').waitFor();
      assert.equal(await alertsOf(page).count(), 0);
      await assertAccessible(page);
      cues.give('import may end');
      await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
      await loading.waitFor({ state: 'detached' });
    });
    await server.stop();
  });

  test('the end of the server is shown, and the next one is found', LIMIT, async (t) => {
    const args = ['--host', '127.0.0.1', '--port', String(await holdPort())];
    const start = (): Promise<Server> => startServer(fixture('works.mjs'), { t, args, isAddressGiven: true });
    const server = await start();
    await browser.visit(server.url, { expected: GONE }, async (page) => {
      const send = page.getByRole('button', { name: 'Send', exact: true });
      await send.waitFor(); // the page knows the routes
      await page.getByRole('link', { name: 'Watch it' }).click();
      await page.getByRole('region', { name: 'Models and workers' }).waitFor();
      await server.stop('SIGTERM');
      await alertsOf(page).getByText('The server has ended').waitFor();
      await alertsOf(page).getByText('It has finished its calls and ended.').waitFor();
      await page.getByRole('link', { name: 'Try it' }).click();
      assert.equal(await send.isDisabled(), true, 'a call cannot succeed');
      await assertAccessible(page);

      const next = await start();
      await alertsOf(page).getByText('The server has ended').waitFor({ state: 'detached' });
      await eventually(
        () => send.isEnabled(),
        60_000,
        () => 'no call can be sent',
      );
      next.process.kill('SIGKILL');
      await alertsOf(page).getByText('No connection to the server').waitFor();
    });
  });

  test('a hidden tab lets go of the server, and gets everything when it is seen again', LIMIT, async (t) => {
    const server = await startHere(fixture('works.mjs'), { t });
    await browser.visit(`${server.url}/#watch`, {}, async (page) => {
      const viewers = page.getByRole('definition').filter({ hasText: /^2$/ });
      const stream = await fetch(`${server.url}/_k/live`);
      await viewers.waitFor();
      await setHidden(page, true);
      await page.getByText('paused').waitFor();
      await untilViewers(stream, 1);
      await setHidden(page, false);
      await page.getByText('ready').first().waitFor();
      await page.getByRole('definition').filter({ hasText: /^1$/ }).first().waitFor();
    });
    await server.stop();
  });
});

/** Kills the only worker that is ready while it runs a call and another call waits, and checks their answers. */
async function killWorker(server: Server, untilBusy: () => Promise<void>): Promise<void> {
  const { model } = await server.until((status) => status.model.state === 'ready');
  const pid = model.workers[0]?.pid;
  assert.ok(pid !== undefined && pid !== null);
  const running = call(server.url, '{"until":"never"}', { 'x-request-id': 'the-running-call' });
  await untilBusy();
  const waiting = call(server.url, '{}', { 'x-request-id': 'the-waiting-call' });
  await server.until((status) => status.model.queue.waiting === 1 || status.model.inFlight === 2);
  process.kill(pid, 'SIGKILL');
  assert.deepEqual([(await running).status, (await waiting).status], [500, 200]);
}

/** A browser without windows has no tabs to change between. */
async function setHidden(page: Page, hidden: boolean): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${hidden} });
    document.dispatchEvent(new Event('visibilitychange'));
  `);
}

/** Reads the live data until it reports so many viewers, and leaves. */
async function untilViewers(stream: Response, viewers: number): Promise<void> {
  assert.ok(stream.body !== null);
  for await (const piece of stream.body) {
    const text = Buffer.from(piece as Uint8Array).toString();
    if (text.includes(`"viewers":${viewers}`)) return;
  }
  assert.fail(`the stream ended without ${viewers} viewers`);
}

async function isInWindow(page: Page, element: Locator): Promise<boolean> {
  const box = await element.boundingBox();
  const size = page.viewportSize();
  return box !== null && size !== null && box.y >= 0 && box.y + box.height <= size.height;
}
