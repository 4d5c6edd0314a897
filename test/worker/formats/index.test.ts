/** The formats of both workers: each is a file of its name, in the folder of either language. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { formatNamed, MSGPACK_TYPES } from '../../../worker/formats/index.js';
import { readInput } from '../../../worker/formats/read-input.js';
import { encodeOutput } from '../../../worker/reply/encode-output.js';
import { callWith } from '../calls.js';
import { serveError } from '../refusals.js';
import { nodeFormats } from './node-formats.js';

const PYTHON = new URL('../../../../worker/python/banana_worker/formats/', import.meta.url);

/** The formats of the Python worker, with the media types of their items. */
function pythonFormats(): [name: string, itemType: string | undefined][] {
  return readdirSync(PYTHON)
    .filter((file) => file.endsWith('.py') && file !== '__init__.py')
    .map((file) => [file, readFileSync(new URL(file, PYTHON), 'utf8')] as const)
    .filter(([, source]) => /^(?:def read\(|class Exchange\b)/m.test(source))
    .map(([file, source]) => [
      file.slice(0, -'.py'.length).replaceAll('_', '-'),
      /^ITEM_TYPE = "(.*)"$/m.exec(source)?.[1],
    ]);
}

test('both workers have the same formats but that of V8, and a custom service sees their bodies under the same types', async () => {
  const { v8: _, ...shared } = await nodeFormats();
  const own = Object.entries(shared).map(([name, { itemType }]) => [name, itemType]);
  assert.ok(own.length > 4);
  assert.deepEqual(pythonFormats().sort(), own.sort());
});

test('a format is found by its name, at once when it is loaded', async () => {
  for (const [name, format] of Object.entries(await nodeFormats())) {
    assert.equal(await formatNamed(name), format);
    assert.equal(formatNamed(name), format, name);
  }
});

for (const name of ['none', 'fields', 'index', '../main', 'JSON', ''])
  test(`a call in the format ${JSON.stringify(name)} is refused`, async () => {
    const refusal = serveError('SERVE_BAD_BODY', /^The worker of this model does not have the format "/);
    await assert.rejects(async () => {
      await readInput(callWith({ format: name }), Buffer.from('1'));
    }, refusal);
  });

for (const type of MSGPACK_TYPES) {
  test(`the output for ${type} has that type, and its format reads it`, async () => {
    const value = { a: [1, 'é', null] };
    const { contentType, body } = await encodeOutput(value, callWith({ accept: type }));
    assert.equal(contentType, type);
    assert.deepEqual(await readInput(callWith({ contentType: type }), Buffer.from(body)), value);
  });
}
