/** Recognises requests that a page of another origin made a browser send. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AllowedOrigins } from '../../../../supervisor/options/value-forms.js';
import { pageMistake } from '../../../../supervisor/http/access/cors.js';

type Row = readonly [
  what: string,
  headers: Readonly<Record<string, string>>,
  isRefused: boolean,
  allowed?: AllowedOrigins,
];

const OWN = { host: 'localhost:8000', origin: 'http://localhost:8000' };
const OTHER = { host: 'localhost:8000', origin: 'http://evil.example:8000' };

const ROWS: readonly Row[] = [
  ['a program, which sends neither', { host: 'localhost:8000' }, false],
  ['our own page', OWN, false],
  ['our own page, in other letters', { host: 'LocalHost:8000', origin: 'http://localHOST:8000' }, false],
  ['our own page at the default port', { host: 'here.example', origin: 'http://here.example' }, false],
  ['the default port, written out', { host: 'here.example:80', origin: 'http://here.example' }, false],
  ['an empty port', { host: 'here.example:', origin: 'http://here.example' }, false],
  ['a proxy that ends TLS', { host: 'here.example', origin: 'https://here.example' }, false],
  ['its port, written out', { host: 'here.example:443', origin: 'https://here.example' }, false],
  ['the port of the other scheme', { host: 'here.example:80', origin: 'https://here.example' }, true],
  ['our own page under IPv6', { host: '[::1]:8000', origin: 'http://[::1]:8000' }, false],
  ['IPv6 without a port', { host: '[::1]', origin: 'http://[::1]' }, false],
  ['another host', OTHER, true],
  ['another port', { host: 'localhost:8000', origin: 'http://localhost:5173' }, true],
  ['a host that ends like ours', { host: 'here.example', origin: 'http://not.here.example' }, true],
  ['no origin that it would tell', { host: 'localhost:8000', origin: 'null' }, true],
  ['an extension', { host: 'abcd', origin: 'chrome-extension://abcd' }, true],
  ['an empty origin', { host: '', origin: '' }, true],
  ['no Host, which HTTP/1.0 need not have', { origin: 'http://localhost:8000' }, true],
  ['two origins', { host: 'localhost:8000', origin: `${OWN.origin}, ${OWN.origin}` }, true],
  ['a proxy that changes the Host', { ...OTHER, 'sec-fetch-site': 'same-origin' }, false],
  ['a page of the same site', { ...OTHER, 'sec-fetch-site': 'same-site' }, true],
  ['another site without an origin', { host: 'localhost:8000', 'sec-fetch-site': 'cross-site' }, true],
  ['another site that has our origin', { ...OWN, 'sec-fetch-site': 'cross-site' }, true],
  ['an address that a person typed', { host: 'localhost:8000', 'sec-fetch-site': 'none' }, false],
  ['a page of the list', OTHER, false, ['http://evil.example:8000']],
  ['a page of the list on another site', { ...OTHER, 'sec-fetch-site': 'cross-site' }, false, [OTHER.origin]],
  ['a page that is not in the list', OTHER, true, ['http://evil.example']],
  ['our own page beside a list', OWN, false, ['https://app.example.com']],
  ['any page', OTHER, false, '*'],
  ['any site', { host: 'localhost:8000', 'sec-fetch-site': 'cross-site' }, false, '*'],
];

describe('a request on a server without a key', () => {
  for (const [what, headers, isRefused, allowed = null] of ROWS) {
    test(`${what} is ${isRefused ? 'refused' : 'let through'}`, () => {
      const mistake = pageMistake({ headers }, allowed);
      assert.equal(mistake?.code ?? null, isRefused ? 'SERVE_ORIGIN_REFUSED' : null);
    });
  }
});

test('the message names the origin, the option, and the Host that a proxy must hand on', () => {
  const mistake = pageMistake({ headers: OTHER }, null);
  assert.equal(
    mistake?.message,
    'Pages of http://evil.example:8000 may not call this server: --cors-origin does not list their origin. If this is the address of a proxy before this server, the proxy must pass on the Host evil.example:8000; it sent localhost:8000.',
  );
  const unnamed = pageMistake({ headers: { host: 'x', 'sec-fetch-site': 'cross-site' } }, null);
  assert.match(
    unnamed?.message ?? '',
    /^Pages of other sites may not call this server: --cors-origin[^.]*\.$/,
  );
  const long = pageMistake({ headers: { host: 'x', origin: `http://${'e'.repeat(9000)}` } }, null);
  assert.ok((long?.message.length ?? 0) < 800);
});
