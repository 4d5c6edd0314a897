/** The runner of the tests: what has failed, or has no test, is never green, and no unit test starts a process under it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { ROOT } from '../../helpers/server.js';
import { shareProcesses, shareServerProcesses } from '../../tools/shared-process.js';
import { appFolder } from '../../worker/app-folder.js';

const RUNNER = `${ROOT}dist/test/tools/run-tests.js`;
const PASSES = "import { test } from 'node:test'; test('passes', () => {});";

interface Run {
  readonly status: unknown;
  readonly output: string;
}

/** Runs the files with these contents, by their paths in a folder of their own. */
async function run(t: TestContext, files: Readonly<Record<string, string>>): Promise<Run> {
  const folder = appFolder(t, files);
  return runner(...Object.keys(files).map((file) => join(folder, file)));
}

async function runner(...args: readonly string[]): Promise<Run> {
  // Node's own runner does nothing in a process that has this variable.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, [RUNNER, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[unknown]>,
  ]);
  return { status, output: stdout + stderr };
}

test('lists what has failed, in a suite too and what does not load, once and at the end', async (t) => {
  const fails = `
    import { after, describe, test } from 'node:test';
    describe('a suite', () => { test('inside of it', () => { throw new Error('no'); }); });
    describe('a suite whose hook fails', () => { after(() => { throw new Error('no'); }); test('passes', () => {}); });
  `;
  const { status, output } = await run(t, {
    'broken.test.mjs': "throw new Error('no')",
    'fails.test.mjs': fails,
    'passes.test.mjs': PASSES,
  });
  assert.equal(status, 1, output);
  assert.match(
    output,
    /\nFailed, 3:\n +\S*: \S*broken\.test\.mjs\n +\S*fails\.test\.mjs: inside of it\n +\S*: a suite whose hook fails\n$/,
  );
});

test('a run without a test fails', async (t) => {
  const { status, output } = await run(t, { 'empty.test.js': '' });
  assert.equal(status, 1, output);
  assert.match(output, /empty\.test\.js has no test\n\nNo test has passed\.\n$/);
});

test('files that share a process are suites of their own: hooks, failures and empty files are theirs', async (t) => {
  const hook = "import { beforeEach } from 'node:test'; beforeEach(() => { throw new Error('not mine'); });";
  const folder = appFolder(t, {
    'broken.test.js': "throw new Error('no')",
    'empty.test.js': '',
    'fails.test.js': `${hook} ${PASSES}`,
    'passes.test.js': PASSES,
    'starts.test.js': starting(STARTS.spawn),
  });
  const files = ['broken', 'empty', 'fails', 'passes', 'starts'].map((name) =>
    join(folder, `${name}.test.js`),
  );
  const { status, output } = await runner(...shareProcesses(files, folder));
  assert.equal(status, 1, output);
  assert.match(output, /^# pass 2$/m);
  assert.match(output, /\nFailed, 3:\n/);
  assert.match(output, /: \S*broken\.test\.js\n/);
  assert.match(output, /empty\.test\.js has no test\n/);
  assert.match(output, /fails\.test\.js: passes\n/);
  assert.match(output, /is a unit test and starts a process/);
  assert.match(output, /\d +\S*passes\.test\.js$/m);
});

test('files that start servers in their process share one, unless they change it, and may start others', async (t) => {
  const uses = "import './helpers/here.js';";
  const folder = appFolder(t, {
    'helpers/here.js': '',
    'plain.test.js': PASSES,
    'changes.test.js': `${uses}\n${PASSES}\nprocess.title = 'mine';`,
    'one.test.js': `${uses} ${PASSES}`,
    'two.test.js': `${uses} ${starting(STARTS.spawn)}`,
  });
  const files = ['changes', 'one', 'plain', 'two'].map((name) => join(folder, `${name}.test.js`));
  const [shared = '', ...alone] = shareServerProcesses(files, folder);
  assert.deepEqual(alone, [files[0], files[2]]);
  const { status, output } = await runner(shared);
  assert.equal(status, 0, output);
  assert.match(output, /^# pass 2$/m);
});

const STARTS = {
  spawn: "childProcess.spawn('true')",
  fork: "childProcess.fork('missing.js')",
  exec: "childProcess.exec('true')",
  execFile: "childProcess.execFile('true')",
  spawnSync: "childProcess.spawnSync('true')",
  execSync: "childProcess.execSync('true')",
  execFileSync: "childProcess.execFileSync('true')",
  import: "spawn('true')",
};

const HEAD = `
  import childProcess, { spawn } from 'node:child_process';
  import { test } from 'node:test';
`;

const starting = (call: string): string => `${HEAD}
  test('starts a process', () => { try { ${call} } catch {} });
`;

test('a unit test that starts a process fails in every way of starting one, even if it catches the error', async (t) => {
  const tests = Object.entries(STARTS).map(
    ([name, call]) =>
      `test('${name}', () => { try { ${call}; } catch { console.log('refused: ${name}.'); } });`,
  );
  const { status, output } = await run(t, { 'starts.test.mjs': `${HEAD}${tests.join(' ')}` });
  assert.equal(status, 1, output);
  assert.match(output, /Failed, 1:/);
  assert.ok(
    output.includes('starts.test.mjs is a unit test and starts a process: such tests lie in test/processes'),
    output,
  );
  for (const name of Object.keys(STARTS)) assert.ok(output.includes(`refused: ${name}.`), name);
});
