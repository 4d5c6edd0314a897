/** Addresses of Multi Model Server's config. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseMmsAddress } from '../../../../supervisor/options/mms/mms-address.js';

const PORTS = { http: 80, https: 443 };

const READ: readonly (readonly [
  text: string,
  host: string | undefined,
  port: number | string,
  isHttps: boolean,
])[] = [
  ['http://127.0.0.1:8080', '127.0.0.1', 8080, false],
  ['http://0.0.0.0', '0.0.0.0', 80, false],
  ['https://models.example.com', 'models.example.com', 443, true],
  ['https://models.example.com:8443/', 'models.example.com', 8443, true],
  ['HTTP://localhost:0', 'localhost', 0, false],
  ['http://[::1]:65535', '::1', 65_535, false],
  ['unix:/run/mms.sock', undefined, '/run/mms.sock', false],
];

for (const [text, host, port, isHttps] of READ)
  test(`${text} is ${host ?? 'a socket at'} ${port}`, () => {
    assert.deepEqual(parseMmsAddress(text, PORTS), { host, port, isHttps });
  });

for (const text of [
  '127.0.0.1:8080',
  'ftp://127.0.0.1',
  'http://',
  'http://:8080',
  'http://127.0.0.1:65536',
  'http://127.0.0.1:port',
  'http://127.0.0.1:8080/predictions',
  'http://user:password@127.0.0.1',
  'http://two words',
  'unix:run/mms.sock',
  'unix://',
  'unix:/',
  '8080',
])
  test(`${text} is refused`, () => {
    assert.throws(() => parseMmsAddress(text, PORTS), { name: 'NotAllowed' });
  });
