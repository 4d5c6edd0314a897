/** Ways of writing a custom service, each in a worker process of its own. */
import assert from 'node:assert/strict';
import { realpathSync } from 'node:fs';
import { test } from 'node:test';
import { ServiceWorker, type ServiceFiles } from '../service-worker.js';

const ECHO = `(data, context) => data === null ? null : data.map(({ body }) => 'HOW ' + body)`;
const echo = (how: string): string => ECHO.replace('HOW', how);

const WAYS: readonly (readonly [what: string, files: ServiceFiles, handler: string, answer: string])[] = [
  ['a function in CommonJS', { 'service.js': `exports.handle = ${echo('cjs')}` }, '', 'cjs x'],
  ['a function in an ES module', { 'service.mjs': `export const handle = ${echo('esm')}` }, '', 'esm x'],
  [
    'a function in TypeScript',
    { 'service.ts': `export const handle = ${echo('ts').replace('data,', 'data: any,')}` },
    '',
    'ts x',
  ],
  [
    'a function by its name',
    { 'service.mjs': `export const score = ${echo('score')}; export const handle = 1` },
    'score',
    'score x',
  ],
  ['the default export', { 'service.mjs': `export default ${echo('default')}` }, '', 'default x'],
  [
    'a method of the default export',
    { 'service.mjs': `export default { how: 'own', handle(data) { return data?.map(() => this.how) } }` },
    '',
    'own',
  ],
  [
    'a class',
    {
      'service.mjs':
        'export class S { initialize(c) { this.n = c.modelName } handle(data) { return data.map(() => this.n) } }',
    },
    '',
    'm',
  ],
  [
    'a class that is the module',
    { 'service.cjs': "module.exports = class { handle(data) { return data.map(() => 'c') } }" },
    '',
    'c',
  ],
  [
    'a class beside helper classes',
    {
      'service.mjs':
        "export class Helper {} export class S { handle(data) { return data.map(() => 's') } } export default S",
    },
    '',
    's',
  ],
  [
    'one of two classes by its name',
    {
      'service.mjs':
        "export class A { handle() {} } export class B { handle(data) { return data.map(() => 'b') } }",
    },
    'B',
    'b',
  ],
  [
    'the only class, where a function was named',
    { 'service.mjs': "export class S { handle(data) { return data.map(() => 's') } }" },
    'handle',
    's',
  ],
  [
    'a ModelHandler with its steps',
    {
      'service.ts': `import { ModelHandler, type Context, type Item } from 'banana-serve/mms';
        export class Digits extends ModelHandler<number[], number[]> {
          factor = 0;
          override async initialize(context: Context) { await super.initialize(context); this.factor = 2; }
          override preprocess(data: readonly Item[]) { return data.map(({ body }) => Number(body)); }
          override async inference(input: number[]) { return input.map((n) => n * this.factor); }
          override postprocess(output: number[]) { return output.map((n) => this.context.modelName + n); }
        }`,
    },
    '',
    'm42',
  ],
  [
    'a handler in a folder of the model, with a package beside it',
    {
      'node_modules/greeting/index.js': "module.exports = 'found'",
      'code/service.js':
        "const found = require('greeting'); exports.handle = (data) => data?.map(() => found)",
    },
    '',
    'found',
  ],
];

for (const [what, files, handler, answer] of WAYS) {
  test(`a service is ${what}`, async (t) => {
    const worker = new ServiceWorker(t, files);
    await worker.startService(handler);
    worker.batch([what.includes('ModelHandler') ? '21' : 'x']);
    assert.equal((await worker.result()).text, answer);
  });
}

for (const [what, files] of [
  ['a function handle', { 'service.mjs': `export const handle = ${echo('by itself')}` }],
  [
    'one class with a handle method',
    { 'service.mjs': "export class S { handle(d) { return d.map(() => 'by itself x') } }" },
  ],
] as const) {
  test(`a file that exports ${what} and no inference is a service, also if it was not registered as one`, async (t) => {
    const worker = new ServiceWorker(t, files);
    await worker.start(worker.app);
    worker.batch(['x']);
    assert.equal((await worker.result()).text, 'by itself x');
  });
}

