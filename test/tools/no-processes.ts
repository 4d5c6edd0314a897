/**
 * The runner preloads this module in each test file. It makes a unit test fail in which node:child_process starts
 * something. Tests that start processes lie below the folders of `MAY_START`, or share a process of them.
 */
import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

const MAY_START = /[\\/]test[\\/](?:promises|wire|processes|e2e)[\\/]|[\\/]server-files-\d+\.test\.mjs$/;
const TEST_FILE = /\.test\.m?js$/;

const file = process.argv[1] ?? '';
// A program that a test starts may inherit this preload (`fork()` passes it on): only test files are guarded.
if (TEST_FILE.test(file) && !MAY_START.test(file)) guard();

function guard(): void {
  Object.assign(childProcess, { spawnSync: refuse, execSync: refuse, execFileSync: refuse });
  // `spawn`, `exec`, `execFile`, `fork`, `cluster` and execa all end here.
  Object.assign(childProcess.ChildProcess.prototype, { spawn: refuse });
  syncBuiltinESMExports();
}

/** Throws, and sets the exit status too, because the code under test may catch what its start of a process throws. */
function refuse(): never {
  process.once('exit', () => {
    process.exitCode = 1;
  });
  const error = new Error(
    `${file} is a unit test and starts a process: such tests lie in test/processes, test/e2e or test/promises`,
  );
  process.stderr.write(`${error.stack}\n`);
  throw error;
}
