/** Answers and bodies that are not as they should be have one meaning, whatever the language of the app. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

const REFUSED: readonly (readonly [kind: string, code: string, message: RegExp])[] = [
  ['a long type', 'SERVE_OUTPUT_INVALID', /^The model's response headers are 2000005 characters; 65536 are/],
  ['a long type of a stream', 'SERVE_OUTPUT_INVALID', /^The model's response headers are 2000005 characters/],
  ['a long header', 'SERVE_OUTPUT_INVALID', /^The model's response headers are \d+ characters; 65536 are/],
  [
    'a broken header',
    'SERVE_OUTPUT_INVALID',
    /^The model's response header "X-Model" has a line break in it\.$/,
  ],
  ['what cannot be read', 'SERVE_OUTPUT_INVALID', /^The output is not JSON: output.+weights.+TypeError/],
  ['nothing but an empty chunk, then a throw', 'SERVE_INFERENCE_FAILED', /^The model failed on this call\.$/],
  ['a webhook of no data', 'SERVE_INFERENCE_FAILED', /^The model failed on this call\.$/],
];

const SENT: readonly (readonly [kind: string, text: string])[] = [
  ['half a character', 'a\ufffdb'],
  ['half a character in a chunk', 'a\ufffdb'],
  ['half a character in JSON', '"a\\ud800b"'],
];

const THROWN = [
  'odd attributes',
  'attributes that raise',
  'a class without a name',
  'no message for its client',
];

const VERBS = { '/repeats': 'throws', '/posts': 'gives as the URL of a webhook' };

/** Texts of a client that a careless pattern takes hours for. */
const TEDIOUS: readonly (readonly [path: keyof typeof VERBS, what: string, text: string])[] = [
  ['/repeats', 'many beginnings of an error of CUDA', 'CUDA '.repeat(200_000)],
  ['/repeats', 'many errors of CUDA', 'CUDA error '.repeat(100_000)],
  ['/repeats', 'many stack frames', '\n    at f (/a:1:1)'.repeat(50_000)],
  ['/repeats', 'empty lines', '\n'.repeat(1_000_000)],
  ['/repeats', 'codes of errors', 'EAGAIN_'.repeat(100_000)],
  ['/posts', 'a name without an end', `http://${'a'.repeat(1_000_000)} `],
];

withEachRuntime(({ app }) => {
  let server: Server;
  let worker: number | null;
  before(async () => {
    server = await startHere(app('odd-answers'));
    worker = (await server.until(({ state }) => state === 'ready')).model.workers[0]?.pid ?? null;
  });
  after(async () => {
    const { model } = await server.status();
    await server.stop();
    assert.equal(model.workers[0]?.pid, worker, 'one worker has answered all of this');
  });

  for (const [kind, code, message] of REFUSED) {
    test(`an answer with ${kind} fails its call, and costs no worker`, LIMIT, async () => {
      const answer = await ask(server, kind);
      assert.equal(answer.status, 500);
      assert.equal(errorOf(answer).code, code);
      assert.match(errorOf(answer).message, message);
    });
  }

  test(
    'an error that the app throws while its answer is encoded goes to the log, not to the client',
    LIMIT,
    async () => {
      const answer = await ask(server, 'what cannot be read', { id: 'unreadable' });
      assert.doesNotMatch(answer.text, /secret/);
      await server.untilPrinted(/TypeError: secret path \/etc\/model[^]*"requestId":"unreadable"/);
    },
  );

  for (const [kind, text] of SENT) {
    test(`an answer with ${kind} is sent`, LIMIT, async () => {
      const answer = await ask(server, kind);
      assert.equal(answer.status, 200);
      assert.equal(answer.text, text);
    });
  }

  test("an answer's headers may have the names of what every object has", LIMIT, async () => {
    const { status, headers } = await ask(server, 'headers named as members of objects');
    const told = ['constructor', '__proto__', 'toString'].map((name) => headers.get(name));
    assert.deepEqual([status, ...told], [200, 'a', 'b', 'c']);
  });

  for (const kind of THROWN) {
    test(`an error of the app with ${kind} fails its call, and costs no worker`, LIMIT, async () => {
      const answer = await call(`${server.url}/throws`, JSON.stringify(kind));
      assert.equal(answer.status, 500);
      assert.equal(errorOf(answer).code, 'SERVE_INFERENCE_FAILED');
      assert.doesNotMatch(answer.text, /secret/);
    });
  }

  for (const [path, what, text] of TEDIOUS) {
    test(`a text of ${what}, which the app ${VERBS[path]}, holds up no later call`, LIMIT, async () => {
      const answer = await call(server.url + path, JSON.stringify(text));
      assert.equal(answer.status, 500);
      assert.equal((await ask(server, 'half a character')).status, 200);
    });
  }

  test('an unknown charset, in the extended form, is a mistake of the client', LIMIT, async () => {
    const answer = await call(`${server.url}/text`, 'x', {
      'content-type': "text/plain; charset*=nobody''x",
    });
    assert.equal(answer.status, 400);
    assert.equal(errorOf(answer).code, 'SERVE_BAD_BODY');
  });

  test('a form whose first name begins with a question mark keeps it', LIMIT, async () => {
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await call(`${server.url}/forms`, '?a=1&b=%3F', type);
    assert.deepEqual(answer.json(), { '?a': '1', b: '?' });
  });
});
