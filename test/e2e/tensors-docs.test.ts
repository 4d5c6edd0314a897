/** docs/tensors.md: its apps are served and called as the page says, with its client where that is installed. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { ROOT, type Server } from '../helpers/server.js';
import { ask } from '../helpers/v2.js';
import { appFolder } from '../worker/app-folder.js';

const PAGE = readFileSync(`${ROOT}docs/tensors.md`, 'utf8');
const LIMIT = { timeout: 240_000 };

function block(language: string, name: string): string {
  const [, code] = new RegExp(`\`\`\`${language} ${name}\n(.*?)\`\`\``, 's').exec(PAGE) ?? [];
  return code ?? assert.fail(`the page has no block of ${language} ${name}`);
}

/** Makes the call that the page shows; the answer is the one there. */
async function callAsShown({ url }: Server): Promise<void> {
  const [, path = '', body = '', answer = ''] = /curl localhost:8000(\S+) -d '(.*)'\n(.*)\n/.exec(PAGE) ?? [];
  const shown = await ask(url, path, { method: 'POST', body });
  assert.deepEqual(shown.json, JSON.parse(answer)); // Python writes 3.0 for 3
}

test('the app in TypeScript answers as the page shows', LIMIT, async (t) => {
  const server = await startHere(join(appFolder(t, { 'app.ts': block('ts', 'app') }), 'app.ts'), { t });
  await callAsShown(server);
  await server.stop();
});

const PYTHON = ['--python', '/usr/bin/python3'];
const skip = needs('python3-numpy');
test('so does the app in Python', { ...LIMIT, skip }, async (t) => {
  const app = join(appFolder(t, { 'app.py': block('python', 'app') }), 'app.py');
  const server = await startHere(app, { t, args: PYTHON });
  await callAsShown(server);
  await server.stop();
});

test('the client on the page gets the sums', { ...LIMIT, skip: skip || needs('tritonclient') }, async (t) => {
  const app = join(appFolder(t, { 'app.py': block('python', 'app') }), 'app.py');
  const server = await startHere(app, { t, args: PYTHON });
  const program = block('python', 'client').replace('localhost:8000', new URL(server.url).host);
  const child = spawn('/usr/bin/python3', ['-c', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  assert.equal((await child.stdout.toArray()).join(''), '[3. 7.]\n');
  await server.stop();
});
