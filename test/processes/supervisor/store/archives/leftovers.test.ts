/** Folders of killed servers that a server removes, and those that it keeps. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { processNamespace, startOf } from '../../../../../supervisor/machine/processes.js';
import { FOLDER_PREFIX, OwnFolder } from '../../../../../supervisor/store/archives/own-folder.js';
import { needs } from '../../../../helpers/needs.js';
import { appFolder } from '../../../../worker/app-folder.js';

const RANDOM = 'a'.repeat(32);
const START = startOf(process.pid) ?? '0';
const SPACE = processNamespace();

/** A folder like a server's, with a file in it. */
function folderOf(temp: string, pid: number, start = START, space = SPACE): string {
  const path = join(temp, `${FOLDER_PREFIX}${pid}-${start}-${space}-${RANDOM}`);
  mkdirSync(join(path, 'model'), { recursive: true });
  writeFileSync(join(path, 'model/weights'), 'weights');
  return path;
}

/** The pid of a process that has ended. */
async function deadPid(): Promise<number> {
  const child = spawn('true');
  await once(child, 'exit');
  return child.pid as number;
}

function ownFolder(): OwnFolder {
  return new OwnFolder((problem) => assert.fail(problem));
}

async function left(t: TestContext, make: (temp: string) => unknown): Promise<string[]> {
  const temp = appFolder(t, {});
  await make(temp);
  await ownFolder().removeLeftovers(temp);
  return readdirSync(temp);
}

test('the folder of an ended server is removed with its contents', async (t) => {
  const pid = await deadPid();
  assert.deepEqual(await left(t, (temp) => folderOf(temp, pid)), []);
});

test('the folder of an ended server whose pid was reused is removed', { skip: START === '0' }, async (t) => {
  assert.deepEqual(await left(t, (temp) => folderOf(temp, process.pid, `${Number(START) - 1}`)), []);
});

test('the folder of a running server is kept', async (t) => {
  const own = ownFolder();
  t.after(() => own.close());
  const name = basename(own.open());
  assert.deepEqual(await left(t, (temp) => mkdirSync(join(temp, name))), [name]);
});

test('the folder of a server in another pid namespace is kept while it is touched', async (t) => {
  const pid = await deadPid();
  assert.equal((await left(t, (temp) => folderOf(temp, pid, START, '42'))).length, 1);
  const untouched = (temp: string): void => utimesSync(folderOf(temp, pid, START, '42'), 1, 1);
  assert.deepEqual(await left(t, untouched), []);
});

test('no link is followed, neither instead of a folder nor inside one', async (t) => {
  const pid = await deadPid();
  const precious = appFolder(t, { 'thesis.txt': 'precious' });
  const names = await left(t, (temp) => {
    symlinkSync(precious, join(temp, `${FOLDER_PREFIX}${pid}-${START}-${SPACE}-${'b'.repeat(32)}`));
    symlinkSync(precious, join(folderOf(temp, pid), 'link'));
  });
  assert.equal(names.length, 1, 'the link is kept');
  assert.ok(existsSync(join(precious, 'thesis.txt')));
});

test("another user's folder is kept", { skip: needs('root') }, async (t) => {
  const pid = await deadPid();
  const names = await left(t, (temp) => chownSync(folderOf(temp, pid), 12345, 12345));
  assert.equal(names.length, 1);
});

test('other names are kept, and so is a file', async (t) => {
  const pid = await deadPid();
  const names = ['other', `${FOLDER_PREFIX}x`, `${FOLDER_PREFIX}${pid}-1-1-short`];
  const kept = await left(t, (temp) => {
    for (const name of names) mkdirSync(join(temp, name));
    writeFileSync(join(temp, `${FOLDER_PREFIX}${pid}-${START}-${SPACE}-${RANDOM}`), '');
  });
  assert.equal(kept.length, 4);
});

test('a missing temp folder is not an error', async () => {
  await ownFolder().removeLeftovers('/nowhere/at/all');
});
