/** Certificates and keys that are refused before anything starts, with their messages. */
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

test('without a certificate and a key no listener uses TLS, and the server creates none', () => {
  assert.equal(planOf({}), null);
  assertRefused(
    { tlsFor: 'management' },
    'banana.json: tlsFor: TLS needs a certificate and its key; give --tls-cert and --tls-key (certificate_file and private_key_file in config.properties). The server does not create one.',
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

test('keys in the formats of older programs are accepted', OPENSSL, (t) => {
  for (const [kind, command] of [
    ['rsa', ['rsa', '-traditional']],
    ['ec', ['ec']],
  ] as const) {
    const { certPath: tlsCert, keyPath } = makeCertificate(t, kind);
    const tlsKey = fileWith(t, execFileSync('openssl', [...command, '-in', keyPath], { stdio: 'pipe' }));
    assert.deepEqual(planOf({ tlsCert, tlsKey })?.listeners, ['main']);
  }
});

test('a certificate without a key, or a key without a certificate, is refused', () => {
  assertRefused(
    { tlsCert: 'c.pem' },
    'banana.json: tlsCert: a certificate and its key go together; give --tls-key too.',
  );
  assertRefused(
    { tlsKey: 'k.pem' },
    'banana.json: tlsKey: a certificate and its key go together; give --tls-cert too.',
  );
});

test('a listener that does not exist, and one on a unix socket, are refused', () => {
  const pair = { tlsCert: 'c.pem', tlsKey: 'k.pem' };
  assertRefused(
    { ...pair, tlsFor: 'main,metrics' },
    'banana.json: tlsFor: there is no metrics listener with an address of its own; leave it out, or give it a port.',
  );
  assertRefused(
    { ...pair, port: '/run/b.sock' },
    'banana.json: tlsCert: a unix socket needs no TLS; leave it out, or give a port.',
  );
});

test('files that cannot be read or have other contents are refused', OPENSSL, (t) => {
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
      /file\.pem: it has no PEM certificate \(-----BEGIN CERTIFICATE-----\); give the certificate/,
    ],
    [
      { tlsKey: nothing },
      /file\.pem: it has no PEM private key \(-----BEGIN PRIVATE KEY-----\); give the private key of/,
    ],
    [
      { tlsCert: fileWith(t, cert.slice(0, 200)) },
      /file\.pem: the certificate is damaged \(.*\); give the complete PEM file/,
    ],
    [
      { tlsKey: fileWith(t, key.slice(0, 60)) },
      /file\.pem: the key is damaged \(.*\); give the complete PEM file/,
    ],
    [
      { tlsKey: makeCertificate(t).keyPath },
      /^banana\.json: tlsKey \S+: it does not belong to the certificate in \S+/,
    ],
    [
      { tlsKey: makeCertificate(t, 'rsa').keyPath },
      /: it does not belong to the certificate in \S+; give a key/,
    ],
  ];
  for (const [values, message] of rows) assertRefused({ tlsCert, tlsKey, ...values }, message);
});

test('an encrypted key is refused', OPENSSL, (t) => {
  const { certPath: tlsCert, keyPath } = makeCertificate(t);
  const encrypt = ['pkcs8', '-topk8', '-passout', 'pass:secret', '-in', keyPath];
  const tlsKey = fileWith(t, execFileSync('openssl', encrypt, { stdio: 'pipe' }));
  assertRefused(
    { tlsCert, tlsKey },
    /: the key is encrypted, and the server cannot ask for a passphrase; .*\(openssl pkey -in /,
  );
});

test('an expired certificate causes only a warning, because clients refuse it', OPENSSL, (t) => {
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
  assert.match(planOf({ tlsCert, tlsKey })?.warning ?? '', /is not valid before/);
});
