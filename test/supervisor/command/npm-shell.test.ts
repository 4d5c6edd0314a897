import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isNpmShell } from '../../../supervisor/command/npm-shell.js';

const envOf = (script: string): NodeJS.ProcessEnv => ({
  npm_config_user_agent: 'npm/10.8.2 node/v20.20.2 linux x64 workspaces/false',
  npm_lifecycle_script: script,
});
const OWN = { command: 'node server.js', group: 5 };
const START = 'banana-serve ./app.ts';

for (const [what, script, parent, expected] of [
  ['npx', "'banana-serve'", "sh -c 'banana-serve' ./app.ts", true],
  ['npm start', START, `sh -c ${START}`, true],
  ['a script-shell of another name', START, `/bin/dash -c ${START}`, true],
  ['the last of several commands', `build && ${START} 2>&1`, `sh -c build && ${START} 2>&1`, true],
  ['npm itself, whose shell replaced itself with exec', START, 'npm start', false],
  ['a script that npm started', './start.sh', '/bin/sh ./start.sh', false],
  ['another shell below that of npm', './start.sh', `sh -c ${START}`, false],
  ['a command in the background', `${START} & sleep 9`, `sh -c ${START} & sleep 9`, false],
  ['a command in the background, by an argument', START, `sh -c ${START} &`, false],
  ['nohup', `nohup ${START}`, `sh -c nohup ${START}`, false],
  ['setsid', `setsid ${START}`, `sh -c setsid ${START}`, false],
] as const) {
  test(`${what}: ${expected ? 'its end ends the server' : 'its end is not the end of the server'}`, () => {
    assert.equal(isNpmShell(envOf(script), { command: parent, group: 5 }, OWN), expected);
  });
}

test('a process that cannot be looked up, or has its own process group, does not end with the shell', () => {
  const parent = { command: `sh -c ${START}`, group: 5 };
  assert.equal(isNpmShell(envOf(START), null, OWN), false);
  assert.equal(isNpmShell(envOf(START), parent, null), false);
  assert.equal(isNpmShell(envOf(START), parent, { ...OWN, group: 6 }), false);
});

test("without the environment of npm, a shell is not taken for npm's", () => {
  const parent = { command: `sh -c ${START}`, group: 5 };
  assert.equal(isNpmShell({}, parent, OWN), false);
  assert.equal(isNpmShell({ ...envOf(START), npm_config_user_agent: 'pnpm/9' }, parent, OWN), false);
});
