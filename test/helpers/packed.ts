/** The package as npm would publish it. */
import { execFile, type ExecFileOptions } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, readFile, readdir, rename, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { extract } from 'tar';
import { ROOT, eventually } from './server.js';

export const run = promisify(execFile);

export interface Packed {
  /** Path of the tarball. */
  readonly tarball: string;
  readonly size: number;
  /** Paths in the package. */
  readonly files: readonly string[];
}

/**
 * Packs this checkout, as it is built, and copies the tarball into `folder`. Files of one run share it: npm takes 3 s of CPU. A
 * process that is not of the runner has a tarball of its own.
 */
export async function packInto(folder: string): Promise<Packed> {
  const shared = process.env['BANANA_TEST_RUN'];
  if (shared === undefined) return packAnew(folder);
  const packed = await packOnce(join(shared, 'packed'));
  const tarball = join(folder, basename(packed.tarball));
  await copyFile(packed.tarball, tarball);
  return { ...packed, tarball };
}

/** The first process that comes makes the folder, and packs; others wait for what it has to say. */
async function packOnce(place: string): Promise<Packed> {
  const said = join(place, 'packed.json');
  const isFirst = await mkdir(place).then(
    () => true,
    () => false,
  );
  if (isFirst) {
    const result = await packAnew(place).catch((error: unknown) => ({ error: String(error) }));
    await writeFile(`${said}~`, JSON.stringify(result));
    await rename(`${said}~`, said);
  }
  await eventually(
    () => existsSync(said),
    INSTALL_LIMIT.timeout,
    () => `${place} is not packed`,
  );
  const result = JSON.parse(await readFile(said, 'utf8')) as Packed | { readonly error: string };
  if ('error' in result) throw new Error(result.error);
  return result;
}

async function packAnew(folder: string): Promise<Packed> {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  const { stdout } = await run('npm', args, { cwd: ROOT });
  const [{ filename, size, files }] = JSON.parse(stdout) as [NpmPack];
  return { tarball: join(folder, filename), size, files: files.map(({ path }) => path) };
}

interface NpmPack {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

/**
 * Puts a packed package into `folder` as an install would, beside links to this checkout's dependencies: npm is not asked.
 * Resolves with the path of the installed command.
 */
export async function placePacked({ tarball }: Packed, folder: string): Promise<string> {
  const modules = join(folder, 'node_modules');
  const placed = join(modules, 'banana-serve');
  await mkdir(placed, { recursive: true });
  for (const name of await readdir(join(ROOT, 'node_modules')))
    if (!name.startsWith('.')) await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  await extract({ file: tarball, cwd: placed, strip: 1 });
  const command = join(folder, 'banana-serve');
  await symlink(join(placed, 'dist/front/cli.js'), command);
  await chmod(command, 0o755);
  return command;
}

/** In `folder`, from npm's cache as far as it goes. */
export async function npmInstall(folder: string, ...packages: readonly string[]): Promise<void> {
  const flags = ['--prefer-offline', '--no-audit', '--no-fund'];
  await install('npm', ['install', ...flags, ...packages], { cwd: folder });
}

interface Lock {
  readonly packages: Record<string, { readonly optionalDependencies?: Readonly<Record<string, string>> }>;
}

/**
 * Adds optional packages of other platforms to the lock file of `folder`, as this checkout has them: npm leaves out those
 * that a registry lacks, and then `npm ci` refuses the file.
 */
export async function completeLock(folder: string): Promise<void> {
  const path = join(folder, 'package-lock.json');
  const lock = JSON.parse(await readFile(path, 'utf8')) as Lock;
  const own = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
  for (const { optionalDependencies = {} } of Object.values(lock.packages))
    for (const place of Object.keys(optionalDependencies).map((name) => `node_modules/${name}`)) {
      const known = own.packages[place];
      if (known !== undefined) lock.packages[place] ??= known;
    }
  await writeFile(path, JSON.stringify(lock));
}

/** Limit of a hook that installs: npm alone waits over a minute for a registry that does not answer. */
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