test('a file with inference is a Banana app, though a store holds it and it has a handle', async (t) => {
  const worker = new ServiceWorker(t, {
    'service.mjs': 'export const inference = (input) => ({ got: input }); export const handle = () => {}',
  });
  await worker.startService();
  worker.callJson(1, { a: 1 });
  assert.deepEqual(await worker.answer(), { got: { a: 1 } });
});

test('a service works in the folder of its model', async (t) => {
  const worker = new ServiceWorker(t, {
    'code/service.mjs': 'const at = process.cwd(); export const handle = (data) => data?.map(() => at)',
  });
  await worker.startService();
  worker.batch(['x']);
  assert.equal((await worker.result()).text, realpathSync(worker.folder));
});

const NAMES = `(context) => [context.modelName === context.model_name, context.manifest, context.systemProperties]`;

test('a service learns of its model and its server when it is loaded', async (t) => {
  const worker = new ServiceWorker(t, {
    'MAR-INF/MANIFEST.json': '{"model":{"modelName":"m"}}',
    'service.mjs': `let told; export const handle = (data, context) => {
      if (data !== null) return data.map(() => told);
      told = [...(${NAMES})(context), context.requestIds, context.request_processor, context.get_request_id() ?? null, context.worker];
    }`,
  });
  const device = { gpu: 'GPU-7f', threads: 3 };
  await worker.startService('', { batchSize: 8, serverVersion: '9.8.7', device, worker: 2 });
  worker.batch(['x']);
  const [same, manifest, properties, ...rest] = JSON.parse((await worker.result()).text) as unknown[];
  assert.deepEqual([same, manifest], [true, { model: { modelName: 'm' } }]);
  const dir = worker.folder;
  assert.deepEqual(properties, {
    model_dir: dir,
    modelDir: dir,
    gpu_id: 0,
    gpuId: 0,
    batch_size: 8,
    batchSize: 8,
    server_name: 'MMS',
    serverName: 'MMS',
    server_version: '9.8.7',
    serverVersion: '9.8.7',
  });
  assert.deepEqual(rest, [null, null, null, { index: 2, gpu: 'GPU-7f', threads: 3 }]);
});

const MISTAKES: readonly (readonly [
  what: string,
  files: ServiceFiles,
  handler: string,
  code: string,
  message: RegExp,
  permanent: boolean,
])[] = [
  [
    'no handler',
    { 'service.mjs': 'export const predict = 1' },
    '',
    'SERVE_APP_INVALID',
    /service\.mjs:1: no handler: service\.mjs exports neither a function `handle` nor exactly one class with a `handle` method\. It exports: predict\. Add `export function handle\(data, context\) \{ … \}`/,
    true,
  ],
  [
    'no handler of that name',
    { 'service.mjs': '' },
    'score',
    'SERVE_APP_INVALID',
    /exports neither `score` nor exactly one class .* It exports nothing\./,
    true,
  ],
  [
    'two classes',
    { 'service.mjs': 'export class A { handle() {} } export class B { handle() {} }' },
    '',
    'SERVE_APP_INVALID',
    /It has the classes A, B with a `handle` method: name the one to serve, as in service\.mjs:A\./,
    true,
  ],
  [
    'a wrong config',
    { 'service.mjs': 'export const handle = () => {}; export const config = 5' },
    '',
    'SERVE_APP_INVALID',
    /service\.mjs:1: export `config` must be an object/,
    true,
  ],
  [
    'a load that throws',
    { 'service.mjs': '\nexport const handle = (data) => data.map(() => 1)' },
    '',
    'SERVE_INIT_FAILED',
    /service\.mjs:2:\d+: handle\(null, context\), the call that loads the model, threw: Cannot read prop/,
    false,
  ],
  [
    'an initialize that throws',
    { 'service.mjs': "export class S {\n initialize() { throw new Error('no weights') } handle() {} }" },
    '',
    'SERVE_INIT_FAILED',
    /service\.mjs:2:\d+: initialize threw: no weights/,
    false,
  ],
  [
    'an initialize that rejects',
    {
      'service.mjs': "export class S {\n async initialize() { throw new Error('no weights') } handle() {} }",
    },
    '',
    'SERVE_INIT_FAILED',
    /initialize threw: no weights/,
    false,
  ],
  [
    'a manifest that is no JSON',
    { 'MAR-INF/MANIFEST.json': '{', 'service.mjs': 'export const handle = () => {}' },
    '',
    'SERVE_INIT_FAILED',
    /MANIFEST\.json is not JSON/,
    false,
  ],
  ['a file that is not there', {}, '', 'SERVE_APP_INVALID', /service\.js: no such file/, true],
];

