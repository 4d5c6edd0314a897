/** The lines that a server logs at its start. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FirstModel } from '../../../supervisor/models/model-spec.js';
import { startTexts, tryText } from '../../../supervisor/status/banner.js';
import { VERSION } from '../../../supervisor/version.js';

function model(name: string, url: string, app: string, standby = 0): FirstModel {
  const program = { label: 'node' };
  const spec = { name, version: '1', url, app, program, resolved: { options: { standby } } };
  return { spec, placements: [{ device: 'cpu', gpu: null }], own: null } as unknown as FirstModel;
}

const UNPACKED = `/tmp/banana-serve-archives-1-2-3-${'a'.repeat(32)}/${'b'.repeat(64)}-1/service.py`;
const ARCHIVED = model('cats', 'zoo/cats.mar', UNPACKED);
const DOGS = ['dogs', 'dogs.mjs', `${process.cwd()}/models/dogs.mjs`] as const;
const FILE = model(...DOGS);

test('a model of an archive is named with its archive, not with the path of its unpacked file', () => {
  assert.deepEqual(startTexts([ARCHIVED], 2, 'http://localhost:8080'), [
    `banana-serve ${VERSION} serves the model cats of zoo/cats.mar with 1 worker on the CPU (2 threads each) on http://localhost:8080`,
  ]);
  assert.deepEqual(startTexts([ARCHIVED, FILE], 2, 'http://localhost:8080').slice(1), [
    'model cats: zoo/cats.mar with 1 worker on the CPU (2 threads each)',
    'model dogs: models/dogs.mjs with 1 worker on the CPU (2 threads each)',
  ]);
});

test('a model that scales itself has its bounds instead of a number', () => {
  const scaled = { ...FILE, own: { min: 0, max: 4 } };
  assert.deepEqual(startTexts([ARCHIVED, scaled], 2, 'http://localhost:8080').slice(2), [
    'model dogs: models/dogs.mjs with 0 to 4 workers (as its calls need them)',
  ]);
});

test('a model with standbys says what they cost', () => {
  const texts = [1, 2].map((standby) => startTexts([model(...DOGS, standby)], 2, 'http://localhost:8080')[0]);
  const start = `banana-serve ${VERSION} serves models/dogs.mjs with 1 worker on the CPU (2 threads each) and`;
  assert.deepEqual(texts, [
    `${start} 1 standby (the memory of one more worker) on http://localhost:8080`,
    `${start} 2 standbys (the memory of 2 more workers) on http://localhost:8080`,
  ]);
});

const [POST, CHAT] = [
  { path: '/x', kind: 'handler' },
  { path: '/chat', kind: 'websocket' },
];

for (const [what, example, routes, shown] of [
  ['an example', '{"a":1}', [CHAT, POST], '-d \'{"a":1}\' http://localhost:8000/x'],
  ['the example null', 'null', [POST], "-d 'null' http://localhost:8000/x"],
  ['no example', '', [POST], null],
  ['an example that is too long to paste', `"${'x'.repeat(500)}"`, [POST], null],
  ['a WebSocket as its only route', '1', [CHAT], null],
] as const)
  test(`an app with ${what}: ${shown === null ? 'no command is shown' : 'its command is shown'}`, () => {
    const info = { example, routes } as unknown as NonNullable<Parameters<typeof tryText>[0]['info']>;
    const text = tryText({ info }, 'http://localhost:8000', null, false);
    assert.equal(text, shown === null ? null : `Try it: curl -H 'Content-Type: application/json' ${shown}`);
  });
