/** docs/http.md, "Managing models": its requests are made in their order, and their answers are those of the page. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { mmsManagement } from '../../supervisor/http/dialects/mms/management.js';
import { tableRows } from '../helpers/doc-page.js';
import { editedApp } from '../helpers/edited-app.js';
import { startManaged } from '../helpers/managed-server.js';
import { ROOT } from '../helpers/server.js';

const ROWS = tableRows('http.md', 'Managing models', 'request');

test('docs/http.md has a request for each method of each path of the management API', () => {
  const listed = ROWS.map(({ request = '' }) => {
    const [method, path = ''] = request.replace(/\?.*/, '').split(' ');
    const segments = path
      .replace(/\/(echoes|two)(?=\/|$)/, '/{model_name}')
      .replace(/\/1(?=\/|$)/, '/{model_version}')
      .replace(/\/workers\/\d+/, '/workers/{worker}');
    return `${method} ${segments}`;
  });
  const all = [...mmsManagement.paths].flatMap(([path, methods]) =>
    methods.split(', ').map((method) => `${method} ${path}`),
  );
  assert.deepEqual(
    all.filter((each) => !listed.includes(each)),
    [],
  );
});

test(
  'docs/http.md: each request that manages models gets the answer on the page',
  { timeout: 240_000 },
  async (t) => {
    const server = await startManaged(t);
    for (const { request = '', status, says = '' } of ROWS) {
      const reply = await server.manage(request);
      assert.equal(String(reply.status), status, request);
      if (!/^[A-Z]/.test(says)) continue; // a description of the answer, not its text
      const body = reply.json<{ status?: string; message?: string }>();
      assert.equal(body.status ?? body.message, says, request);
    }
    await server.handle.close();
  },
);

test('the commands of docs/models.md that manage a model do so', { timeout: 240_000 }, async (t) => {
  const { folder } = editedApp(t, { 'digits/app.mjs': 'export const inference = () => 1;' });
  const server = await startManaged(t, { modelStore: folder });
  const page = readFileSync(`${ROOT}docs/models.md`, 'utf8');
  const commands = [...page.matchAll(/^ {4}curl (?:-X (\w+) )?'http:\/\/127\.0\.0\.1:8081(.*)'$/gm)];
  const replies: unknown[] = [];
  for (const [, method = 'GET', path] of commands) {
    const reply = await server.manage(`${method} ${path}`);
    const { status, workers } = reply.json<{ status: string; workers?: object[] }>();
    replies.push([reply.status, status, ...(workers === undefined ? [] : [workers.length])]);
  }
  assert.deepEqual(replies, [
    [200, 'Workers scaled'],
    [200, 'Workers scaled'],
    [200, 'Healthy', 4],
    [200, 'Model "digits" unregistered'],
  ]);
  await server.handle.close();
});
