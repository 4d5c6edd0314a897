/**
 * Where the interpreter of an app may be, the likelier place first: what the operator names, the active environment, an
 * environment beside the app, the search path. The first program that is there is the one.
 *
 * An environment beside the app runs whatever its maker put there, so it counts only where nobody but this user, or root,
 * can have made it.
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

/** What the interpreter is chosen by. */
export interface InterpreterWish {
  /** As the operator names it: a path, or a name in the search path; null: found. */
  readonly given: string | null;
  /** Where that was written. */
  readonly givenAt: string;
  /** Absolute path. */
  readonly appFolder: string;
  /** Absolute path of the folder that the server was started in. */
  readonly startFolder: string;
  /** What lies beside the app is its operator's. */
  readonly mayUseNearby: boolean;
  /** As workers will have it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Nobody waits for it any more. */
  readonly stop?: AbortSignal | undefined;
}

export interface InterpreterPlace {
  /** Absolute path of the program; null: nothing is there. */
  readonly program: string | null;
  /** The place, for people. */
  readonly text: string;
  /** What is there, or is said to be, and does not count, and why. */
  readonly warning?: string;
}

/** One after another, so that nothing is looked at that does not count. */
export function* interpreterPlaces(wish: InterpreterWish): Generator<InterpreterPlace> {
  const { given, givenAt, startFolder, env } = wish;
  if (given !== null) {
    const program = given.includes('/') ? existing(resolve(startFolder, given)) : inSearchPath(given, env);
    yield { program, text: `${given} (${givenAt})` };
    return;
  }
  for (const variable of ['VIRTUAL_ENV', 'CONDA_PREFIX']) {
    const folder = env[variable] ?? '';
    if (folder === '') continue;
    const path = join(resolve(folder), 'bin/python');
    const program = existing(path);
    const warning = `${variable} names ${folder}, which has no bin/python: another interpreter is taken`;
    yield { program, text: `${path} (${variable})`, ...(program === null && { warning }) };
  }
  if (wish.mayUseNearby) yield* nearbyPlaces(wish);
  for (const name of ['python3', 'python'])
    yield { program: inSearchPath(name, env), text: `${name} in PATH` };
}

const ENVIRONMENTS = ['.venv', 'venv'];

/** The nearest folder that has one decides; one that is not trusted is passed by, and said. */
function* nearbyPlaces({ appFolder, startFolder }: InterpreterWish): Generator<InterpreterPlace> {
  for (const folder of foldersUpwards(appFolder, startFolder)) {
    for (const environment of ENVIRONMENTS) {
      const path = join(folder, environment);
      const program = existing(join(path, 'bin/python'));
      if (program === null) continue;
      const stranger = [folder, ...partsThatRun(path)].find((each) => !isOwn(statSync(each)));
      if (stranger === undefined) yield { program, text: program };
      else yield passedBy(path, stranger);
    }
  }
  yield { program: null, text: `.venv and venv in ${appFolder} and above` };
}

/** What of an environment decides which code runs, as far as it is there: folders, settings and the interpreter. */
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

/** Such as `lib/python3.11` and `lib/pypy3.10`; none if `library` is no folder. */
function foldersOfVersions(library: string): string[] {
  try {
    const names = readdirSync(library).filter((name) => /^(?:python|pypy)/.test(name));
    return names.map((name) => join(library, name));
  } catch {
    return [];
  }
}

/** The interpreter's file. One that lies elsewhere is the machine's: who made the environment has chosen it. */
function interpreterWithin(environment: string): string[] {
  const program = realpathOf(join(environment, 'bin/python'));
  return program.startsWith(`${realpathOf(environment)}/`) ? [program] : [];
}

function passedBy(environment: string, stranger: string): InterpreterPlace {
  const why = `others may write to ${stranger}`;
  const cure = 'Make it yours alone, or name its interpreter with --python';
  return {
    program: null,
    text: `${environment} (${why})`,
    warning: `${environment} is not used, since ${why}. ${cure}`,
  };
}

/** From the app's folder up to the start folder or the root of the repository, whichever is higher; else just the first. */
export function foldersUpwards(appFolder: string, startFolder: string): string[] {
  const folders: string[] = [];
  for (let folder = appFolder; !folders.includes(folder); folder = dirname(folder)) folders.push(folder);
  const repository = folders.findIndex((folder) => existing(join(folder, '.git')) !== null);
  return folders.slice(0, Math.max(0, repository, folders.indexOf(startFolder)) + 1);
}

/**
 * Nobody but this user and root can have written there. A group counts as others, unless it bears the number of the user,
 * as systems give it that make a group for each: another may have members, also where it is the user's first.
 */
export function isOwn({ uid, gid, mode }: Pick<Stats, 'uid' | 'gid' | 'mode'>): boolean {
  const isOwner = uid === 0 || uid === process.getuid?.();
  const isGroupOfUser = gid === process.getgid?.() && gid === process.getuid?.();
  const isWritable = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !isGroupOfUser);
  return isOwner && !isWritable;
}

/** A link that leads nowhere is there, too: an environment that is broken is said, and not passed by. */
function existing(path: string): string | null {
  try {
    lstatSync(path);
    return path;
  } catch {
    return null;
  }
}

/** The path itself where it leads nowhere. */
function realpathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function inSearchPath(name: string, env: InterpreterWish['env']): string | null {
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
