/** docs/architecture.md describes the folders: its tables of rooms are those of the lint rules, and name all of them. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../helpers/server.js';

const page = readFileSync(join(ROOT, 'docs', 'architecture.md'), 'utf8');

/** First cells of the rows of the table with this head in its first column. */
function firstCells(head: string): string[] {
  const [, section = ''] = page.split(`| ${head} |`);
  const [table = ''] = section.split('\n\n');
  return [...table.matchAll(/^\| `([^`]+)` /gm)].map(([, cell = '']) => cell);
}

test('the tables of rooms list the rooms of the lint rules, in their order', async () => {
  const { ROOMS, WORKER_ROOMS } = (await import(join(ROOT, 'eslint.config.js'))) as {
    ROOMS: readonly string[];
    WORKER_ROOMS: readonly string[];
  };
  assert.deepEqual(firstCells('room'), ROOMS);
  assert.deepEqual(firstCells('room of the worker'), WORKER_ROOMS);
});

test('every room of the table is there, and every folder of the supervisor is in a room', () => {
  const rooms = firstCells('room');
  const supervisor = join(ROOT, 'supervisor');
  assert.deepEqual(
    rooms.filter((room) => !existsSync(join(supervisor, room))),
    [],
  );
  const folders = readdirSync(supervisor, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const homeless = folders.filter(({ name }) => !rooms.some((room) => room.split('/')[0] === name));
  assert.deepEqual(
    homeless.map(({ name }) => name),
    [],
  );
});

test('every folder that the page names is there', () => {
  const named = [...page.matchAll(/`((?:supervisor|worker)\/[\w/.-]+)`/g)].map(([, path = '']) => path);
  assert.ok(named.length >= 3, 'the page names folders');
  assert.deepEqual(
    named.filter((path) => !existsSync(join(ROOT, path))),
    [],
  );
});

test('every file that the three lives name is there', () => {
  const [, lives = ''] = /^## Three lives\n([\s\S]*?)^## /m.exec(page) ?? [];
  const named = [...lives.matchAll(/`([\w/.-]+\.ts|worker\/\w+)`/g)].map(([, path = '']) => path);
  assert.ok(named.length >= 30, 'the lives name their files');
  const rootOf = (path: string): string =>
    /^(worker|protocol)\//.test(path) ? ROOT : join(ROOT, 'supervisor');
  assert.deepEqual(
    named.filter((path) => !existsSync(join(rootOf(path), path))),
    [],
  );
});
