/** Certificates and keys: what is refused before anything starts, and with which words. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { resolveOptions } from '../../../../supervisor/options/resolve.js';
import { planTls, type TlsPlan } from '../../../../supervisor/options/tls.js';
import { makeCertificate } from '../../../helpers/certificates.js';
import { needs } from '../../../helpers/needs.js';

const OPENSSL = { skip: needs('openssl') };

function planOf(values: Readonly<Record<string, unknown>>, cwd = '/'): TlsPlan | null {
  const source = { values, where: (name: string) => `banana.json: ${name}` };
  return planTls(resolveOptions([source]), (listener) => listener !== 'metrics', cwd);
}

function fileWith(t: TestContext, text: string | Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-tls-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'file.pem');
  writeFileSync(path, text);
  return path;
}

function assertRefused(values: Readonly<Record<string, unknown>>, message: string | RegExp): void {
  assert.throws(() => planOf(values), { code: 'SERVE_CONFIG', message });
}

test('without a certificate and a key nobody speaks TLS, and none is made up', () => {
  assert.equal(planOf({}), null);
  assertRefused(
    { tlsFor: 'management' },
    'banana.json: tlsFor: TLS needs a certificate and its key; give --tls-cert and --tls-key (certificate_file and private_key_file in config.properties). None is made up.',
  );
});

for (const kind of ['ec', 'rsa'] as const) {
  test(
    `a certificate with a key of kind ${kind} is for the main listener, unless others are named`,
    OPENSSL,
    (t) => {
      const { certPath: tlsCert, keyPath: tlsKey, cert, key } = makeCertificate(t, kind);
      assert.deepEqual(planOf({ tlsCert, tlsKey }), { cert, key, listeners: ['main'], warning: '' });
      const { listeners } = planOf({ tlsCert, tlsKey, tlsFor: 'management, main' }) as TlsPlan;
      assert.deepEqual(listeners, ['management', 'main']);
    },
  );
}

test('keys as older programs write them are taken', OPENSSL, (t) => {
  for (const [kind, command] of [
    ['rsa', ['rsa', '-traditional']],
    ['ec', ['ec']],
  ] as const) {
    const { certPath: tlsCert, keyPath } = makeCertificate(t, kind);
    const tlsKey = fileWith(t, execFileSync('openssl', [...command, '-in', keyPath], { stdio: 'pipe' }));
    assert.deepEqual(planOf({ tlsCert, tlsKey })?.listeners, ['main']);
  }
});

test('one without the other', () => {
  assertRefused(
    { tlsCert: 'c.pem' },
    'banana.json: tlsCert: a certificate and its key go together; give --tls-key too.',
  );
  assertRefused(
    { tlsKey: 'k.pem' },
    'banana.json: tlsKey: a certificate and its key go together; give --tls-cert too.',
  );
});

test('a listener that is not there, and one that needs no TLS', () => {
  const pair = { tlsCert: 'c.pem', tlsKey: 'k.pem' };
  assertRefused(
    { ...pair, tlsFor: 'main,metrics' },
    'banana.json: tlsFor: there is no metrics listener with an address of its own; leave it out, or open one.',
  );
  assertRefused(
    { ...pair, port: '/run/b.sock' },
    'banana.json: tlsCert: a unix socket needs no TLS; leave it out, or give a port.',
  );
});

test('files that cannot be read, or hold something else', OPENSSL, (t) => {
  const { certPath: tlsCert, keyPath: tlsKey, cert, key } = makeCertificate(t);
  const nothing = fileWith(t, 'nothing');
  const rows: readonly (readonly [values: object, message: RegExp])[] = [
    [
      { tlsCert: '/no/c.pem' },
      /^banana\.json: tlsCert \/no\/c\.pem: it cannot be read \(ENOENT.*\); give the path/,
    ],
    [
      { tlsKey: '/no/k.pem' },
      /^banana\.json: tlsKey \/no\/k\.pem: it cannot be read \(ENOENT.*\); give the path/,
    ],
    [{ tlsCert: tlsKey }, /: this is a key; give the certificate here and the key as --tls-key\.$/],
    [
      { tlsKey: tlsCert },
      /: this is a certificate; give its private key here and the certificate as --tls-cert\.$/,
    ],
    [
      { tlsCert: nothing },
      /file\.pem: it holds no certificate in PEM \(-----BEGIN CERTIFICATE-----\); give one/,
    ],
    [
      { tlsKey: nothing },
      /file\.pem: it holds no private key in PEM \(-----BEGIN PRIVATE KEY-----\); give that of/,
    ],
    [
      { tlsCert: fileWith(t, cert.slice(0, 200)) },
      /file\.pem: the certificate is damaged \(.*\); give it whole/,
    ],
    [{ tlsKey: fileWith(t, key.slice(0, 60)) }, /file\.pem: the key is damaged \(.*\); give it whole/],
    [
      { tlsKey: makeCertificate(t).keyPath },
      /^banana\.json: tlsKey \S+: it is not the key of the certificate in \S+/,
    ],
    [
      { tlsKey: makeCertificate(t, 'rsa').keyPath },
      /: it is not the key of the certificate in \S+; give the two/,
    ],
  ];
  for (const [values, message] of rows) assertRefused({ tlsCert, tlsKey, ...values }, message);
});

test('an encrypted key', OPENSSL, (t) => {
  const { certPath: tlsCert, keyPath } = makeCertificate(t);
  const encrypt = ['pkcs8', '-topk8', '-passout', 'pass:secret', '-in', keyPath];
  const tlsKey = fileWith(t, execFileSync('openssl', encrypt, { stdio: 'pipe' }));
  assertRefused(
    { tlsCert, tlsKey },
    /: the key is encrypted, and nobody is there to be asked .*\(openssl pkey -in /,
  );
});

test('a certificate that has expired is warned of, because only clients refuse it', OPENSSL, (t) => {
  const { certPath: tlsCert, keyPath: tlsKey, cert } = makeCertificate(t);
  const expired = new Date(Date.now() + 3 * 24 * 60 * 60_000);
  t.mock.timers.enable({ apis: ['Date'], now: expired });
  const { warning, cert: used } = planOf({ tlsCert, tlsKey }) as TlsPlan;
  assert.match(
    warning,
    /^banana\.json: tlsCert: the certificate has expired, on \w+ .* GMT; clients refuse it$/,
  );
  assert.equal(used, cert);
  t.mock.timers.setTime(0);
  assert.match(planOf({ tlsCert, tlsKey })?.warning ?? '', /does not count before/);
});
