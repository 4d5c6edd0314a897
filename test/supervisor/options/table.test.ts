/** The table of options, and docs/options.md, whose tables are printed from it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EXIT_CODES } from '../../../supervisor/exit-codes.js';
import { OPTIONS, OPTION_NAMES, envName } from '../../../supervisor/options/table.js';
import { holdsSection, printTable } from '../../helpers/doc-page.js';

holdsSection('options.md', 'options', () =>
  printTable(
    ['flag', 'key', 'environment', 'scope', 'default', 'meaning, and why'],
    OPTION_NAMES.map((name) => {
      const { flag, value, scope, defaultText, help } = OPTIONS[name];
      const given = value === null ? `\`${flag}\`` : `\`${flag} ${value}\``;
      return [
        given,
        `\`${name}\``,
        `\`${envName(name)}\``,
        scope === 'process' ? 'server' : 'model',
        defaultText,
        help,
      ];
    }),
  ),
);

holdsSection('options.md', 'exit-codes', () =>
  printTable(
    ['code', 'meaning'],
    Object.values(EXIT_CODES).map(({ code, meaning }) => [String(code), meaning]),
  ),
);

test('every flag is its key in kebab case', () => {
  for (const name of OPTION_NAMES) {
    assert.equal(OPTIONS[name].flag, `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`);
  }
});

/** Not text that the parser reads: what happens without the option, in words. */
const IN_WORDS: readonly string[] = ['workers', 'gpus', 'workersPerGpu', 'accessLog', 'spawnConcurrency'];

for (const name of OPTION_NAMES) {
  const { defaultText, default: value, parse } = OPTIONS[name];
  if (IN_WORDS.includes(name)) continue;
  test(`the default of ${name} is what the help says: ${defaultText}`, () => {
    assert.equal(parse(defaultText), value);
  });
}
