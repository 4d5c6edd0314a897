/**
 * The formats that a dialect names for bodies and answers, in the workers of both languages: the tiny dialect passes
 * on what its client names.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { MAIN_DIALECTS } from '../../supervisor/http/dialects/index.js';
import { serve } from '../../supervisor/serve.js';
import type { ServerHandle } from '../../supervisor/server/server-handle.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { tiny } from '../supervisor/http/dialects/tiny.js';
import { nodeFormats } from '../worker/formats/node-formats.js';

/** A body of each format with its content type, and the input that both workers read. */
const BODIES: Readonly<Record<string, readonly [body: string, contentType: string, input: unknown]>> = {
  json: ['{"a":[1,"é"]}', 'image/png', { a: [1, 'é'] }],
  msgpack: ['\x81\xa1a\x01', 'image/png', { a: 1 }],
  form: ['a=1&a=%C3%A9&b=', 'image/png', { a: ['1', 'é'], b: '' }],
  text: ['\xe9', 'text/plain; charset=latin1', 'é'],
  multipart: [
    '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n',
    'multipart/form-data; boundary=x',
    { a: '1' },
  ],
  'open-inference': ['{"inputs":[]}', 'image/png', {}],
  embeddings: ['{"input":"é"}', 'image/png', { input: ['é'] }],
  cog: ['{"input":"é"}', 'image/png', 'é'],
  rerank: ['{"query":"é","documents":["a"]}', 'image/png', { query: 'é', documents: ['a'] }],
};

/** The format whose input comes back as bytes. */
const RAW = 'bytes';

/** The formats of functions: no request can choose them. */
const OF_FUNCTIONS = ['v8', 'msgpack-values'];

/** The format that reads several inputs, for answers of its own alone. */
const OF_SEVERAL = 'predict';

withEachRuntime(({ app }) => {
  describe('an app that gives back its input', { timeout: 240_000 }, () => {
    let server: ServerHandle;
    before(async () => {
      const dialects = { inOrder: [tiny, ...MAIN_DIALECTS.inOrder], default: MAIN_DIALECTS.default };
      const given = { app: app('tiny-format'), host: '127.0.0.1', port: 0, logLevel: 'silent' } as const;
      server = await serve(given, { dialects });
      await server.ready;
    });
    after(async () => {
      await server.close();
    });

    function put(body: string | Buffer, headers: Record<string, string>): Promise<Response> {
      return fetch(`${server.url}/x/tiny-format/`, { method: 'PUT', body: body as string, headers });
    }

    test('every format reads its body, whatever the content type says', async () => {
      for (const format of Object.keys(await nodeFormats())) {
        if ([RAW, OF_SEVERAL, ...OF_FUNCTIONS].includes(format)) continue;
        const [body, contentType, input] = BODIES[format] ?? assert.fail(`BODIES has no ${format}`);
        const bytes = Buffer.from(body, format === 'msgpack' || format === 'text' ? 'latin1' : 'utf8');
        const reply = await put(bytes, { 'content-type': contentType, 'x-format': format });
        assert.deepEqual([reply.status, await reply.json()], [200, input], format);
      }
      const reply = await put('{}', { 'content-type': 'application/json', 'x-format': RAW });
      assert.deepEqual(
        [reply.headers.get('content-type'), await reply.text()],
        ['application/octet-stream', '{}'],
      );
    });

    test('a format that the worker does not have is refused in the words of the dialect', async () => {
      const reply = await put('{}', { 'x-format': 'none' });
      assert.equal(reply.status, 418);
      assert.match(
        await reply.text(),
        /^SERVE_BAD_BODY .*: The worker of this model does not have the format "none"/,
      );
    });

    const OWN = { 'x-format': 'tiny', 'x-answer': 'tiny', accept: 'application/msgpack' };
    const ANSWERS: readonly (readonly [
      way: string,
      status: number,
      type: string,
      kind: string,
      body: string,
    ])[] = [
      ['a value', 200, 'text/x-tiny', 'value', '2\n"a value"\n'],
      ['a Response', 201, 'text/x-tiny', 'json', '2\n"a Response"\n'],
      ['a thrown Response', 409, 'text/x-tiny', 'json', '2\n"a thrown Response"\n'],
      ['a Response of bytes', 202, 'text/plain; charset=utf-8', 'bytes', 'plain'],
    ];
    for (const [way, status, type, kind, body] of ANSWERS)
      test(`${way} is written in the dialect's own format, with status and headers`, async () => {
        const reply = await put(`id7 b way\n{"a":1,"b":2,"way":"${way}"}`, OWN);
        const { headers } = reply;
        assert.deepEqual(
          [reply.status, headers.get('content-type'), await reply.text()],
          [status, type, body],
        );
        const own = ['x-kind', 'x-id', 'x-model', 'x-app', 'x-dialect'].map((name) => headers.get(name));
        assert.deepEqual(own, [kind, 'id7', 'tiny-format', way === 'a Response' ? 'own' : null, 'tiny']);
      });

    const ERRORS: readonly (readonly [why: string, body: string, status: number, text: RegExp])[] = [
      [
        'a body that the reader refuses',
        'no line',
        418,
        /^SERVE_BAD_BODY .*: The body has no line with an id\.$/m,
      ],
      [
        'a body that the reader refuses with a code of its own',
        '\n{}',
        418,
        /^SERVE_BAD_BODY .*: The first line has no id\.$/m,
      ],
      [
        'an answer that the writer refuses',
        'id\n{"way":"a stream"}',
        418,
        /^SERVE_HTTP_ERROR .*: Tiny answers are/,
      ],
      ['an error of the app', 'id\n{"way":"an error"}', 599, /^SERVE_INFERENCE_FAILED /],
    ];
    for (const [why, body, status, text] of ERRORS)
      test(`${why} is worded by the front`, async () => {
        const reply = await put(body, OWN);
        assert.equal(reply.status, status);
        assert.match(await reply.text(), text);
      });
  });
});
