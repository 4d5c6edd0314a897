/** A custom service of Multi Model Server, called by the paths of that server and by those of the house. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeCues } from '../helpers/cues.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { shareHere } from '../helpers/shared-server.js';
import { call, type Answer } from '../helpers/server.js';

const JSON_TYPE = { 'content-type': 'application/json' };

interface Shown {
  readonly item: Readonly<Record<string, unknown>>;
  readonly id: string;
}

withEachRuntime(({ app }) => {
  describe('a custom service', { timeout: 300_000 }, () => {
    const shared = shareHere(app('mms-service'), { args: ['--name', 'cats', '--max-body', '1mb'] });

    const send = (path: string, body: string | Uint8Array, headers: Record<string, string> = JSON_TYPE) =>
      call(shared.server.url + path, body, headers);
    const wish = (what: string, path = '/predictions/cats'): Promise<Answer> =>
      send(path, JSON.stringify({ do: what }));

    for (const [path, body, type, item] of [
      ['/predictions/cats?a=1', '{"x":1}', 'application/json; charset=utf-8', { body: { x: 1 } }],
      ['/predictions/cats', 'text', 'text/plain', { body: 'text text' }],
      ['/predictions/cats', 'image', 'image/png', { body: 'bytes image' }],
      ['/predictions/cats', '', 'image/png', { body: 'bytes ' }],
      ['/models/cats/invoke?a=1&b=2', '3', 'application/json', { a: 'bytes 1', b: 'bytes 2', body: 3 }],
      ['/cats/predict?a=1&a=%32', '3', 'application/json', { a: 'bytes 2', body: 3 }],
      ['/invocations?body=1', '3', 'application/json', { body: 3 }],
      ['/invocations?a=1', 'a=2&b=3', 'application/x-www-form-urlencoded', { a: 'bytes 2', b: 'bytes 3' }],
      ['/', '{"x":1}', 'application/json', { body: { x: 1 } }],
      ['/models/cats/', 'text', 'text/plain', { body: 'text text' }],
    ] as const)
      test(`${path} with ${type}: the item is ${JSON.stringify(item)}`, async () => {
        const answer = await send(path, body, { 'content-type': type });
        assert.equal(answer.status, 200, answer.text);
        assert.deepEqual(answer.json<Shown>().item, item);
        assert.equal(answer.json<Shown>().id, answer.headers.get('x-request-id'));
      });

    for (const [what, status, message] of [
      ['a prediction fails', 599, 'no cats today'],
      ['fails alone', 513, 'only this one'],
      ['no memory', 507, 'Out of resources'],
      ['it throws', 503, 'Prediction failed'],
      ['no list', 503, 'Invalid model predict output'],
      ['too few', 503, 'number of batch response mismatched'],
      ['unsupported', 503, 'Unsupported model output data type.'],
    ] as const)
      test(`${what}: ${status} ${message} there, a failure of the app in the house`, async () => {
        const answer = await wish(what);
        assert.deepEqual(answer.json(), { code: status, type: 'InternalServerException', message });
        assert.equal(answer.headers.get('connection'), 'close');
        const { error } = (await wish(what, '/')).json<{ error: { source: string } }>();
        assert.equal(error.source, 'app');
      });

    test('an item that is no JSON is refused, and the service never sees it', async () => {
      const answer = await send('/predictions/cats', '{"do":');
      const { code, type } = answer.json<{ code: number; type: string }>();
      assert.deepEqual([code, type], [400, 'BadRequestException']);
    });

    test("an item's own status, phrase, type and headers reach the client, but not against the cache", async () => {
      const response = await fetch(`${shared.server.url}/predictions/cats`, {
        method: 'POST',
        headers: JSON_TYPE,
        body: '{"do":"status"}',
      });
      const { status, statusText, headers } = response;
      assert.deepEqual([status, statusText, await response.text()], [507, 'Out Of Luck', 'Invalid response']);
      assert.deepEqual(
        ['content-type', 'x-model', 'pragma', 'connection'].map((name) => headers.get(name)),
        ['text/csv', '5', 'no-cache', 'close'],
      );
    });

    for (const [what, status] of [
      ['no content', 204],
      ['not modified', 304],
    ] as const)
      test(`a result whose status is ${status} has neither a body nor a type`, async () => {
        const answer = await wish(what);
        assert.deepEqual([answer.status, answer.text], [status, '']);
        assert.equal(answer.headers.get('content-type'), null);
        assert.equal(answer.headers.get('etag'), status === 304 ? '"1"' : null);
      });

    for (const [what, type, text] of [
      ['text', 'text/plain; charset=utf-8', 'plain'],
      ['bytes', 'application/octet-stream', '\u0001\u0002'],
    ] as const)
      test(`a result that is ${what} is ${type}`, async () => {
        const answer = await wish(what);
        assert.deepEqual([answer.headers.get('content-type'), answer.text], [type, text]);
      });

    test('a result that is an async iterable is a stream', async () => {
      const answer = await wish('stream');
      assert.deepEqual([answer.headers.get('transfer-encoding'), answer.text], ['chunked', 'one two']);
    });
  });

  test(
    'a service that waits for calls keeps nothing of its last batch in memory',
    { timeout: 240_000 },
    async (t) => {
      const cues = makeCues(t);
      const server = await startHere(app('forgets-bodies'), { t, env: cues.env });
      for (const how of ['answers', 'promises', 'streams', 'throws', 'rejects']) {
        const { status } = await call(`${server.url}/predictions/forgets-bodies`, JSON.stringify({ how }));
        assert.equal(status, /throws|rejects/.test(how) ? 503 : 200);
        await cues.untilNoted(`forgot what ${how}`);
      }
      await server.stop();
    },
  );
});
