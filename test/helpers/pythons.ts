/** The interpreters of Python that are here, of each version that the worker runs on. */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export const PYTHON_VERSIONS: readonly string[] = ['3.8', '3.9', '3.10', '3.11', '3.12', '3.13'];

/** The older half of them: tests of every version are split between two files. */
const OLDER: readonly string[] = ['3.8', '3.9', '3.10'];

export const isOlder = ({ version }: Python): boolean => OLDER.includes(version);

/** Debian's own: other packages of Debian are installed for this one. */
export const DEBIAN_PYTHON = '/usr/bin/python3';

export interface Python {
  /** Such as `3.11`. */
  readonly version: string;
  readonly path: string;
}

/** One for each version, and that of Debian besides. */
export function presentPythons(): Python[] {
  const named = ['python3', ...PYTHON_VERSIONS.map((version) => `python${version}`)];
  const found = new Map<string, Python>();
  for (const program of [DEBIAN_PYTHON, ...named, ...pyenvPythons()]) {
    const python = asked(program);
    if (python === null || !PYTHON_VERSIONS.includes(python.version)) continue;
    const isKnown = [...found.values()].some(({ version }) => version === python.version);
    if (!isKnown || program === DEBIAN_PYTHON) found.set(python.path, python);
  }
  return [...found.values()];
}

/** One for each version but that of `python3`, with which the other tests run. */
export function otherPythons(): Python[] {
  const versions = new Set([asked('python3')?.version]);
  return presentPythons().filter(({ version }) => !versions.has(version) && versions.add(version));
}

/** As pyenv keeps them, whether or not they are in the search path. */
function pyenvPythons(): string[] {
  const folder = join(process.env['PYENV_ROOT'] ?? join(homedir(), '.pyenv'), 'versions');
  try {
    return readdirSync(folder).map((version) => join(folder, version, 'bin/python3'));
  } catch {
    return []; // there is no pyenv
  }
}

function asked(program: string): Python | null {
  const code = 'import sys; print("%d.%d" % sys.version_info[:2]); print(sys.executable)';
  const { status, stdout } = spawnSync(program, ['-S', '-c', code], { encoding: 'utf8' });
  const [version = '', path = ''] = status === 0 ? stdout.split('\n') : [];
  return path === '' ? null : { version, path };
}
