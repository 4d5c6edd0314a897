/** The view "Watch it" of the page at `/`, and what it says before all else, in a browser, against real servers. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { assertAccessible, assertFits, shareBrowser, type VisitOptions } from '../helpers/browser.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import { needs } from '../helpers/needs.js';
import { call, fixture, startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 60_000 };
/** The browser logs each attempt to connect to a server that is gone. */
const GONE = [
  /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|status of 503/,
];

const alertsOf = (page: Page): Locator => page.getByRole('region', { name: 'Alerts' }).getByRole('article');
const callsOf = (page: Page): Locator => page.getByRole('region', { name: 'Calls' });

describe('watching a server', { skip: needs('chromium') }, () => {
  const browser = shareBrowser();
  const watch = (t: TestContext, { url }: Server, options?: VisitOptions): Promise<Page> =>
    browser.visit(t, `${url}/#watch`, options);

  /** An app that dies on cue, beside one that cannot start. */
  async function startKillable(t: TestContext): Promise<{ server: Server; cues: Cues }> {
    const cues = makeCues(t);
    const broken = `broken=${fixture('throws-in-init.mjs')}`;
    const args = ['--model', broken];
    const server = await startServer(fixture('killable.mjs'), {
      t,
      args,
      env: cues.env,
      expectedRestarts: 2,
    });
    return { server, cues };
  }

  test('a worker that is killed, and what became of each call, stand on one screen', LIMIT, async (t) => {
    const { server, cues } = await startKillable(t);
    const page = await watch(t, server, { size: [1440, 900] });

    // A model that cannot start is the first thing one sees, with its reason and what to do; the other one is well.
    const first = alertsOf(page).first();
    await first.getByText('broken has given up: no worker can start').waitFor();
    await first.getByText('SERVE_INIT_FAILED').waitFor();
    await first.getByText('the weights are missing').first().waitFor();
    await first.getByText('correct it, then start the server again').waitFor();

    const status = await server.until(({ models }) => models.some(({ state }) => state === 'ready'));
    const pid = status.models.flatMap(({ workers }) => workers).find(({ state }) => state === 'idle')?.pid;
    assert.ok(pid !== undefined && pid !== null);
    const running = call(server.url, '{"until":"never"}', { 'x-request-id': 'the-running-call' });
    await page.getByRole('row').getByText('busy').waitFor();
    const waiting = call(server.url, '{}', { 'x-request-id': 'the-waiting-call' });
    await server.until(({ model }) => model.queue.waiting === 1 || model.inFlight === 2);
    process.kill(pid, 'SIGKILL');
    assert.deepEqual([(await running).status, (await waiting).status], [500, 200]);

    await alertsOf(page).getByText('died: signal SIGKILL').waitFor();
    const rows = callsOf(page).getByRole('row');
    for (const texts of [
      ['the-running-call', '500 WORKER_LOST'],
      ['the-waiting-call', '200'],
      ['died: signal SIGKILL', 'the-running-call'],
    ] as const) {
      const row = texts.reduce((found, hasText) => found.filter({ hasText }), rows);
      await row.waitFor();
      assert.equal(await isInWindow(page, row), true, `${texts.join(' ')} is in the window`);
    }
    cues.give('never');

    await page.getByRole('searchbox', { name: 'Filter calls' }).fill('the-waiting-call');
    await rows.filter({ hasText: 'the-running-call' }).first().waitFor({ state: 'detached' });
    await assertAccessible(page);
    await page.setViewportSize({ width: 375, height: 700 });
    await assertFits(page);
    await assertAccessible(page);
    await page.goto(`${server.url}/#try`);
  });

  test(
    'while a model is being loaded, the page says what it does; then it can be called',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startServer(fixture('imports-on-cue.mjs'), { t, env: cues.env });
      const page = await browser.visit(t, server.url);
      const loading = page.getByRole('region', { name: 'Loading' });
      await loading.getByText(/worker 0 imports the app, for \d+ s/).waitFor();
      await page.getByText('The routes are not known until the app is loaded.').waitFor();
      assert.equal(await alertsOf(page).count(), 0);
      await assertAccessible(page);
      cues.give('import may end');
      await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
      await loading.waitFor({ state: 'detached' });
    },
  );

  test('the end of the server is told, and the next one is found', LIMIT, async (t) => {
    const server = await startServer(fixture('works.mjs'), { t });
    const page = await watch(t, server, { expected: GONE });
    await page.getByRole('region', { name: 'Models and workers' }).waitFor();
    await server.stop('SIGTERM');
    await alertsOf(page).getByText('The server has ended').waitFor();
    await alertsOf(page).getByText('It has finished its calls and ended.').waitFor();
    await assertAccessible(page);

    const port = new URL(server.url).port;
    const args = ['--host', '127.0.0.1', '--port', port];
    const next = await startServer(fixture('works.mjs'), { t, args, isAddressGiven: true });
    await alertsOf(page).getByText('The server has ended').waitFor({ state: 'detached' });
    next.process.kill('SIGKILL');
    await alertsOf(page).getByText('No connection to the server').waitFor();
  });
});

async function isInWindow(page: Page, element: Locator): Promise<boolean> {
  const box = await element.boundingBox();
  const size = page.viewportSize();
  return box !== null && size !== null && box.y >= 0 && box.y + box.height <= size.height;
}
