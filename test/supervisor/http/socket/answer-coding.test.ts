import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseCoding, isCompressible } from '../../../../supervisor/http/socket/compressed-response.js';

for (const [accepted, coding] of [
  [undefined, null],
  ['', null],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['GZIP', 'gzip'],
  ['br', 'br'],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip;q=1.0, br;q=0.8', 'gzip'],
  ['br;q=0, gzip', 'gzip'],
  ['br; Q=0.000, gzip ; q=0.1', 'gzip'],
  ['br;q=0, gzip;q=0', null],
  ['*', 'br'],
  ['*;q=0', null],
  ['br;q=0, *', 'gzip'],
  ['gzip;q=0.5, identity', null],
  ['gzip, identity;q=0.5', 'gzip'],
  ['gzip;q=0.5, identity;q=0.5', 'gzip'],
  ['identity;q=0', null],
  ['identity;q=0, gzip', 'gzip'],
  ['identity', null],
  ['deflate, zstd', null],
  ['gzip;q=x', null],
  ['gzip;q=7', null],
] as const)
  test(`${coding} is chosen from ${JSON.stringify(accepted)}`, () =>
    assert.equal(chooseCoding(accepted), coding));

for (const type of [
  'text/plain',
  'text/html; charset=utf-8',
  'text/event-stream',
  'application/json',
  'Application/JSON; charset=utf-8',
  'application/x-ndjson',
  'application/xml',
  'application/problem+json',
  'image/svg+xml',
])
  test(`${type} is compressed`, () => assert.ok(isCompressible(200, { 'content-type': type })));

for (const type of ['', 'image/png', 'application/octet-stream', 'application/msgpack', 'application/jsonp'])
  test(`${type === '' ? 'an answer without a type' : type} is not compressed`, () =>
    assert.ok(!isCompressible(200, { 'content-type': type })));

test('answers of 1 KiB and more are compressed, and those whose length is not known', () => {
  const ofLength = (length: string): boolean =>
    isCompressible(200, { 'content-type': 'text/plain', 'content-length': length });
  assert.deepEqual([ofLength('1023'), ofLength('1024')], [false, true]);
  assert.ok(isCompressible(500, { 'content-type': 'text/plain' }));
});

test('answers without a whole body of their own are not compressed', () => {
  for (const status of [204, 205, 206, 304])
    assert.ok(!isCompressible(status, { 'content-type': 'text/plain' }));
  for (const header of [
    { 'content-encoding': 'identity' },
    { 'content-range': 'bytes 0-1/2' },
    { 'cache-control': 'max-age=60, No-Transform' },
    { digest: 'sha-256=x' },
    { 'content-digest': 'sha-256=:x:' },
    { 'repr-digest': 'sha-256=:x:' },
    { 'content-md5': 'x' },
  ])
    assert.ok(!isCompressible(200, { 'content-type': 'text/plain', ...header }));
});
