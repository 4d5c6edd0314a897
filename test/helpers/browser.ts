/** A browser for tests of the page at `/`: one for all tests of a file. Errors in its console fail the test. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before } from 'node:test';
import { chromium, type Browser, type Page } from 'playwright-core';

const EXECUTABLE = '/usr/bin/chromium';

/** Without a sandbox, which root cannot have, and without traffic of the browser's own. */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  '--host-resolver-rules=MAP elsewhere.test 127.0.0.1',
];

/** A name that leads to this machine, whose pages a browser treats as those of another one. */
export const ELSEWHERE = 'elsewhere.test';

const LIMIT_MS = 60_000;

/** Texts that a mistake in a template leaves on the page. */
const SCRAPS = /\)\}|\$\{|\bundefined\b|\bNaN\b|\[object /;

export interface VisitOptions {
  /** Width and height of the window; a phone's is 375 wide. */
  readonly size?: readonly [width: number, height: number];
  readonly dark?: boolean;
  /** Errors in the console that the test expects: the browser logs answers of the statuses that it provokes. */
  readonly expected?: readonly RegExp[];
}

export interface TestBrowser {
  /**
   * Opens a page for `use`, and closes it before anything else ends: a server that ends first is an error in its console.
   * @throws AssertionError if the console has an unexpected error
   */
  visit(url: string, options: VisitOptions, use: (page: Page) => Promise<void>): Promise<void>;
}

/** Called in a `describe`: starts a browser before its tests. */
export function shareBrowser(): TestBrowser {
  let browser: Browser | null = null;
  before(async () => {
    browser = await chromium.launch({ executablePath: EXECUTABLE, args: ARGS });
  });
  after(() => browser?.close());
  return {
    visit: async (url, { size = [1280, 900], dark = false, expected = [] }, use) => {
      assert.ok(browser !== null, 'the browser has started');
      const viewport = { width: size[0], height: size[1] };
      const context = await browser.newContext({ viewport, colorScheme: dark ? 'dark' : 'light' });
      try {
        const page = await context.newPage();
        page.setDefaultTimeout(LIMIT_MS);
        const errors = collectErrors(page);
        await page.goto(url);
        await use(page);
        const unexpected = errors.filter((error) => !expected.some((pattern) => pattern.test(error)));
        assert.deepEqual(unexpected, [], 'errors in the console of the browser');
        assert.doesNotMatch(await page.innerText('body'), SCRAPS);
      } finally {
        await context.close();
      }
    },
  };
}

/** Errors of scripts, violations of the page's policy, failed requests; and dialogs, which no page of ours opens. */
function collectErrors(page: Page): string[] {
  const errors: string[] = [];
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(error.stack ?? error.message));
  page.on('dialog', (dialog) => {
    errors.push(`the dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return errors;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeResults {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}

/** Checks that axe finds nothing serious or critical. The page's policy refuses a script tag, so axe goes in by evaluation. */
export async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<AxeResults>(
    'axe.run(document, { resultTypes: ["violations"] })',
  );
  const bad = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  const shown = bad.map(({ id, nodes }) => [
    id,
    ...nodes.map((node) => `${node.html}: ${node.failureSummary}`),
  ]);
  assert.deepEqual(shown, []);
}

/** Checks that nothing of the page is wider than its window. */
export async function assertFits(page: Page): Promise<void> {
  const [content, width] = await page.evaluate<[number, number]>(
    '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
  );
  assert.ok(content <= width, `the page is ${content} px wide in a window of ${width} px`);
}
