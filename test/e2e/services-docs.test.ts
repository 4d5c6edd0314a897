/** docs/services.md: its services are served, its table of the context is the context's. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { tableRows } from '../helpers/doc-page.js';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { ROOT, call, type Answer, type Server } from '../helpers/server.js';
import { Context } from '../../worker/api/mms/context.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };
const PAGE = readFileSync(`${ROOT}docs/services.md`, 'utf8');

const LANGUAGES = [
  { language: 'ts', file: 'service.ts', skip: false },
  { language: 'python', file: 'service.py', skip: needs('python3') },
] as const;

type Language = (typeof LANGUAGES)[number];

function serveBlock(t: TestContext, { language, file }: Language, name: string): Promise<Server> {
  const [, code] = new RegExp(`\`\`\`${language} ${name}\n(.*?)\`\`\``, 's').exec(PAGE) ?? [];
  assert.ok(code !== undefined, `the page has a block of ${language} ${name}`);
  return startHere(join(appFolder(t, { [file]: code }), file), { t });
}

function predict(server: Server, text: string): Promise<Answer> {
  return call(`${server.url}/predictions/service`, text, { 'content-type': 'text/plain' });
}

for (const each of LANGUAGES) {
  const limit = { ...LIMIT, skip: each.skip };

  test(
    `the function on the page in ${each.language} answers what it knows, and 404 for the rest`,
    limit,
    async (t) => {
      const server = await serveBlock(t, each, 'function');
      assert.deepEqual((await predict(server, 'one')).json(), { word: 'eins' });
      const unknown = await predict(server, 'two');
      assert.deepEqual([unknown.status, unknown.json()], [404, { message: 'no such word' }]);
      await server.stop();
    },
  );

  test(
    `the class on the page in ${each.language} answers texts, and refuses an empty one`,
    limit,
    async (t) => {
      const server = await serveBlock(t, each, 'class');
      assert.deepEqual((await predict(server, 'four')).json(), { length: 4 });
      assert.deepEqual((await predict(server, '')).json(), {
        code: 400,
        type: 'InternalServerException',
        message: 'no text',
      });
      await server.stop();
    },
  );
}

test('the page names every member of the context, and no other', () => {
  const documented = tableRows('services.md', 'The context', 'member').flatMap(({ member = '' }) =>
    member.replace(/\(.*/, '').split(', '),
  );
  const facts = { modelName: '', manifest: null, systemProperties: {}, worker: {}, log: {} };
  const context = new Context(facts as unknown as ConstructorParameters<typeof Context>[0]);
  const members = [...Object.getOwnPropertyNames(Context.prototype), ...Object.keys(context)];
  const camelCase = members.filter((name) => name !== 'constructor' && !name.includes('_'));
  assert.deepEqual(documented.sort(), camelCase.sort());
});
