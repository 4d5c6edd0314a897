/** docs/from-multi-model-server.md: its models are served by its command, its calls are made in order, its answers compared. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { OPTIONS } from '../../supervisor/options/table.js';
import { editedApp } from '../helpers/edited-app.js';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { ROOT } from '../helpers/server.js';

const PAGE = readFileSync(`${ROOT}docs/from-multi-model-server.md`, 'utf8');
const MODEL = /`(models\/[\w.]+)`[^\n]*\n\n```(?:ts|python)\n(.*?)```/gs;
const CALL = /^ {4}(curl [^\n]+)\n\n```json\n(.*?)```/gms;
const COMMAND = /^ {4}banana-serve ([^\n]+)$/gm;

/** Every block of one kind is one that this test makes use of. */
function blocks(pattern: RegExp, kind: RegExp): RegExpExecArray[] {
  const found = [...PAGE.matchAll(pattern)];
  assert.ok(found.length > 0);
  assert.equal(found.length, PAGE.match(kind)?.length, `${kind} blocks that are used`);
  return found;
}

test(
  'the calls on the page get the answers on it',
  { timeout: 240_000, skip: needs('curl', 'python3') },
  async (t) => {
    const models = blocks(MODEL, /^```(?:ts|python)/gm).map(([, path, code]) => [path, code] as const);
    const calls = blocks(CALL, /^```json/gm);
    const [[, command = ''] = []] = blocks(COMMAND, /^ {4}banana-serve/gm);
    const { folder } = editedApp(t, Object.fromEntries(models) as Record<string, string>);
    const args = [...command.split(' '), '--management-port', '0'];
    const server = await startHere(null, { args, cwd: folder, t });
    await server.until(({ state }) => state === 'ready');
    await server.untilPrinted('Model server started.');
    await server.untilPrinted('the management API is on');
    const management = /the management API is on http:\/\/([^\s"]+)/.exec(server.stderr())?.[1] ?? '';
    for (const [, line = '', answer = ''] of calls) {
      const asked = line
        .replace('localhost:8080', new URL(server.url).host)
        .replace('localhost:8081', management);
      assert.notEqual(asked, line);
      const { stdout } = await promisify(execFile)('sh', ['-c', asked.replace(/^curl/, 'curl -sS')]);
      assert.deepEqual(JSON.parse(stdout), JSON.parse(answer), line);
    }
    await server.stop();
  },
);

test('the options on the page are options', () => {
  const rows = PAGE.split('\n').filter((line) => line.startsWith('|'));
  const typed = rows.map((row) => row.split('|')[2] ?? '').join('\n');
  const named = [...new Set(typed.match(/--[a-z][\w-]+/g))];
  const known = new Set(Object.values(OPTIONS).map(({ flag }) => flag));
  assert.ok(named.length > 10);
  assert.deepEqual(
    named.filter((flag) => !known.has(flag)),
    [],
  );
});
