import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { digestOf, parseKeys, readKeyFile } from '../../../supervisor/options/secrets.js';
import { readEnvironment } from '../../../supervisor/options/environment.js';
import { parseOption } from '../../../supervisor/options/resolve.js';
import { readConfigFile } from '../../../supervisor/options/read-objects.js';
import { OPTIONS } from '../../../supervisor/options/table.js';
import { NotAllowed } from '../../../supervisor/options/units.js';

const LONGEST = 'k'.repeat(1024);

function folder(t: TestContext, files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), 'banana-keys-'));
  t.after(() => rmSync(path, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

test('parseKeys reads one or more keys from text or an array, and keeps only digests', () => {
  assert.deepEqual(parseKeys('one'), [digestOf('one')]);
  assert.deepEqual(parseKeys(' one , two'), [digestOf('one'), digestOf('two')]);
  assert.deepEqual(parseKeys(['one', LONGEST]), [digestOf('one'), digestOf(LONGEST)]);
});

const NO_KEYS = [
  '',
  ' ',
  ',',
  'fine,',
  'with space',
  'clé',
  'a\nb',
  `${LONGEST}k`,
  [],
  ['fine', ''],
  ['a,b'],
  [1],
  7,
  null,
];
for (const raw of NO_KEYS) {
  test(`${JSON.stringify(raw).slice(0, 20)} is refused, and is not shown`, () => {
    assert.throws(() => parseOption('apiKey', raw, 'BANANA_API_KEY'), {
      code: 'SERVE_CONFIG',
      message:
        'BANANA_API_KEY: this value is not allowed; give one key or several, separated by commas, each of up to 1024 visible ASCII characters.',
    });
  });
}

test('a key may look like a variable of Kubernetes; an empty variable causes a warning', () => {
  const { source, warnings } = readEnvironment({ BANANA_API_KEY: 'tcp://secret' });
  assert.deepEqual([source.values, warnings], [{ apiKey: 'tcp://secret' }, []]);
  const empty = readEnvironment({ BANANA_API_KEY: '' });
  assert.deepEqual(
    [empty.source.values, empty.warnings],
    [{}, ['BANANA_API_KEY is empty, which counts as not set']],
  );
});

test('the syntax error of a config file does not show a key near it', (t) => {
  for (const text of [
    '{ "apiKey": s3cret }',
    '"apiKey s3cret',
    `{ "apiKey": "s3cret" "x": 1 ${' '.repeat(99)}`,
  ]) {
    const cwd = folder(t, { 'banana.json': text });
    assert.throws(
      () => readConfigFile(cwd),
      ({ message }: Error) => /^banana\.json is not valid JSON: ./.test(message) && !message.includes('s3c'),
    );
  }
});

describe('a key file', () => {
  test('has a key per line, and may have comments, blank lines and a byte order mark', (t) => {
    const cwd = folder(t, { keys: '\ufeffone\r\n# two\n\n  three#3  \n' });
    assert.deepEqual(readKeyFile('keys', cwd), [digestOf('one'), digestOf('three#3')]);
    assert.deepEqual(readKeyFile(join(cwd, 'keys'), '/'), [digestOf('one'), digestOf('three#3')]);
  });

  const REFUSED: readonly (readonly [what: string, text: string, says: string])[] = [
    ['no text', '', 'it has no keys; give one per line.'],
    ['only comments', '# none\n\n', 'it has no keys; give one per line.'],
    [
      'a line that is not a key',
      'one\n# x\ns3cret word',
      'line 3 is not a key; a key has up to 1024 visible ASCII characters and no comma.',
    ],
  ];
  for (const [what, text, says] of REFUSED) {
    test(`with ${what} is refused`, (t) => {
      const cwd = folder(t, { keys: text });
      assert.throws(() => readKeyFile('keys', cwd), {
        code: 'SERVE_CONFIG',
        message: `--api-key-file keys: ${says}`,
      });
    });
  }

  test('that is missing or a folder is refused', (t) => {
    const cwd = folder(t, {});
    assert.throws(() => readKeyFile('keys', cwd), {
      code: 'SERVE_CONFIG',
      message: /^--api-key-file keys: it cannot be read: ENOENT/,
    });
    assert.throws(() => readKeyFile('.', cwd), { message: /^--api-key-file \.: it cannot be read: EISDIR/ });
  });
});

test('the path of a key file is any text that is not blank', () => {
  const { parse } = OPTIONS.apiKeyFile;
  assert.equal(parse(' keys of ours.txt'), ' keys of ours.txt');
  for (const raw of ['', ' ', 7, null, ['keys.txt']]) assert.throws(() => parse(raw), NotAllowed);
});