for (const [what, files, handler, code, message, permanent] of MISTAKES) {
  test(`a service with ${what} fails to start, and names the reason`, async (t) => {
    const failure = await new ServiceWorker(t, files).failure(handler);
    assert.match(failure.message, message);
    assert.deepEqual([failure.code, failure.permanent], [code, permanent]);
  });
}

const ALL_OF_CONTEXT = `
  export const handle = (data, context) => data?.map((item, i) => {
    const one = context.requestProcessor[i];
    context.set_response_content_type(i, 'text/x-' + i);
    context.setResponseHeader(i, 'X-Count', i);
    context.set_response_header(i, 'x-count', i + 1);
    if (i === 1) context.setResponseStatus(404, 'Gone fishing\\n', 1);
    if (i === 2) one.report_status(299, 'Fine');
    return JSON.stringify([context.getRequestId(i), context.request_ids.get(i),
      context.getRequestHeader(i, 'X-TOKEN'), one.get_request_property('x-Token'),
      context.get_all_request_header(i)['X-Token'], context.getAllRequestHeaders(i).f,
      context.getResponseStatus(i), one.getResponseHeader('X-COUNT'), context.get_response_content_type(i),
      context.getParts(i).length, context.signal(i).aborted]);
  });`;

test('each item of a batch has request and response of its own in the context, under both ways of naming', async (t) => {
  const worker = new ServiceWorker(t, { 'service.mjs': ALL_OF_CONTEXT });
  await worker.startService();
  worker.batch(['f=1&f=2', 'f=1', 'f='], {
    contentType: 'application/x-www-form-urlencoded',
    headers: 'X-Token\nsecret',
  });
  const results = [await worker.result(), await worker.result(), await worker.result()];
  const texts = ['secret', 'secret', 'secret', { 'content-type': '' }];
  assert.deepEqual(
    results.map(({ text }) => JSON.parse(text) as unknown),
    [
      ['r1', 'r1', ...texts, [200, ''], '1', 'text/x-0', 2, false],
      ['r2', 'r2', ...texts, [404, 'Gone fishing?'], '2', 'text/x-1', 1, false],
      ['r3', 'r3', ...texts, [299, 'Fine'], '3', 'text/x-2', 1, false],
    ],
  );
  assert.deepEqual(
    results.map(({ text: _, ...head }) => head),
    [
      { status: 200, phrase: '', contentType: 'text/x-0', headers: 'x-count\n1' },
      { status: 404, phrase: 'Gone fishing?', contentType: 'text/x-1', headers: 'x-count\n2' },
      { status: 299, phrase: 'Fine', contentType: 'text/x-2', headers: 'x-count\n3' },
    ],
  );
});

test('headers of the connection are not the service’s to set', async (t) => {
  const worker = new ServiceWorker(t, {
    'service.mjs': `export const handle = (data, context) => {
      if (data === null) return null;
      for (const name of ['Content-Length', 'connection', 'Transfer-Encoding', 'X-Own']) context.setResponseHeader(0, name, 5);
      return ['x'];
    }`,
  });
  await worker.startService();
  worker.batch(['x']);
  assert.equal((await worker.result()).headers, 'X-Own\n5');
});

