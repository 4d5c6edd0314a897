/** `GET /openapi.json` of real servers: who gets it, what it says of each kind of app, and clients that are made of it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { Validator } from '@seriousme/openapi-schema-validator';
import { appFolder } from '../worker/app-folder.js';
import { makeCues } from '../helpers/cues.js';
import { editedApp } from '../helpers/edited-app.js';
import { holdPort } from '../helpers/held-port.js';
import { startManaged } from '../helpers/managed-server.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { ROOT, fixture, type Server } from '../helpers/server.js';

const run = promisify(execFile);
const LIMIT = { timeout: 240_000 };

interface Content {
  readonly schema: object;
}

interface ApiOperation {
  readonly operationId: string;
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, object>>;
  readonly security?: readonly object[];
}

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>;
}

async function documentOf(url: string, headers: Record<string, string> = {}): Promise<Document> {
  const reply = await fetch(`${url}/openapi.json`, { headers });
  assert.equal(reply.status, 200);
  assert.match(reply.headers.get('content-type') ?? '', /^application\/json/);
  return (await reply.json()) as Document;
}

async function assertValid(document: Document): Promise<void> {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(
    structuredClone(document) as unknown as Record<string, unknown>,
  );
  assert.ok(valid, JSON.stringify(errors, null, 1));
  assert.equal(validator.version, '3.1');
}

function operationsOf({ paths }: Document): string[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  );
}

function inputAt(document: Document, path: string): object | undefined {
  return document.paths[path]?.['post']?.requestBody?.content['application/json']?.schema;
}

/** `--model name=path` for each. */
function modelArgs(models: Readonly<Record<string, string>>): string[] {
  return Object.entries(models).flatMap(([name, app]) => ['--model', `${name}=${app}`]);
}

withEachRuntime(({ app, language }) => {
  test('the document of every kind of app is valid, and says what each takes', LIMIT, async (t) => {
    const isTypeScript = language === 'TypeScript';
    const words = JSON.stringify(Array(100).fill('word'));
    const long = editedApp(t, {
      'long.mjs': `export const inference = (input) => input; export const example = { words: ${words} };`,
      'long.py': `example = {"words": ${words}}\ndef inference(model_inputs): return model_inputs\n`,
      'signed.mjs': `export const inference = (input) => input;
        export const signature = { inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 2] }], outputs: [] };`,
      'signed.py': `signature = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}], "outputs": []}
def inference(model_inputs): return model_inputs\n`,
    });
    const suffix = isTypeScript ? 'mjs' : 'py';
    const models = {
      kinds: app('every-kind'),
      service: app('works-service'),
      long: long.path(`long.${suffix}`),
      signed: long.path(`signed.${suffix}`),
    };
    const server = await startHere(app('echoes'), { t, args: modelArgs(models) });
    await server.until(({ models }) => models.every(({ state }) => state === 'ready'));
    const document = await documentOf(server.url);
    await assertValid(document);
    const free = {};
    assert.deepEqual(inputAt(document, '/'), free);
    assert.deepEqual(inputAt(document, '/models/service/'), free);
    assert.deepEqual(inputAt(document, '/models/long/'), {
      type: 'object',
      properties: { words: { type: 'array', items: { type: 'string' } } },
      additionalProperties: true,
    });
    assert.deepEqual(inputAt(document, '/models/signed/'), {
      type: 'object',
      properties: {
        x: { type: 'array', items: { type: 'array', items: { type: 'number' }, minItems: 2, maxItems: 2 } },
      },
      required: ['x'],
    });
    const routes = operationsOf(document).filter((one) => one.includes(' /models/kinds/'));
    assert.ok(routes.includes('get /models/kinds/echo') && routes.includes('post /models/kinds/later'));
    const accepted = document.paths['/']?.['post']?.responses['202'];
    assert.match(JSON.stringify(accepted), /Prefer: respond-async.*"jobId"/, 'any call may be a job');
    await server.stop();
  });
});

