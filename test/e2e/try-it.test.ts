/** The command that the server shows, run as it stands: it works for this app, or none is shown. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { editedApp } from '../helpers/edited-app.js';
import { needs } from '../helpers/needs.js';
import { runCommand, eventually } from '../helpers/server.js';

const run = promisify(execFile);
const LIMIT = { timeout: 240_000 };

const ECHO = 'export const inference = (input) => ({ got: input });';

/** The app, and the flags of its server; each shows a command that is answered with what the example is. */
const SHOWN: readonly (readonly [what: string, app: string, example: unknown, args: readonly string[]])[] = [
  [
    'quotes, shell signs and other scripts, with a key',
    `${ECHO} export const example = { t: "it's \\"x\\" $HOME \`id\` !! é 漢 \\n @f" };`,
    { t: 'it\'s "x" $HOME `id` !! é 漢 \n @f' },
    ['--api-key', 's3cret'],
  ],
  [
    'a text, on a unix socket whose path has a space',
    `${ECHO} export const example = '@file';`,
    '@file',
    ['--port', 'a b/s.sock'],
  ],
  ['on IPv6', `${ECHO} export const example = 5;`, 5, ['--host', '::1']],
];

for (const [what, app, example, args] of SHOWN) {
  test(
    `the example, ${what}, is shown as a command that works`,
    { ...LIMIT, skip: needs('curl') },
    async (t) => {
      const files = editedApp(t, { 'app.mjs': app, 'a b/x.txt': '' });
      const cwd = join(files.path('app.mjs'), '..');
      const given = ['app.mjs', '--host', '127.0.0.1', '--port', '0', ...args];
      const server = runCommand(given, { t, cwd });
      const shown = /Try it: (curl .*)\n/;
      await eventually(
        () => shown.test(server.stderr()),
        60_000,
        () => server.stderr(),
      );
      const [, command = ''] = shown.exec(server.stderr()) ?? [];
      const env = { ...process.env, BANANA_API_KEY: 's3cret' };
      const { stdout } = await run('bash', ['-c', `${command} -sS`], { cwd, env });
      assert.deepEqual(JSON.parse(stdout), { got: example }, command);
      server.process.kill('SIGINT');
      assert.equal((await server.ended).code, 0);
    },
  );
}

test('an example with bytes in it, which JSON would change: no command is shown', LIMIT, async (t) => {
  const files = editedApp(t, {
    'app.mjs': `${ECHO} export const example = { image: new Uint8Array(3) };`,
  });
  const server = runCommand([files.path('app.mjs'), '--host', '127.0.0.1', '--port', '0'], { t });
  await eventually(
    () => server.stderr().includes('is ready'),
    60_000,
    () => server.stderr(),
  );
  server.process.kill('SIGINT');
  assert.equal((await server.ended).code, 0);
  assert.doesNotMatch(server.stderr(), /Try it|curl/);
});
