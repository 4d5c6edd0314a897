/** The package as npm would publish it. */
import { execFile, type ExecFileOptions } from 'node:child_process';
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
  await install('npm', ['install', ...flags, ...packages], { cwd: folder });
}

/** How long a hook may take that installs: npm alone waits over a minute for a registry that does not answer. */
export const INSTALL_LIMIT = { timeout: 600_000 };

const TRIES = 3;

/** Runs a program that installs packages, again if it fails: a registry may be away for a moment, and is not what is tested. */
export async function install(
  file: string,
  args: readonly string[],
  options: ExecFileOptions,
  tries = TRIES,
): Promise<void> {
  try {
    await run(file, args, options);
  } catch (error) {
    if (tries === 1) throw error;
    await install(file, args, options, tries - 1);
  }
}