withOneRuntime(({ app }) => {
  test(
    "GET and HEAD of /openapi.json need the key of calls; other methods are the app's",
    LIMIT,
    async (t) => {
      const files = editedApp(t, {
        'app.mjs': `import { Potassium, Response } from ${JSON.stringify(new URL('../../index.js', import.meta.url).href)};
        const app = new Potassium('x').init(() => ({}));
        app.handler('/openapi.json', () => new Response({ json: { mine: true } }));
        export default app;`,
      });
      const server = await startHere(files.path('app.mjs'), { t, args: ['--api-key', 'k3y'] });
      await server.until(({ state }) => state === 'ready');
      const ask = (method: string, key?: string): Promise<Response> => {
        const headers: Record<string, string> = { 'content-type': 'application/json' };
        if (key !== undefined) headers['authorization'] = `Bearer ${key}`;
        return fetch(`${server.url}/openapi.json`, {
          method,
          headers,
          body: method === 'POST' ? '{}' : null,
        });
      };
      assert.equal((await ask('GET')).status, 401);
      assert.equal((await ask('GET', 'wrong')).status, 401);
      const [get, head] = [await ask('GET', 'k3y'), await ask('HEAD', 'k3y')];
      assert.deepEqual([get.status, head.status], [200, 200]);
      assert.equal(head.headers.get('content-length'), String((await get.arrayBuffer()).byteLength));
      assert.deepEqual(await (await ask('POST', 'k3y')).json(), { mine: true });
      assert.equal((await ask('PUT', 'k3y')).status, 405);
      const document = await documentOf(server.url, { 'x-banana-api-key': 'k3y' });
      await assertValid(document);
      assert.deepEqual(document.paths['/openapi.json']?.['get']?.security, [
        { bearer: [] },
        { 'x-banana-api-key': [] },
      ]);
      assert.equal(document.paths['/livez']?.['get']?.security, undefined);
      await server.stop();
    },
  );

  test('a model that is loading is free until it is loaded; names outlive a restart', LIMIT, async (t) => {
    const cues = makeCues(t);
    const models = modelArgs({ waits: fixture('imports-on-cue.mjs') });
    const start = (): Promise<Server> => startHere(app('every-kind'), { t, args: models, env: cues.env });
    const server = await start();
    await server.untilPrinted('worker every-kind/0 is ready');
    const loading = await documentOf(server.url);
    await assertValid(loading);
    assert.deepEqual(inputAt(loading, '/models/waits/'), {});
    cues.give('import may end');
    await server.until(({ models }) => models.every(({ state }) => state === 'ready'));
    const loaded = await documentOf(server.url);
    for (const one of operationsOf(loading)) assert.ok(operationsOf(loaded).includes(one), one);
    await server.stop();
    const again = await start();
    await again.until(({ models }) => models.every(({ state }) => state === 'ready'));
    assert.deepEqual(await documentOf(again.url), loaded);
    await again.stop();
  });

  test(
    'of a model store: what is registered now, and the management API where it shares the listener',
    LIMIT,
    async (t) => {
      const port = await holdPort();
      const server = await startManaged(t, { port, managementPort: port, managementKey: 'k3y' });
      const empty = await documentOf(server.url);
      await assertValid(empty);
      const manage = [{ 'management-bearer': [] }, { 'management-x-banana-api-key': [] }];
      assert.deepEqual(empty.paths['/models']?.['post']?.security, manage);
      assert.ok(!operationsOf(empty).some((one) => one.includes('/predictions/')));
      const headers = { authorization: 'Bearer k3y' };
      const reply = await server.manage('POST /models?url=works.mjs&initial_workers=1', { headers });
      assert.equal(reply.status, 200);
      const full = await documentOf(server.url);
      await assertValid(full);
      const calls = operationsOf(full).filter((one) => one.startsWith('post /predictions/'));
      assert.deepEqual(calls, ['post /predictions/works', 'post /predictions/works/1']);
    },
  );
});

interface Called {
  readonly called: string;
  readonly status: number;
  readonly text: string;
}

/** The section of docs/http.md whose commands and code the tests run. */
const [, SECTION = ''] = /^## OpenAPI\n([^]*?)^## /m.exec(readFileSync(`${ROOT}docs/http.md`, 'utf8')) ?? [];
const [, GENERATE = ''] = /^ {4}npx openapi-typescript (.*)$/m.exec(SECTION) ?? [];
const [, SHOWN = ''] = /```ts\n([^]*?)```/.exec(SECTION) ?? [];
const SHOWN_URL = 'http://localhost:8000';

const BIN = `${ROOT}node_modules/.bin`;
const STRICT = ['--strict', '--noUncheckedIndexedAccess', '--exactOptionalPropertyTypes', '--skipLibCheck'];
const TARGET = [
  '--target',
  'es2023',
  '--lib',
  'es2023',
  '--module',
  'nodenext',
  '--types',
  'node',
  '--outDir',
  'out',
];

/** Compiles if, and only if, the types are those of the schemas: a field with a default need not be sent. */
const CALLS_SCHEMAS = `
import createClient from 'openapi-fetch';
import type { paths } from './api.js';
const client = createClient<paths>({ baseUrl: '' });
const { data } = await client.POST('/zod', { body: { prompt: 'hello' } });
if (data && 'text' in data) console.log(data.text satisfies string);
// @ts-expect-error the answer has no such field
if (data && 'text' in data) console.log(data.txt);
for (const path of ['/zod', '/valibot', '/arktype'] as const) {
  await client.POST(path, { body: { prompt: 'hello', steps: 5 } });
  // @ts-expect-error the field is named prompt
  await client.POST(path, { body: { promt: 'hello' } });
  // @ts-expect-error it is text
  await client.POST(path, { body: { prompt: 5 } });
}
await client.POST('/tree', { body: { name: 'root', children: [{ name: 'leaf', children: [] }] } });
// @ts-expect-error a child has a name
await client.POST('/tree', { body: { name: 'root', children: [{ children: [] }] } });
`;

