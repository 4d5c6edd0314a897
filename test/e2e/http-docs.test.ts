/** docs/http.md is held to a running server: its table of paths is requested row by row, its headers are looked for. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { dialectsOf } from '../../supervisor/http/dialects/index.js';
import { formatOf } from '../../worker/formats/read-input.js';
import { ask } from '../helpers/ask.js';
import { tableRows } from '../helpers/doc-page.js';
import { startHere } from '../helpers/here.js';
import { fixture, type Server } from '../helpers/server.js';

/** As the server writes times: at most two decimals, no zeros at the end. What remains of another number shows. */
const NUMBER = /\d+\.\d+/g;

/** A row for each request; some share one line. */
const PATHS = tableRows('http.md', 'Who answers what', 'request').flatMap(({ request = '', ...row }) =>
  request.split(', ').map((one): Record<string, string> => ({ ...row, request: one })),
);

test('docs/http.md lists every path of the server', () => {
  const defaults = {
    isMmsMode: false,
    isManagementShared: false,
    metrics: null,
    areMetricsOnMain: false,
    page: null,
    platform: { health: null, predict: null },
  };
  const { main } = dialectsOf({ ...defaults, main: undefined });
  const listed = new Set(PATHS.map(({ request = '' }) => request.split(' ')[1] as string));
  const all = (main?.inOrder ?? []).flatMap(({ paths }) => [...paths.keys()]);
  const isTwin = (path: string): boolean => all.includes(`${path}/`); // without the slash, as the page states for all
  const own = all.filter((path) => !isTwin(path)).map((path) => path.replace(/\{\w+\*?\}/g, 'unknown'));
  assert.deepEqual([...listed].sort(), [...new Set([...own, '/', '/anything'])].sort());
});

for (const { 'content type': types = '', 'read as': format } of tableRows(
  'http.md',
  'What you send',
  'content type',
)) {
  test(`docs/http.md: ${types} is read as ${format}`, () => {
    const named = types.match(/[a-z]+\/[a-z+.-]+/g) ?? [''];
    for (const type of named) assert.equal(formatOf(type), format, type);
  });
}

/** The shapes of errors of which a row says that they are another dialect's. */
const SHAPES: readonly (readonly [name: string, shape: RegExp])[] = [
  ['Cog', /^\{"detail":/],
  ['Multi Model Server', /^\{\n {2}"code": 404,\n/],
  ['Open Inference Protocol', /^\{"error":"Request for unknown model: /],
  ['KServe V1', /^\{"error":"/],
];

const NOT_ON_200 = [
  'Retry-After',
  'Retry-After-Ms',
  'X-Should-Retry',
  'WWW-Authenticate',
  'Allow',
  'Sec-WebSocket-Version',
  'Connection',
];

describe('docs/http.md, requested', { timeout: 240_000 }, () => {
  let server: Server;
  before(async () => {
    server = await startHere(fixture('echoes.mjs'), { args: ['--queue-size', '0'] });
    await server.until(({ state }) => state === 'ready');
  });
  after(async () => {
    await server.stop();
  });

  for (const { request = '', status, reply = '' } of PATHS) {
    test(`${request}: ${status} ${reply}`, async () => {
      const [method = '', path = ''] = request.split(' ');
      const body = method === 'POST' ? { body: '{"answer":"what inference returns"}' } : {};
      const response = await fetch(`${server.url}${path}`, { method, ...body });
      const text = await response.text();
      assert.equal(String(response.status), status);
      assert.ok(response.headers.has('x-request-id'), 'X-Request-Id is on every reply');
      const [promised] = /^\{.*?\}/.exec(reply) ?? [];
      if (promised !== undefined) assert.equal(text, promised);
      const allow = /^Allow: (.*)$/.exec(reply)?.[1] ?? null;
      assert.equal(response.headers.get('allow'), allow);
      const [, shape = /^\{"error":\{"code":"SERVE_/] = SHAPES.find(([name]) => reply.includes(name)) ?? [];
      if (response.status < 400) return;
      assert.match(text, shape);
      assert.equal(response.headers.get('x-should-retry'), 'false');
    });
  }

  test('where paths collide, each belongs to whom the page says', async () => {
    const send = async (line: string, body?: string): Promise<unknown> => {
      const [method = '', path = ''] = line.replace('{x}', 'echoes').split(' ');
      const reply = await fetch(server.url + path, { method, body: body ?? null });
      return reply.json();
    };
    const has = async (line: string, members: object, body?: string): Promise<void> => {
      const given = (await send(line, body)) as object;
      assert.deepEqual({ ...given, ...members }, given, line);
    };
    const prediction = { id: 'echoes', status: 'succeeded', output: 2 };
    const rows: Readonly<Record<string, (line: string) => Promise<void>>> = {
      'POST /predictions/{x}': async (line) => assert.equal(await send(line, '1'), 1),
      'PUT /predictions/{x}': async (line) => {
        assert.equal(await send('GET /predictions/{x}'), null, 'a call of the model');
        await has(line, prediction, '{"input":2}');
      },
      'GET /predictions/{x}': (line) => has(line, prediction),
      'POST /predictions/{x}/cancel': (line) => has(line, prediction),
      'GET /v1/models/{x}': (line) => has(line, { object: 'model', ready: true }),
      'POST /v2/rerank': async (line) => {
        const { error } = (await send(line, '{}')) as { error: { message: string } };
        assert.match(error.message, /task rerank/);
      },
    };
    const lines = tableRows('http.md', 'Who answers what', 'shared path').map(
      (row) => row['shared path'] ?? '',
    );
    assert.deepEqual(lines, Object.keys(rows));
    for (const line of lines) await rows[line]?.(line);
  });

  test('the headers of an answer are those of the page', async () => {
    const { headers } = await ask(server, {});
    for (const { header = '', on } of tableRows('http.md', 'What you get', 'header')) {
      const [name = '', example] = header.split(': ');
      if (NOT_ON_200.includes(name)) continue;
      const value = headers.get(name);
      assert.ok(value !== null, `${header} on ${on}`);
      if (example !== undefined) assert.equal(value.replace(NUMBER, '0'), example.replace(NUMBER, '0'));
    }
    assert.equal(headers.get('keep-alive'), 'timeout=75');
  });
});
