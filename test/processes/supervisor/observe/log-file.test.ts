/** A log file: its contents, and the behaviour if it cannot be written. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { LogFile } from '../../../../supervisor/observe/log-file.js';
import { appFolder } from '../../../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };

/** Longer than any test takes. */
const NEVER_MS = 600_000;

function troubleOf(): { problems: string[]; onTrouble: (text: string) => void } {
  const problems: string[] = [];
  return { problems, onTrouble: (text) => problems.push(text) };
}

test('a log file gets lines in order, after existing ones, in a folder that is created', LIMIT, async (t) => {
  const path = join(appFolder(t, {}), 'logs/today/mms_log.log');
  const { problems, onTrouble } = troubleOf();
  for (const round of ['a', 'b']) {
    const file = new LogFile(path, onTrouble);
    for (let i = 0; i < 100; i += 1) file.writeLines(`${round} ${i}\n`);
    await file.close(NEVER_MS);
  }
  const lines = ['a', 'b'].flatMap((round) => Array.from({ length: 100 }, (_, i) => `${round} ${i}`));
  assert.equal(readFileSync(path, 'utf8'), `${lines.join('\n')}\n`);
  assert.equal(statSync(path).mode & 0o007, 0, 'other users cannot read it');
  assert.deepEqual(problems, []);
});

for (const [what, place, why] of [
  ['a folder that cannot be created', 'file.txt/mms_log.log', /ENOTDIR/],
  ['a folder of that name', 'folder', /EISDIR/],
  ['a pipe without a reader', 'pipe', /ENXIO/],
] as const)
  test(`${what} is reported once, and only lines are lost`, LIMIT, async (t) => {
    const folder = appFolder(t, { 'folder/a.txt': '' });
    writeFileSync(join(folder, 'file.txt'), '');
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    const { problems, onTrouble } = troubleOf();
    const file = new LogFile(join(folder, place), onTrouble);
    file.writeLines('one\n');
    file.writeLines('two\n');
    await file.close(NEVER_MS);
    assert.equal(problems.length, 1);
    assert.match(problems[0] as string, why);
    assert.match(problems[0] as string, /lines are lost/);
  });

test(
  'a full disk is reported once, however many lines are lost',
  { ...LIMIT, skip: process.platform !== 'linux' },
  async () => {
    const { problems, onTrouble } = troubleOf();
    const file = new LogFile('/dev/full', onTrouble);
    for (let i = 0; i < 3; i += 1) {
      file.writeLines('a line\n');
      await delay(10); // for a write of its own
    }
    await file.close(NEVER_MS);
    assert.equal(problems.length, 1);
    assert.match(problems[0] as string, /^lines are lost because \/dev\/full cannot be written: .*ENOSPC/);
  },
);

test('lines that wait for a slow file are bounded', LIMIT, async (t) => {
  const path = join(appFolder(t, {}), 'mms_log.log');
  const { problems, onTrouble } = troubleOf();
  const file = new LogFile(path, onTrouble);
  const megabyte = `${'x'.repeat(1024 * 1024 - 1)}\n`;
  for (let i = 0; i < 10; i += 1) file.writeLines(megabyte); // before the file can be open
  await file.close(NEVER_MS);
  assert.equal(statSync(path).size, 4 * megabyte.length);
  assert.equal(problems.length, 1);
  assert.match(problems[0] as string, /the disk is too slow$/);
});
