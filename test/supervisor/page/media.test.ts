/** Pictures and sounds that have no type, and those that must not be opened. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { bytesOfBase64, mediumInText, mediumOf } from '../../../supervisor/page/parts/media.js';
import { ROOT } from '../../helpers/server.js';

const png = readFileSync(`${ROOT}examples/digits/png/3-row8.png`);

for (const [title, text] of [
  ['in base64', png.toString('base64')],
  ['as a data URL', `data:image/png;base64,${png.toString('base64')}`],
] as const)
  test(`a picture ${title} inside JSON is found`, () => {
    const found = mediumInText(text);
    assert.equal(found?.type, 'image/png');
    assert.deepEqual(Buffer.from(bytesOfBase64(found.base64) ?? []), png);
  });

for (const text of [
  '',
  'iVBORw0KGgo=',
  'a long text that is no picture at all, with spaces and more than 64 characters',
  'A'.repeat(100),
])
  test(`no picture: ${text.slice(0, 20)}`, () => assert.equal(mediumInText(text), null));

test('what looks like base64 and is none gives no bytes', () => assert.equal(bytesOfBase64('iVBOR*'), null));

for (const [type, medium] of [
  ['image/webp', 'picture'],
  ['image/svg+xml', 'vector'],
  ['image/svg', null],
  ['audio/mpeg', 'audio'],
  ['text/html', null],
  ['application/pdf', null],
] as const)
  test(`${type} is ${medium ?? 'only saved'}`, () => assert.equal(mediumOf(type), medium));
