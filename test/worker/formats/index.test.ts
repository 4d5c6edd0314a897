import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { FORMATS as FIXED } from '../../../protocol/wire/messages.js';
import type { BodyFormat } from '../../../worker/formats/body-format.js';
import { BY_ACCEPT, FORMATS } from '../../../worker/formats/index.js';
import { readInput } from '../../../worker/formats/read-input.js';
import { callWith } from '../calls.js';

const ALL: Readonly<Record<string, BodyFormat>> = FORMATS;

test('every format that a call can fix is in the table, under its own name and in a file of that name', () => {
  const files = readdirSync(new URL('../../../worker/formats', import.meta.url));
  for (const name of FIXED.filter((name) => name !== 'auto' && name !== 'websocket')) assert.ok(name in ALL);
  for (const [name, format] of Object.entries(ALL)) {
    assert.equal(format.name, name);
    assert.ok(files.includes(`${name}.js`), `worker/formats/${name}.ts`);
  }
});

test('a format that is loaded with its first body has the name under which it is listed', async () => {
  const { MSGPACK } = await import('../../../worker/formats/msgpack.js');
  const { MULTIPART } = await import('../../../worker/formats/multipart.js');
  assert.deepEqual([MSGPACK.name, MULTIPART.name], [FORMATS.msgpack.name, FORMATS.multipart.name]);
});

for (const [type, write] of BY_ACCEPT) {
  test(`the output for ${type} has that type, and its format reads it`, async () => {
    const value = { a: [1, 'é', null] };
    const { contentType, body } = await write(value, callWith());
    assert.equal(contentType, type);
    assert.deepEqual(await readInput(callWith({ contentType: type }), Buffer.from(body)), value);
  });
}