/** An example that is served, and the document of its server. */
interface Served {
  readonly example: Example;
  readonly server: Server;
  readonly document: Document;
}

/**
 * A folder with a client of each example, compiled with the types of its server's document: of its file, if it needs a key,
 * else of its address, as docs/http.md has it. All are compiled in one run, calls of an app with schemas among them.
 */
async function makeClients(t: TestContext, served: readonly Served[]): Promise<string> {
  const read = (name: string): string => readFileSync(`${ROOT}test/fixtures/openapi/${name}.ts`, 'utf8');
  const files = served.flatMap(({ example: { name }, server: { url }, document }) =>
    Object.entries({
      'client.ts': read('client'),
      'input.ts': read(name),
      'shown.ts': SHOWN.replace(SHOWN_URL, url),
      'openapi.json': JSON.stringify(document),
    }).map(([file, text]) => [`${name}/${file}`, text] as const),
  );
  const folder = appFolder(t, {
    'package.json': '{"type":"module"}',
    'schemas/calls.ts': CALLS_SCHEMAS,
    ...Object.fromEntries(files),
  });
  symlinkSync(`${ROOT}node_modules`, join(folder, 'node_modules'));
  for (const { example, server } of served) {
    const args = example.key === '' ? GENERATE.replace(SHOWN_URL, server.url) : 'openapi.json -o api.d.ts';
    await run(`${BIN}/openapi-typescript`, args.split(' '), { cwd: join(folder, example.name) });
  }
  const schemas = await startHere(fixture('schemas-potassium.mjs'), { t });
  await schemas.until(({ state }) => state === 'ready', 60_000);
  await assertValid(await documentOf(schemas.url));
  const args = GENERATE.replace(SHOWN_URL, schemas.url).split(' ');
  await run(`${BIN}/openapi-typescript`, args, { cwd: join(folder, 'schemas') });
  await schemas.stop();
  const sources = served.flatMap(({ example: { name } }) => [`${name}/client.ts`, `${name}/shown.ts`]);
  await run(`${BIN}/tsc`, [...STRICT, ...TARGET, ...sources, 'schemas/calls.ts'], { cwd: folder }).catch(
    ({ stdout }: { stdout: string }) => assert.fail(stdout),
  );
  return folder;
}

async function runClient(folder: string, file: string, args: readonly string[]): Promise<string> {
  return (await run(process.execPath, [join(folder, 'out', file), ...args])).stdout;
}

interface Example {
  readonly name: string;
  /** Found in every answer that has the model's output. */
  readonly answer: RegExp;
  readonly key: string;
}

const EXAMPLES: readonly Example[] = [
  { name: 'digits', answer: /"label":/, key: '' },
  { name: 'potassium', answer: /"outputs":\[/, key: 'k3y' },
];

async function serveExample(t: TestContext, example: Example): Promise<Served> {
  const { name, key } = example;
  const keyArgs = key === '' ? [] : ['--api-key', key];
  const args = ['--name', 'model', '--openapi-all', ...keyArgs];
  const server = await startHere(`${ROOT}examples/${name}/app.ts`, { t, args });
  await server.until(({ state }) => state === 'ready', 60_000);
  return { example, server, document: await documentOf(server.url, { 'x-banana-api-key': key }) };
}

test(
  'clients with generated types compile with the right fields alone, and call every operation of an example',
  LIMIT,
  async (t) => {
    const served = await Promise.all(EXAMPLES.map((example) => serveExample(t, example)));
    const folder = await makeClients(t, served);
    for (const { example, server, document } of served)
      await t.test(`examples/${example.name}`, async () => {
        const { name, answer, key } = example;
        await assertValid(document);
        const lines = (await runClient(folder, `${name}/client.js`, [server.url, key])).split('\n');
        const [badBody, noJob, ...calls] = lines
          .filter((line) => line.startsWith('{'))
          .map((line) => JSON.parse(line) as Called);
        assert.deepEqual([badBody?.status, noJob?.status], [400, 404]);
        assert.deepEqual(
          lines.filter((line) => line.startsWith('SERVE_')),
          ['SERVE_BAD_BODY', 'SERVE_NOT_FOUND'],
          'errors have types',
        );
        assert.deepEqual(
          calls.filter(({ called, status }) => status >= 300 && !TAKES_TENSORS.test(called)),
          [],
        );
        const called = new Set(calls.map((one) => one.called));
        assert.deepEqual([...called].sort(), operationsOf(document).sort());
        for (const { called, text } of calls.filter((one) => RUNS_MODEL.test(one.called)))
          assert.match(text, answer, called);
        assert.match(await runClient(folder, `${name}/shown.js`, []), /message:|code:/);
        await server.stop();
      });
  },
);

/** The examples take no tensors, and answer these with errors of their own. */
const TAKES_TENSORS = /\/infer$/;

/** The calls whose answers have the model's output. */
const RUNS_MODEL = /^post \/(?:$|v1|models\/|model|predictions|invocations|start\/v[34]|check)/;
