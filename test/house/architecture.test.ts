/** docs/architecture.md says what the folders are: its table of rooms is that of the lint rule, and names all of them. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../helpers/server.js';

const page = readFileSync(join(ROOT, 'docs', 'architecture.md'), 'utf8');

/** First cells of the rows of the table under a heading. */
function firstCells(heading: string): string[] {
  const [, section = ''] = page.split(`## ${heading}\n`);
  const [text = ''] = section.split('\n## ');
  return [...text.matchAll(/^\| `([^`]+)` /gm)].map(([, cell = '']) => cell);
}

test('the table of rooms lists the rooms of the lint rule, in its order', async () => {
  const { ROOMS } = (await import(join(ROOT, 'eslint.config.js'))) as { ROOMS: readonly string[] };
  assert.deepEqual(firstCells('Who may import whom'), ROOMS);
});

test('every room of the table is there, and every folder of the supervisor is in a room', () => {
  const rooms = firstCells('Who may import whom');
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
