/** `--allowed-urls`: a table of allowed and refused addresses, and properties of random addresses. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isAllowedUrl, parseAllowedUrls, withoutSecrets } from '../../../supervisor/options/allowed-urls.js';

function allows(list: string | readonly string[], url: string): boolean {
  return isAllowedUrl(new URL(url), parseAllowedUrls(list));
}

const ROWS: readonly (readonly [what: string, list: string, url: string, allowed: boolean])[] = [
  ['without entries nothing is allowed', '', 'https://a.test/m.mar', false],
  ['a host allows every path', 'https://a.test', 'https://a.test/zoo/m.mar', true],
  [
    'a path allows all paths that begin with it',
    'https://a.test/zoo/',
    'https://a.test/zoo/cats/m.mar',
    true,
  ],
  ['even a path without a slash at its end', 'https://a.test/zoo', 'https://a.test/zoology.mar', true],
  ['another path is not allowed', 'https://a.test/zoo/', 'https://a.test/other/m.mar', false],
  ['a folder is not below itself', 'https://a.test/zoo/', 'https://a.test/zoo', false],
  ['dots are resolved', 'https://a.test/zoo/', 'https://a.test/zoo/../secret.mar', false],
  ['dots may stay inside', 'https://a.test/zoo/', 'https://a.test/x/../zoo/m.mar', true],
  ['dots with a parameter count as dots', 'https://a.test/zoo/', 'https://a.test/zoo/..;/secret.mar', false],
  ['with an encoded one, too', 'https://a.test/zoo/', 'https://a.test/zoo/%2e.%3Ba=b/secret.mar', false],
  ['with an encoded end of a text, too', 'https://a.test/zoo/', 'https://a.test/zoo/..%00/secret.mar', false],
  ['with an encoded fragment, too', 'https://a.test/zoo/', 'https://a.test/zoo/..%23/secret.mar', false],
  ['with an encoded query, too', 'https://a.test/zoo/', 'https://a.test/zoo/.%2e%253f/secret.mar', false],
  ['a parameter elsewhere is a name', 'https://a.test/zoo/', 'https://a.test/zoo/..m;v=1/m.mar;a', true],
  ['encoded dots count as dots', 'https://a.test/zoo/', 'https://a.test/zoo/%2e%2E/secret.mar', false],
  ['a backslash counts as a slash', 'https://a.test/zoo/', 'https://a.test/zoo\\..\\secret.mar', false],
  [
    'an encoded slash may count as a slash',
    'https://a.test/zoo/',
    'https://a.test/zoo/..%2fsecret.mar',
    false,
  ],
  [
    'an encoded backslash may count as a slash',
    'https://a.test/zoo/',
    'https://a.test/zoo/x%5C..%5c..%5cs.mar',
    false,
  ],
  [
    'a slash that is encoded twice may count as a slash',
    'https://a.test/zoo/',
    'https://a.test/zoo/%252e.%252Fs.mar',
    false,
  ],
  ['an encoded slash without dots is allowed', 'https://a.test/zoo/', 'https://a.test/zoo/a%2Fb', true],
  ['two dots inside a name are allowed', 'https://a.test/zoo/', 'https://a.test/zoo/m..mar', true],
  ['paths are case-sensitive', 'https://a.test/zoo/', 'https://a.test/ZOO/m.mar', false],
  ['a query is not compared', 'https://a.test/zoo/', 'https://a.test/zoo/m.mar?token=1', true],
  ['a path in a query does not count', 'https://a.test/zoo/', 'https://a.test/?/zoo/m.mar', false],
  ['a path in a fragment does not count', 'https://a.test/zoo/', 'https://a.test/#/zoo/m.mar', false],
  ['a longer host is another host', 'https://a.test', 'https://a.test.evil.example/m.mar', false],
  ['a subdomain is another host', 'https://a.test', 'https://x.a.test/m.mar', false],
  ['a host with the same end is another host', 'https://a.test', 'https://evila.test/m.mar', false],
  ['a host with a dot at its end is another host', 'https://a.test', 'https://a.test./m.mar', false],
  ['a host before @ is a user', 'https://a.test', 'https://a.test@evil.example/m.mar', false],
  ['a user is refused', 'https://a.test', 'https://user@a.test/m.mar', false],
  ['a password is refused', 'https://a.test', 'https://:secret@a.test/m.mar', false],
  ['hosts are not case-sensitive', 'https://A.Test', 'https://a.TEST/m.mar', true],
  ['a host is compared in its ASCII form', 'https://bücher.example', 'https://xn--bcher-kva.example/m', true],
  ['an IP address may be written in any form', 'http://127.0.0.1/', 'http://0x7f.1/m.mar', true],
  ['another IP address is not allowed', 'http://127.0.0.1/', 'http://127.0.0.2/m.mar', false],
  ['a name does not allow its address', 'http://localhost/', 'http://127.0.0.1/m.mar', false],
  ['an IPv6 address', 'https://[::1]:8443/', 'https://[0:0:0:0:0:0:0:1]:8443/m.mar', true],
  ['http is not https', 'https://a.test', 'http://a.test/m.mar', false],
  ['https is not http', 'http://a.test', 'https://a.test/m.mar', false],
  ["a scheme's own port may be written", 'https://a.test:443', 'https://a.test/m.mar', true],
  ['another port is not allowed', 'https://a.test', 'https://a.test:8443/m.mar', false],
  ['the port of an entry is allowed', 'https://a.test:8443', 'https://a.test:8443/m.mar', true],
  ['with a port, no other is allowed', 'https://a.test:8443', 'https://a.test/m.mar', false],
  ['a colon without a port allows any port', 'http://a.test:', 'http://a.test:8080/m.mar', true],
  ['a colon without a port allows the default port', 'http://a.test:/zoo/', 'http://a.test/zoo/m.mar', true],
  ['with a colon the path counts, too', 'http://a.test:/zoo/', 'http://a.test:81/m.mar', false],
  ['one of several is enough', 'https://b.test, https://a.test', 'https://a.test/m.mar', true],
  ['a path may begin with dots in an entry', 'https://a.test/./zoo/', 'https://a.test/zoo/m.mar', true],
];
for (const [what, list, url, allowed] of ROWS) {
  test(`${what}: "${list}" and ${url}`, () => assert.equal(allows(list, url), allowed));
}

/** Unusable entries with their reasons. The first is TorchServe's default. */
const UNUSABLE: readonly (readonly [entry: string, problem: RegExp])[] = [
  [
    'file://.*|http(s)?://.*',
    /^file:\/\/\.\*\|http\(s\)\?:\/\/\.\*: begin it with https:\/\/, or with http:\/\//,
  ],
  ['http(s)?://.*', /begin it with/],
  ['https://.*', /not a pattern; name each host/],
  ['https?://a.test', /begin it with/],
  ['https://a.test/.*', /not a pattern/],
  ['https://.+\\.example\\.com/', /not a pattern/],
  ['https://(a|b).test/', /not a pattern/],
  ['https://a.test/[a-z]', /not a pattern/],
  ['https://*.a.test/', /not a pattern/],
  ['^https://a.test', /begin it with/],
  ['https://a.test/zoo$', /not a pattern/],
  ['https://a.test/?zoo', /not a pattern/],
  ['https://a.test/#zoo', /not a pattern/],
  ['a.test', /begin it with/],
  ['file:///models', /begin it with/],
  ['ftp://a.test/', /begin it with/],
  ['https://', /it is not a URL/],
  ['https://a.test:99999/', /it is not a URL/],
  ['https://user:secret@a.test/', /^https:\/\/a\.test\/: leave out the user and the password/],
];
for (const [entry, problem] of UNUSABLE) {
  test(`${entry} is reported as unusable, and allows nothing`, () => {
    const { entries, unusable } = parseAllowedUrls(entry);
    assert.deepEqual(entries, []);
    assert.equal(unusable.length, 1);
    assert.match(unusable[0] as string, problem);
  });
}

