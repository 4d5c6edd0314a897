/** docs/python.md: its apps are served, its table of the context is the context's. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { tableRows } from '../helpers/doc-page.js';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { ROOT, call, type Server } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const OPTIONS = { timeout: 240_000, skip: needs('python3') };
const PAGE = readFileSync(`${ROOT}docs/python.md`, 'utf8');
const ENV = { ...process.env, PYTHONPATH: `${ROOT}worker/python` };

function block(name: string): string {
  const [, code] = new RegExp(`\`\`\`python ${name}\n(.*?)\`\`\``, 's').exec(PAGE) ?? [];
  assert.ok(code !== undefined, `the page has a block of python ${name}`);
  return code;
}

function serveBlock(t: TestContext, name: string): Promise<Server> {
  return startHere(join(appFolder(t, { 'app.py': block(name) }), 'app.py'), { t });
}

test('the app on the page gives the answer on the page', OPTIONS, async (t) => {
  const server = await serveBlock(t, 'app');
  const [, sent, got] = /\$ curl -d '(.*)' localhost:8000\n(.*)\n/.exec(PAGE) ?? [];
  assert.equal((await call(server.url, sent as string)).text, got);
  await server.stop();
});

test(
  'the batch function on the page answers each call, and one without a text fails alone',
  OPTIONS,
  async (t) => {
    const server = await serveBlock(t, 'batch');
    const answers = await Promise.all(['"four"', '""', '"sixty"'].map((body) => call(server.url, body)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 500, 200],
    );
    assert.deepEqual([answers[0]?.json(), answers[2]?.json()], [{ length: 4 }, { length: 5 }]);
    await server.stop();
  },
);

test('the app on the page that chooses its status does so', OPTIONS, async (t) => {
  const server = await serveBlock(t, 'status');
  for (const [body, status, text] of [
    ['{"prompt":"hi"}', 201, '{"made":"hi"}'],
    ['{}', 422, 'send a prompt'],
  ] as const) {
    const answer = await call(server.url, body);
    assert.equal(answer.status, status);
    assert.ok(answer.text.includes(text), answer.text);
  }
  await server.stop();
});

test('the page names every member of the context, and no other', OPTIONS, () => {
  const rows = tableRows('python.md', 'Being called', 'member');
  const documented = rows.flatMap(({ member = '' }) => member.replace(/\(.*?\)/g, '').split(', '));
  const code = `
from banana_worker.run.call_context import CallContext
print(*(name for name in dir(CallContext) if not name.startswith("_")))`;
  const members = execFileSync('python3', ['-B', '-c', code], { env: ENV, encoding: 'utf8' })
    .trim()
    .split(' ');
  const forAdapters = ['body', 'call', 'call_id', 'cancel', 'end', 'forget_body', 'report_to'];
  assert.deepEqual(documented.sort(), members.filter((name) => !forAdapters.includes(name)).sort());
});
