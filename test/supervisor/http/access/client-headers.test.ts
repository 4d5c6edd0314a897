/** Headers for keys and call ids, as dialects define them. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { BANANA_CLIENTS } from '../../../../supervisor/http/access/client-headers.js';
import { clientHeaderNames, type ClientHeaders } from '../../../../supervisor/http/access/client-headers.js';
import { ServeError } from '../../../../protocol/errors.js';
import { tiny } from '../dialects/tiny.js';
import { fakeModel, onlyModel, serveHandler } from '../serve-handler.js';

const LIMIT = { timeout: 60_000 };
const HEAD = { status: 200, contentType: 'text/plain', headers: '', phrase: '' };

/** Starts a server with one dialect that has these client headers; pages of every origin may call. */
function serveTiny(t: TestContext, clientHeaders: ClientHeaders, keys: readonly string[]): Promise<string> {
  const dialect = { ...tiny, clientHeaders };
  const unclaimed = (): never => {
    throw new ServeError('SERVE_NOT_FOUND');
  };
  const model = fakeModel('m', { submit: (call) => call.reply(HEAD, [Buffer.from('1')], 1, 1) });
  return serveHandler(t, {
    models: onlyModel(model),
    dialects: { inOrder: [dialect], default: { ...dialect, unclaimed } },
    corsOrigin: '*',
    keys,
  });
}

const put = (url: string, headers: Record<string, string>): Promise<Response> =>
  fetch(`${url}/x/m/`, { method: 'PUT', body: '1', headers: { origin: 'http://page', ...headers } });

test("only the headers of a listener's own dialects are read for keys and ids", LIMIT, async (t) => {
  const url = await serveTiny(t, { key: 'X-Tiny-Key', callId: 'X-Tiny-Id', readable: ['X-Tiny-Bytes'] }, [
    'k',
  ]);
  const taken = await put(url, { 'x-tiny-key': 'k', 'x-tiny-id': 'mine', 'x-banana-request-id': 'other' });
  assert.deepEqual([taken.status, taken.headers.get('x-request-id')], [200, 'mine']);
  assert.equal(
    taken.headers.get('access-control-expose-headers'),
    'X-Request-Id, X-Tiny-Id, X-Banana-Job-Id, Location, Server-Timing, Retry-After, Retry-After-Ms, X-Should-Retry, X-Tiny-Bytes',
  );
  const refused = await put(url, { 'x-banana-api-key': 'k' });
  assert.equal(refused.headers.get('x-code'), 'SERVE_UNAUTHORIZED');
  assert.equal((await put(url, { authorization: 'Bearer k' })).status, 200);
});

test(
  'a dialect without client headers leaves only the headers that every client may use',
  LIMIT,
  async (t) => {
    const url = await serveTiny(t, {}, []);
    const reply = await put(url, { 'x-request-id': 'mine' });
    assert.equal(reply.headers.get('x-request-id'), 'mine');
    assert.equal(
      reply.headers.get('access-control-expose-headers'),
      'X-Request-Id, X-Banana-Job-Id, Location, Server-Timing, Retry-After, Retry-After-Ms, X-Should-Retry',
    );
  },
);

test('a header that several dialects define is listed once', () => {
  const { clientHeaders } = BANANA_CLIENTS;
  const { keys, callIds } = clientHeaderNames([
    { clientHeaders },
    {},
    { clientHeaders },
    { clientHeaders: { key: 'X-K' } },
  ]);
  assert.deepEqual([keys, callIds], [['x-banana-api-key', 'x-k'], ['x-banana-request-id']]);
});
