/** Addresses of Multi Model Server's config. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MMS_KEYS } from '../../../../supervisor/options/mms/mms-keys.js';

const { read } = MMS_KEYS.inference_address;

const READ: readonly (readonly [text: string, host: string | undefined, port: number | string])[] = [
  ['http://127.0.0.1:8080', '127.0.0.1', 8080],
  ['http://0.0.0.0', '0.0.0.0', 80],
  ['https://models.example.com', 'models.example.com', 443],
  ['https://models.example.com:8443/', 'models.example.com', 8443],
  ['HTTP://localhost:0', 'localhost', 0],
  ['http://[::1]:65535', '::1', 65_535],
  ['unix:/run/mms.sock', undefined, '/run/mms.sock'],
];

for (const [text, host, port] of READ)
  test(`${text} is ${host ?? 'a socket at'} ${port}`, () => {
    assert.deepEqual(read(text), [host, port]);
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
    assert.throws(() => read(text), { name: 'NotAllowed' });
  });