test('settings of one batch are gone in the next', async (t) => {
  const worker = new ServiceWorker(t, {
    'service.mjs': `let n = 0; export const handle = (data, context) => {
      if (data !== null && n++ === 0) context.setAllResponseStatus(418, 'Teapot');
      return data?.map(() => 'x');
    }`,
  });
  await worker.startService();
  for (const status of [418, 200]) {
    worker.batch(['a', 'b']);
    assert.deepEqual([(await worker.result()).status, (await worker.result()).status], [status, status]);
  }
});

test('a malformed item fails alone: the handler gets the others', async (t) => {
  const worker = new ServiceWorker(t, {
    'service.mjs': 'export const handle = (data) => data?.map(({ body }) => [body, data.length])',
  });
  await worker.startService();
  worker.batch(['1', '{', '3'], { contentType: 'application/json' });
  const { message } = await worker.next('error');
  assert.deepEqual([message.id, message.code, message.kind], [2, 'SERVE_BAD_BODY', 'input']);
  for (const expected of [
    [1, 2],
    [3, 2],
  ])
    assert.deepEqual(JSON.parse((await worker.result()).text), expected);
});

test('a stream takes its type from its first chunk, and status and headers from its item', async (t) => {
  const worker = new ServiceWorker(t, {
    'service.mjs': `export const handle = (data, context) => {
      if (data === null) return null;
      context.setResponseStatus(201, 'Streaming', 0);
      context.setResponseHeader(0, 'X-A', 'b');
      return [(async function* () { yield 'one '; yield new Uint8Array([116, 119, 111]); })()];
    }`,
  });
  await worker.startService();
  worker.batch(['x']);
  const { message } = await worker.next('head');
  assert.deepEqual(message, {
    type: 'head',
    id: 1,
    status: 201,
    contentType: 'text/plain; charset=utf-8',
    headers: 'X-A\nb',
    phrase: 'Streaming',
  });
  const chunks = [(await worker.next('chunk')).body, (await worker.next('chunk')).body];
  assert.equal(Buffer.concat(chunks).toString(), 'one two');
  await worker.next('end');
});

test('metrics of a load, of a batch and of a stream come with their calls, before these end', async (t) => {
  const worker = new ServiceWorker(t, {
    'service.mjs': `import { Dimension } from 'banana-serve/mms';
      export const handle = (data, context) => {
        const { metrics } = context;
        metrics.addCounter('Loads', data === null ? 1 : 2);
        if (data === null) return null;
        metrics.add_time('Decode', 1.5, 1, 'ms', [new Dimension('Layer', 'a')]);
        return ['first', (async function* () { yield 'x'; metrics.add_counter('Chunks', 1, 1); })()];
      }`,
  });
  await worker.next('hello');
  worker.sendStart(worker.app, { model: 'm', service: { handler: '', modelDir: worker.folder } });
  const ours = { unit: 'count', dimensions: 'ModelName\nm\nLevel\nModel' };
  const loads = { kind: 'counter', name: 'Loads', ...ours };
  assert.deepEqual((await worker.next('metrics')).message.metrics, [{ ...loads, value: 1, callIds: [] }]);
  await worker.next('ready');
  worker.batch(['a', 'b']);
  assert.deepEqual((await worker.next('metrics')).message.metrics, [
    { ...loads, value: 2, callIds: [1, 2] },
    {
      kind: 'time',
      name: 'Decode',
      value: 1.5,
      unit: 'ms',
      dimensions: `Layer\na\n${ours.dimensions}`,
      callIds: [2],
    },
  ]);
  assert.deepEqual((await worker.next('metrics')).message.metrics, [
    { kind: 'counter', name: 'Chunks', value: 1, ...ours, callIds: [2] },
  ]);
  await worker.next('end');
  assert.deepEqual(worker.order.slice(-5), ['result', 'head', 'chunk', 'metrics', 'end']);
});
