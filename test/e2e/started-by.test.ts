/** A server whose starter ends: npm's own shell, other shells, terminals. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { needs } from '../helpers/needs.js';
import { CLI, ROOT, eventually, fixture, isAlive } from '../helpers/server.js';
import { npmProject, startBy, type StartedServer } from '../helpers/starters.js';

const LIMIT = { timeout: 240_000 };
const APP = fixture('works.mjs');
const SERVE = `'${process.execPath}' '${CLI}' '${APP}'`;

// test/supervisor/command/npm-shell.test.ts has every form of a script; here are the environments that npm and shells really give.
for (const [how, script, command] of [
  ['npx banana-serve', '', ['npx', 'banana-serve', APP]],
  ['the last command of npm run', `true && banana-serve '${APP}' 2>&1`, ['npm', 'run', 'start']],
] as const) {
  test(`${how}: SIGTERM to npm drains the server, to which npm does not pass it on`, LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startBy(t, command, { cwd: npmProject(t, { start: script }), env: cues.env });
    const call = ask(server, { until: 'go on' }, { id: 'running' });
    await cues.untilNoted('begun running');
    server.starter.process.kill('SIGTERM');
    await server.untilState('draining');
    cues.give('go on');
    assert.equal((await call).status, 200);
    await server.untilEnded();
    await eventually(
      () => /stopped; every call was answered/.test(server.printed()), // npm passes on what it printed last
      60_000,
      server.printed,
    );
  });
}

/** It has served for longer than the end of a starter takes to be noticed. */
async function assertLivesOn(server: StartedServer): Promise<void> {
  assert.equal((await ask(server, { ms: 600 })).status, 200);
  assert.equal((await server.status()).state, 'ready');
}

for (const [how, script] of [
  ['in the background', `banana-serve '${APP}' &`],
  ['by nohup', `nohup banana-serve '${APP}'`],
] as const) {
  test(`npm start ${how}: the server survives npm and its shell`, LIMIT, async (t) => {
    const cwd = npmProject(t, { start: script });
    const server = await startBy(t, ['npm', 'start'], { cwd, env: makeCues(t).env });
    server.starter.process.kill('SIGTERM'); // unless it has ended with its script
    await untilExited(server);
    await assertLivesOn(server);
  });
}

test('npm start of an app that serves itself: the server survives npm and its shell', LIMIT, async (t) => {
  const cwd = npmProject(t, { start: 'node app.mjs' });
  const index = JSON.stringify(`${ROOT}dist/index.js`);
  writeFileSync(
    join(cwd, 'app.mjs'),
    `import { setTimeout as delay } from 'node:timers/promises';
     import { run } from ${index};
     await run({ inference: async ({ ms }) => delay(ms, 'done') });`,
  );
  const server = await startBy(t, ['npm', 'start'], { cwd });
  server.starter.process.kill('SIGTERM');
  await untilExited(server);
  await assertLivesOn(server);
});

for (const [how, command] of [
  ['&', `${SERVE} &`],
  ['nohup', `nohup ${SERVE} &`],
] as const) {
  test(`a server started with ${how} survives its starter's exit, and a hang-up`, LIMIT, async (t) => {
    const server = await startBy(t, ['sh', '-c', command], { env: makeCues(t).env });
    await untilExited(server);
    process.kill(server.pid, 'SIGHUP');
    await assertLivesOn(server);
  });
}

test('nohup npx: a hang-up ends npm, which forgets nohup, and not the server', LIMIT, async (t) => {
  const command = `echo group $$; exec nohup npx banana-serve '${APP}'`;
  const leader = `const child = require('child_process').spawn('sh', ['-c', process.argv[1]], { detached: true, stdio: 'inherit' }); child.on('exit', () => process.exit())`;
  const server = await startBy(t, [process.execPath, '-e', leader, command], {
    cwd: npmProject(t, {}),
    env: makeCues(t).env,
  });
  const group = Number(/group (\d+)/.exec(server.printed())?.[1]);
  process.kill(-group, 'SIGHUP');
  await untilExited(server);
  await assertLivesOn(server);
});

test(
  'at a terminal: a hang-up drains, though nothing can be printed any more, and ends with exit code 0',
  { ...LIMIT, skip: needs('script') },
  async (t) => {
    const cues = makeCues(t);
    const env = { ...cues.env, SHELL: '/bin/sh' };
    const file = join(cues.folder, 'exit code');
    const shell = `trap 'kill -HUP $!' HUP; ${SERVE} & wait $!; wait $!; echo $? >'${file}'`;
    const server = await startBy(t, ['script', '-qefc', shell, '/dev/null'], { env });
    const call = ask(server, { until: 'go on' }, { id: 'running' });
    await cues.untilNoted('begun running');
    server.starter.process.kill('SIGKILL');
    await server.untilState('draining');
    cues.give('go on');
    assert.equal((await call).status, 200);
    await server.untilEnded();
    assert.ok(cues.notes().includes('shut down'));
    await eventually(
      () => existsSync(file) && readFileSync(file, 'utf8') === '0\n',
      60_000,
      () => 'it did not end with exit code 0',
    );
  },
);

test(
  'at a terminal, under nohup: a hang-up changes nothing',
  { ...LIMIT, skip: needs('script') },
  async (t) => {
    const cues = makeCues(t);
    const file = join(cues.folder, 'output');
    writeFileSync(file, '');
    const env = { ...cues.env, SHELL: '/bin/sh' };
    const shell = `nohup ${SERVE} >'${file}' 2>&1 & wait`;
    const readOutput = (): string => readFileSync(file, 'utf8');
    const server = await startBy(t, ['script', '-qefc', shell, '/dev/null'], { env, readOutput });
    server.starter.process.kill('SIGKILL');
    await untilExited(server);
    await assertLivesOn(server);
  },
);

/** Its output stays open, because the server has it too. */
function untilExited({ starter }: StartedServer): Promise<void> {
  const pid = starter.process.pid as number;
  return eventually(
    () => !isAlive(pid),
    60_000,
    () => `the starter ${pid} lives on`,
  );
}
