/**
 * Places where the interpreter of an app may be, in order of precedence: the operator's choice, the active environment, an
 * environment beside the app, PATH. The first existing program is used.
 *
 * An environment beside the app runs any code that its creator put there, so it counts only if no user but this one or root
 * can have created it.
 */
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readdirSync,
  realpathSync,
  statSync,
  type Stats,
} from 'node:fs';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { sourceNameOf } from '../../options/resolve.js';
import type { AppSetting } from '../runtime.js';

export interface InterpreterPlace {
  /** Absolute path of the program; null if there is none. */
  readonly program: string | null;
  /** Description of the place, for messages. */
  readonly text: string;
  /** An environment that exists or is named but is not used, with the reason. */
  readonly warning?: string;
}

/** A generator, so that later places are not examined once one is found. */
export function* interpreterPlaces(app: string, setting: AppSetting): Generator<InterpreterPlace> {
  const { resolved, startFolder, env, isUnpacked } = setting;
  const given = resolved.options.python;
  if (given !== null) {
    const program = given.includes('/') ? existing(resolve(startFolder, given)) : inSearchPath(given, env);
    yield { program, text: `${given} (${sourceNameOf(resolved, 'python')})` };
    return;
  }
  for (const variable of ['VIRTUAL_ENV', 'CONDA_PREFIX']) {
    const folder = env[variable] ?? '';
    if (folder === '') continue;
    const path = join(resolve(folder), 'bin/python');
    const program = existing(path);
    const warning = `${variable} names ${folder}, which has no bin/python: another interpreter is used`;
    yield { program, text: `${path} (${variable})`, ...(program === null && { warning }) };
  }
  if (!isUnpacked) yield* nearbyPlaces(dirname(app), startFolder);
  for (const name of ['python3', 'python'])
    yield { program: inSearchPath(name, env), text: `${name} in PATH` };
}

const ENVIRONMENTS = ['.venv', 'venv'];

/** Environments in the folders from the app upwards, the nearest first; untrusted ones are skipped with a warning. */
function* nearbyPlaces(appFolder: string, startFolder: string): Generator<InterpreterPlace> {
  for (const folder of foldersUpwards(appFolder, startFolder)) {
    for (const environment of ENVIRONMENTS) {
      const path = join(folder, environment);
      const program = existing(join(path, 'bin/python'));
      if (program === null) continue;
      const stranger = [folder, ...partsThatRun(path)].find((each) => !isOwn(statSync(each)));
      if (stranger === undefined) yield { program, text: program };
      else yield untrusted(path, stranger);
    }
  }
  yield { program: null, text: `.venv and venv in ${appFolder} and above` };
}

/** Existing parts of an environment that decide which code runs: folders, settings and the interpreter. */
function partsThatRun(environment: string): string[] {
  const libraries = ['lib', 'lib64'].map((name) => join(environment, name));
  const versions = libraries.flatMap(foldersOfVersions);
  const packages = versions.map((version) => join(version, 'site-packages'));
  const others = ['bin', 'pyvenv.cfg'].map((name) => join(environment, name));
  const parts = [
    environment,
    ...others,
    ...interpreterWithin(environment),
    ...libraries,
    ...versions,
    ...packages,
  ];
  return parts.filter((path) => existsSync(path));
}

/** Folders such as `lib/python3.11` and `lib/pypy3.10`; empty if `library` is not a folder. */
function foldersOfVersions(library: string): string[] {
  try {
    const names = readdirSync(library).filter((name) => /^(?:python|pypy)/.test(name));
    return names.map((name) => join(library, name));
  } catch {
    return [];
  }
}

/** The interpreter's file if it is inside the environment; elsewhere it belongs to the machine. */
function interpreterWithin(environment: string): string[] {
  const program = realpathOf(join(environment, 'bin/python'));
  return program.startsWith(`${realpathOf(environment)}/`) ? [program] : [];
}

function untrusted(environment: string, stranger: string): InterpreterPlace {
  const why = `other users may write to ${stranger}`;
  const cure = 'Remove their write permission, or name its interpreter with --python';
  return {
    program: null,
    text: `${environment} (${why})`,
    warning: `${environment} is not used, since ${why}. ${cure}`,
  };
}

/** Folders from the app's up to the start folder or the root of the repository, whichever is higher; else only the app's. */
export function foldersUpwards(appFolder: string, startFolder: string): string[] {
  const folders: string[] = [];
  for (let folder = appFolder; !folders.includes(folder); folder = dirname(folder)) folders.push(folder);
  const repository = folders.findIndex((folder) => existing(join(folder, '.git')) !== null);
  return folders.slice(0, Math.max(0, repository, folders.indexOf(startFolder)) + 1);
}

/**
 * Whether only this user and root can have written there. Groups count as other users, except a group with the number of
 * the user, which is a private group: any other group may have members, even the user's primary one.
 */
export function isOwn({ uid, gid, mode }: Pick<Stats, 'uid' | 'gid' | 'mode'>): boolean {
  const isOwner = uid === 0 || uid === process.getuid?.();
  const isGroupOfUser = gid === process.getgid?.() && gid === process.getuid?.();
  const isWritable = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !isGroupOfUser);
  return isOwner && !isWritable;
}

/** Returns `path` if it exists, even as a broken link: a broken environment is reported, not skipped. */
function existing(path: string): string | null {
  try {
    lstatSync(path);
    return path;
  } catch {
    return null;
  }
}

/** The path itself if it is a broken link. */
function realpathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function inSearchPath(name: string, env: AppSetting['env']): string | null {
  const folders = (env['PATH'] ?? '').split(delimiter).filter(isAbsolute);
  return folders.map((folder) => join(folder, name)).find(isProgram) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
