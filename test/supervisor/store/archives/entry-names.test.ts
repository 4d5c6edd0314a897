/** Names of entries that are accepted, with their paths, and names that are refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { join, normalize } from 'node:path';
import { ArchiveProblem, EntryNames } from '../../../../supervisor/store/archives/archive-entry.js';

/** Names in order, folders with a slash at the end, and the resulting paths. */
const TAKEN: readonly (readonly [names: readonly string[], paths: readonly string[]])[] = [
  [
    ['a', 'b/c', './d//e'],
    ['a', 'b/c', 'd/e'],
  ],
  [
    ['./', 'a/', 'a/b', 'a/'],
    ['', 'a', 'a/b', 'a'],
  ],
  [
    ['a/b', 'a/'],
    ['a/b', 'a'],
  ],
  [
    ['...', '..a', 'a..b', '.hidden'],
    ['...', '..a', 'a..b', '.hidden'],
  ],
  [['weights (1) é 日本.bin'], ['weights (1) é 日本.bin']],
  [
    ['ab:c', 'ab:/d'],
    ['ab:c', 'ab:/d'],
  ],
];

for (const [names, paths] of TAKEN) {
  test(`the names ${JSON.stringify(names)} are accepted`, () => {
    const taken = new EntryNames();
    assert.deepEqual(
      names.map((name) => taken.add(name, name.endsWith('/'))),
      paths,
    );
  });
}

const REFUSED: readonly (readonly [names: readonly string[], message: string])[] = [
  [['/etc/passwd'], 'its entry "/etc/passwd" has an absolute path.'],
  [['C:/x'], 'its entry "C:/x" has an absolute path.'],
  [['c:x'], 'its entry "c:x" has an absolute path.'],
  [['../x'], 'its entry "../x" points outside the archive.'],
  [['a/../../x'], 'its entry "a/../../x" points outside the archive.'],
  [['a/..'], 'its entry "a/.." points outside the archive.'],
  [['a\\..\\x'], 'its entry "a\\\\..\\\\x" has a backslash in its name.'],
  [['a\0.txt'], 'its entry "a\\u0000.txt" has a NUL in its name.'],
  [['a\nb'], 'its entry "a\\nb" has a control character in its name.'],
  [['.'], 'its entry "." has no name.'],
  [[''], 'its entry "" has no name.'],
  [['x'.repeat(1025)], `its entry "${'x'.repeat(40)}" has a name of more than 1024 characters.`],
  [['é'.repeat(128)], `its entry "${'é'.repeat(40)}" has more than 255 bytes in a part of its name.`],
  [['a', 'a'], 'its entry "a" occurs twice.'],
  [['a', './a'], 'its entry "./a" occurs twice.'],
  [['a/', 'a'], 'its entry "a" occurs twice.'],
  [['a', 'a/'], 'its entry "a/" occurs twice.'],
  [['a/b', 'a'], 'its entry "a" occurs twice.'],
  [['a', 'a/b'], 'its entry "a/b" lies below "a", which is a file.'],
  [['README', 'readme'], 'its entry "readme" differs from "README" only in case or accents.'],
  [['A/x', 'a/y'], 'its entry "a/y" differs from "A" only in case or accents.'],
  [['\u00e9', 'e\u0301'], 'its entry "e\u0301" differs from "\u00e9" only in case or accents.'],
];

for (const [names, message] of REFUSED) {
  test(`the names ${JSON.stringify(names).slice(0, 60)} are refused: ${message.slice(0, 80)}`, () => {
    const taken = new EntryNames();
    const add = (name: string): string => taken.add(name, name.endsWith('/'));
    names.slice(0, -1).forEach(add);
    assert.throws(() => add(names.at(-1) as string), new ArchiveProblem(message));
  });
}

test('the path of any name is inside the folder', () => {
  const part = fc.oneof(fc.constantFrom('..', '.', '', 'a', 'b', '~', 'C:'), fc.string());
  const name = fc.array(part, { maxLength: 6 }).map((parts) => parts.join('/'));
  fc.assert(
    fc.property(name, (text) => {
      let path: string;
      try {
        path = new EntryNames().add(text, false);
      } catch (thrown) {
        assert.ok(thrown instanceof ArchiveProblem);
        return;
      }
      const whole = join('/unpacked', path);
      assert.ok(whole.startsWith('/unpacked/') && whole === normalize(whole), whole);
    }),
  );
});
