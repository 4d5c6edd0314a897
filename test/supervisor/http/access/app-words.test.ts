/** Decides who may read lines and error messages that an app wrote. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  hiddenBecause,
  shownMessage,
  type HiddenBecause,
} from '../../../../supervisor/http/access/app-words.js';
import { ServeError } from '../../../../protocol/errors.js';

const HOST = { host: 'localhost:8000' };

type Row = readonly [
  what: string,
  client: string,
  headers: Readonly<Record<string, string>>,
  because: HiddenBecause | null,
];

const ROWS: readonly Row[] = [
  ['a program of this machine', '127.0.0.1', HOST, null],
  ['its other addresses', '127.8.0.1', { host: '127.8.0.1:8000' }, null],
  ['IPv6', '::1', { host: '[::1]:8000' }, null],
  ['a name below localhost', '::1', { host: 'model.localhost:8000' }, null],
  ['a unix socket', 'unix', { host: 'localhost' }, null],
  ['a unix socket under another name', 'unix', { host: 'model.example' }, 'host'],
  ['another machine', '10.0.0.7', HOST, 'remote'],
  ['another machine by IPv6', 'fe80::1', HOST, 'remote'],
  ['a name that leads here (DNS rebinding)', '127.0.0.1', { host: 'evil.example:8000' }, 'host'],
  ['a name that begins like localhost', '127.0.0.1', { host: 'localhost.evil.example' }, 'host'],
  ['no Host', '127.0.0.1', {}, 'host'],
  ['a page', '127.0.0.1', { ...HOST, origin: 'http://localhost:8000' }, 'page'],
  ['a proxy, by X-Forwarded-For', '127.0.0.1', { ...HOST, 'x-forwarded-for': '10.0.0.7' }, 'proxied'],
  ['a proxy, by X-Forwarded-Proto', '127.0.0.1', { ...HOST, 'x-forwarded-proto': 'https' }, 'proxied'],
  ['a proxy, by Forwarded', '127.0.0.1', { ...HOST, forwarded: 'for=10.0.0.7' }, 'proxied'],
  ['a proxy with a Host of its own', 'unix', { host: 'model.example', 'x-forwarded-for': 'x' }, 'proxied'],
];

describe('without a key, the words of an app are', () => {
  for (const [what, client, headers, because] of ROWS) {
    test(`${because === null ? 'shown' : `hidden (${because})`}: ${what}`, () => {
      assert.equal(hiddenBecause({ hasKey: false, client, request: { headers } }), because);
    });
  }
});

test('with a valid key the words of an app are shown to everybody', () => {
  const headers = { host: 'model.example', 'x-forwarded-for': '10.0.0.7' };
  assert.equal(hiddenBecause({ hasKey: true, client: '10.0.0.7', request: { headers } }), null);
});

test("of an error the app's own message is hidden, and the server's is shown", () => {
  const own = new ServeError('SERVE_HTTP_ERROR', 'no such user: 7', { status: 404 });
  assert.deepEqual([shownMessage(own, true), shownMessage(own, false)], ['no such user: 7', '']);
  const ours = new ServeError('SERVE_INFERENCE_FAILED');
  assert.equal(shownMessage(ours, false), 'The model failed on this call.');
  const lost = new ServeError('SERVE_WORKER_LOST', 'The worker died (signal SIGKILL).');
  assert.equal(shownMessage(lost, false), 'The worker died (signal SIGKILL).');
});
