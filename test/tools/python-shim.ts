/**
 * Puts the interpreter behind a shim first on the PATH of the tests. The shim of pyenv is a script that runs 20 programs to
 * find it, which takes 0.07 s of CPU at each start of a server with a Python app.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, openSync, readSync, closeSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

/** Returns `path`, with the folder of the interpreter before the others if `python3` is a script. */
export function pathPastShim(path: string): string {
  const program = path
    .split(delimiter)
    .map((folder) => join(folder, 'python3'))
    .find((file) => existsSync(file));
  if (program === undefined || !isScript(program)) return path;
  const question = ['-S', '-c', 'import sys; print(sys.executable)'];
  const { stdout, status } = spawnSync(program, question, {
    encoding: 'utf8',
    env: { ...process.env, PATH: path },
  });
  const found = stdout.trim();
  return status === 0 && existsSync(found) ? dirname(found) + delimiter + path : path;
}

function isScript(file: string): boolean {
  const start = Buffer.alloc(2);
  const fd = openSync(file, 'r');
  readSync(fd, start);
  closeSync(fd);
  return start.toString() === '#!';
}
