/**
 * An app whose config asks for forms and text. Every other input: test/promises/inputs.test.ts and python.test.ts on a
 * server, and the tests of the formats, worker/formats and python/test_read_input.py.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withEachRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

withEachRuntime(({ app }) => {
  test('an app whose config asks for forms and text gets fields and a string', LIMIT, async (t) => {
    const server = await startHere(app('takes-forms'), { t });
    const read = async (type: string, body: string): Promise<unknown> =>
      (await call(server.url, Buffer.from(body), { 'content-type': type })).json();
    const form = 'application/x-www-form-urlencoded';
    assert.deepEqual(await read(form, 'a=1&b=x+y&a=2'), {
      kind: 'object',
      input: { a: ['1', '2'], b: 'x y' },
    });
    assert.deepEqual(await read('text/plain', '{"a"'), { kind: 'string', input: '{"a"' });
    assert.deepEqual(await read('application/json', '"x"'), { kind: 'string', input: 'x' });
    assert.deepEqual(await read(form, ''), { kind: 'object', input: null });
    assert.equal((await call(server.url, '{"a":', { 'content-type': 'application/json' })).status, 400);
    assert.doesNotMatch(server.stderr(), /ERROR|WARN|not valid/, 'anyone can send a thousand of them');
    await server.stop();
  });
});