test('an unusable entry does not affect the others', () => {
  const { entries, unusable } = parseAllowedUrls(['https://a.test/, .*', 'http://b.test:/']);
  assert.deepEqual(
    entries.map(({ hostname, port }) => [hostname, port]),
    [
      ['a.test', ''],
      ['b.test', null],
    ],
  );
  assert.equal(unusable.length, 1);
});

test('only an address whose origin is that of an entry is ever allowed', () => {
  const origin = fc
    .webUrl({ validSchemes: ['http', 'https'], size: 'small' })
    .map((url) => new URL(url).origin);
  const text = fc.oneof(fc.webUrl({ withQueryParameters: true, withFragments: true }), fc.webPath());
  fc.assert(
    fc.property(fc.array(origin, { maxLength: 3 }), origin, text, fc.string(), (entries, host, path, odd) => {
      for (const url of [path, host + path, `${entries[0] ?? ''}${odd}`, `${entries[0] ?? ''}@${host}/`]) {
        if (!URL.canParse(url) || !allows(entries, url)) continue;
        assert.ok(entries.includes(new URL(url).origin), `${url} by ${entries.join()}`);
      }
    }),
    { numRuns: 500 },
  );
});

test('an allowed address begins like its entry, and its path never leaves it', () => {
  const dots = fc.array(
    fc.constantFrom('..', '%2e.', '%2e%2e', 'a', 'zoo', '%2f', '..%2F', '%252e', '\\', ''),
    {
      maxLength: 6,
    },
  );
  fc.assert(
    fc.property(dots, fc.constantFrom('/', '%2f', '\\'), (segments, joiner) => {
      const url = `https://a.test/zoo/${segments.join(joiner)}`;
      if (!allows('https://a.test/zoo/', url)) return;
      let read = new URL(url).pathname;
      for (let times = 0; times < 4; times += 1) read = decodeURIComponent(read);
      const path = new URL(read.replaceAll('\\', '/'), 'https://a.test').pathname;
      assert.ok(path.startsWith('/zoo/'), `${url} leads to ${path}`);
    }),
    { numRuns: 2000 },
  );
});

test('user, password, query and fragment are not shown', () => {
  const rows = [
    ['https://user:secret@a.test/m.mar?sig=secret#secret', 'https://a.test/m.mar'],
    ['http://a:secret@[bad', 'http://[bad'],
    ['http://a.test/a@b', 'http://a.test/a@b'],
    ['HTTP://secret@secret@a.test', 'HTTP://a.test'],
    ['https:///a:secret@a.test/x', 'https://a.test/x'],
    ['https:\\\\a:secret@a.test/x', 'https://a.test/x'],
    ['http://a:secret/secret@[bad', 'http://[bad'],
  ];
  for (const [url, shown] of rows) assert.equal(withoutSecrets(url as string), shown);
});
