/** The view "Try it" of the page at `/`, in a browser, against a real server. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { assertAccessible, assertFits, shareBrowser } from '../helpers/browser.js';
import { needs } from '../helpers/needs.js';
import { ROOT, fixture } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const THREE = `${ROOT}examples/digits/png/3-row8.png`;

const answerOf = (page: Page): Locator => page.getByRole('region', { name: 'Answer' });
const send = (page: Page): Promise<void> => page.getByRole('button', { name: 'Send', exact: true }).click();

/** Chooses a route of the model `kinds`. */
async function chooseKind(page: Page, route: string): Promise<void> {
  await page.getByLabel('Model', { exact: true }).selectOption('kinds');
  await page.getByLabel('Route').selectOption({ label: route });
}

describe('trying a server', { skip: needs('chromium') }, () => {
  const browser = shareBrowser();
  const models = [
    `kinds=${fixture('kinds-of-answers.mjs')}`,
    `words=${fixture('streams-on-cue.mjs')}`,
    `schemas=${fixture('schemas.mjs')}`,
  ];
  const args = models.flatMap((model) => ['--model', model]);
  const shared = shareHere(`${ROOT}examples/digits/app.ts`, { args });

  test('the address in the banner gives an answer after one click', LIMIT, async () => {
    const [, address = ''] = / on (http:\S+)/.exec(shared.server.stderr()) ?? [];
    await browser.visit(address, {}, async (page) => {
      await send(page);
      await answerOf(page).getByText('200 OK').waitFor();
      await answerOf(page).getByText('label: 7').waitFor();
      for (const figure of ['queue', 'run', 'request id'])
        await answerOf(page).getByText(figure, { exact: true }).waitFor();
      await assertAccessible(page);
    });
  });

  test('by keyboard alone, in the dark', LIMIT, async () => {
    await browser.visit(shared.server.url, { dark: true }, async (page) => {
      await page.getByLabel('Input as JSON').waitFor();
      for (let i = 0; i < 30; i += 1) {
        await page.keyboard.press('Tab');
        if ((await page.evaluate<string>('document.activeElement.textContent')) === 'Send') break;
      }
      await page.keyboard.press('Enter');
      await answerOf(page).getByText('label: 7').waitFor();
      await assertAccessible(page);
    });
  });

  test('on a phone nothing is wider than the window', LIMIT, async () => {
    await browser.visit(shared.server.url, { size: [375, 700] }, async (page) => {
      await send(page);
      await answerOf(page).getByText('label: 7').waitFor();
      await assertFits(page);
      await assertAccessible(page);
    });
  });

  test('a file is picked, shown and sent, as the body or in a form', LIMIT, async () => {
    await browser.visit(shared.server.url, {}, async (page) => {
      await page.getByRole('button', { name: 'File' }).click();
      await page.getByLabel('Choose a file').setInputFiles(THREE);
      await page.getByAltText('The file 3-row8.png').waitFor();
      await send(page);
      await answerOf(page).getByText('label: 3').waitFor();
      await page.getByLabel('Sent as').selectOption('a field of a form');
      await page
        .getByRole('region', { name: 'The same call as code' })
        .getByText("-F 'image=@3-row8.png")
        .waitFor();
      await send(page);
      await answerOf(page).getByText('label: 3').waitFor();
    });
  });

  for (const kind of ['drop', 'paste'])
    test(`a file that one can ${kind} is sent`, LIMIT, async () => {
      await browser.visit(shared.server.url, {}, async (page) => {
        await page.getByLabel('Input as JSON').waitFor();
        await page.evaluate(giveFile, { kind, base64: readFileSync(THREE).toString('base64') });
        await page.getByAltText('The file given.png').waitFor();
        await send(page);
        await answerOf(page).getByText('label: 3').waitFor();
      });
    });

  test('the form follows the example, and the JSON follows the form', LIMIT, async () => {
    await browser.visit(shared.server.url, { expected: [/status of 422/] }, async (page) => {
      await page.getByRole('button', { name: 'Form', exact: true }).click();
      await page.getByLabel('pixels').fill('[1, 2');
      await page.getByText(/after array element/).waitFor();
      assert.equal(await page.getByRole('button', { name: 'Send', exact: true }).isDisabled(), true);
      await page.getByLabel('pixels').fill('[1, 2]');
      await page.getByRole('button', { name: 'JSON', exact: true }).click();
      assert.equal(await page.getByLabel('Input as JSON').inputValue(), '{\n  "pixels": [1, 2]\n}');
      await send(page);
      await answerOf(page).getByText('422').waitFor();
    });
  });

  test(
    'the form follows the schema, and wrong values stand beside their fields until they change',
    LIMIT,
    async () => {
      await browser.visit(shared.server.url, { expected: [/status of 422/] }, async (page) => {
        await page.getByLabel('Model', { exact: true }).selectOption('schemas');
        await page.getByRole('button', { name: 'Form', exact: true }).click();
        const steps = page.getByLabel('steps number, default 10');
        await steps.fill('0');
        await send(page);
        const problem = page.locator('.field', { has: steps }).getByText(/expected number to be >0/);
        await problem.waitFor();
        assert.equal(await steps.getAttribute('aria-invalid'), 'true');
        await assertAccessible(page);
        await steps.fill('2');
        await problem.waitFor({ state: 'detached' });
        await send(page);
        await answerOf(page).getByText('"HELLO"').waitFor();
      });
    },
  );

  for (const [accept, item] of [
    ['the app sends it', '{"word":1}'],
    ['stream of events (SSE)', '{"word":2}'],
    ['stream of lines (NDJSON)', '{"word":3}'],
  ] as const)
    test(`a stream is shown while it arrives, ${accept}, and cancelled`, LIMIT, async () => {
      await browser.visit(shared.server.url, {}, async (page) => {
        await page.getByLabel('Model', { exact: true }).selectOption('words');
        await page.getByLabel('Answer as').selectOption(accept);
        await send(page);
        for (let i = 1; !item.includes(String(i)); i += 1) {
          await answerOf(page).getByText(`{"word":${i}}`).waitFor();
          shared.cues.give(`word ${i} is shown`);
        }
        await answerOf(page).getByText(item).waitFor();
        await page.getByRole('button', { name: 'Cancel' }).click();
        await answerOf(page).getByText('cancelled').waitFor();
        await shared.cues.untilNoted('aborted');
      });
    });

  test('pictures, SVG and HTML are shown as what they are, and nothing of them runs', LIMIT, async () => {
    await browser.visit(shared.server.url, {}, async (page) => {
      for (const [route, name] of [
        ['/picture', 'The picture that the app answered with'],
        ['/vector', 'The picture that the app answered with'],
        ['/picture-in-json', 'A picture in the answer'],
      ] as const) {
        await chooseKind(page, route);
        await send(page);
        const picture = answerOf(page).getByAltText(name);
        await picture.waitFor();
        await page.waitForFunction(
          (image) => (image as { naturalWidth?: number } | null)?.naturalWidth !== 0,
          await picture.elementHandle(),
        );
      }
      await chooseKind(page, '/html');
      await send(page);
      await answerOf(page).getByText('<h1 onclick="alert(1)">a heading</h1>').waitFor();
    });
  });

  test('a long list is drawn in steps', LIMIT, async () => {
    await browser.visit(shared.server.url, {}, async (page) => {
      await chooseKind(page, '/long');
      await send(page);
      await answerOf(page).getByRole('button', { name: 'Show 100 more of 900' }).click();
      await answerOf(page).getByRole('button', { name: 'Show 200 more of 800' }).waitFor();
    });
  });

  test('an error of the app is an answer too', LIMIT, async () => {
    await browser.visit(shared.server.url, { expected: [/status of 500/] }, async (page) => {
      await chooseKind(page, '/fails');
      await send(page);
      await answerOf(page).getByText('500 Internal Server Error').waitFor();
      await answerOf(page).getByText('SERVE_INFERENCE_FAILED').waitFor();
    });
  });

  test('a background job is followed to its end, and stands in the list of jobs', LIMIT, async () => {
    await browser.visit(shared.server.url, {}, async (page) => {
      await chooseKind(page, '/later, background job');
      await send(page);
      await answerOf(page).getByRole('status').getByText('running').waitFor();
      shared.cues.give('the job may end');
      await answerOf(page).getByRole('status').getByText('succeeded').waitFor();
      await answerOf(page).getByText('result: { "done": true }').waitFor();
      await page.getByRole('link', { name: 'Watch it' }).click();
      await page.getByRole('region', { name: 'Background jobs' }).getByText('1 succeeded').waitFor();
      await assertAccessible(page);
    });
  });

  test('a conversation with a WebSocket', LIMIT, async () => {
    await browser.visit(shared.server.url, {}, async (page) => {
      await chooseKind(page, '/echo, WebSocket');
      await page.getByRole('button', { name: 'Connect' }).click();
      await page.getByLabel('Message', { exact: true }).fill('hello');
      await page.keyboard.press('Enter');
      await page.getByRole('log').getByText('you said hello').waitFor();
      await assertAccessible(page);
      await page.getByRole('button', { name: 'Disconnect' }).click();
      await page.getByRole('log').getByText('closed with').waitFor();
    });
  });
});

/** Runs in the page: gives it a file as a person would who drops or pastes it. */
function giveFile({ kind, base64 }: { kind: string; base64: string }): void {
  const { DataTransfer, DragEvent, ClipboardEvent, document } = globalThis as unknown as {
    DataTransfer: new () => { items: { add(file: File): void } };
    DragEvent: new (name: string, init: object) => Event;
    ClipboardEvent: new (name: string, init: object) => Event;
    document: { querySelector(selector: string): EventTarget };
  };
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], 'given.png', { type: 'image/png' }));
  const event =
    kind === 'drop'
      ? new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
      : new ClipboardEvent('paste', { clipboardData: data, bubbles: true });
  document.querySelector('form.input').dispatchEvent(event);
}
