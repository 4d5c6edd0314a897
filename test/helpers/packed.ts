/** The package as npm would publish it. */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './server.js';

export const run = promisify(execFile);

/** Packs this checkout into `folder`; resolves with the path of the tarball. */
export async function packInto(folder: string): Promise<string> {
  await run('npm', ['pack', '--pack-destination', folder], { cwd: ROOT });
  return join(folder, (await readdir(folder)).find((name) => name.endsWith('.tgz')) as string);
}

/** In `folder`, from npm's cache as far as it goes. */
export async function npmInstall(folder: string, ...packages: readonly string[]): Promise<void> {
  const flags = ['--prefer-offline', '--no-audit', '--no-fund'];
  await run('npm', ['install', ...flags, ...packages], { cwd: folder });
}
