/** Programs beside Node and npm: a test that needs one is skipped where it is missing, unless all must run. */
import { spawnSync } from 'node:child_process';

interface Program {
  /** Ends with status 0 where the program is there and may do its work. */
  readonly probe: readonly [file: string, ...args: string[]];
  readonly install: string;
  /** It is in no package of Debian: tests that need it are skipped where it is missing, also where all must run. */
  readonly isRare?: true;
}

const PROGRAMS = {
  cc: { probe: ['cc', '--version'], install: 'apt-get install gcc' },
  /** The browser of the tests of the page. */
  chromium: { probe: ['/usr/bin/chromium', '--version'], install: 'apt-get install chromium' },
  curl: { probe: ['curl', '--version'], install: 'apt-get install curl' },
  nginx: { probe: ['nginx', '-v'], install: 'apt-get install nginx-light' },
  /** Mounts, and ports below 1024. */
  root: { probe: ['sh', '-c', 'test "$(id -u)" -eq 0'], install: 'run the tests as root' },
  openssl: { probe: ['openssl', 'version'], install: 'apt-get install openssl' },
  python3: { probe: ['python3', '--version'], install: 'apt-get install python3' },
  /** Version 2, for the Python of the apps; Debian has 1. */
  pydantic: {
    probe: ['python3', '-c', 'import pydantic; pydantic.TypeAdapter'],
    install: 'pip install pydantic',
    isRare: true,
  },
  /** OpenAI's client, which no Debian has. */
  'python-openai': { probe: ['python3', '-c', 'import openai'], install: 'pip install openai', isRare: true },
  prometheus: { probe: ['prometheus', '--version'], install: 'apt-get install prometheus' },
  /** Debian's modules, which its own interpreter has. */
  pytest: {
    probe: ['/usr/bin/python3', '-c', 'import pytest'],
    install: 'apt-get install python3-pytest',
  },
  'python3-numpy': {
    probe: ['/usr/bin/python3', '-c', 'import numpy'],
    install: 'apt-get install --no-install-recommends python3-numpy',
  },
  'python3-redis': {
    probe: ['/usr/bin/python3', '-c', 'import redis'],
    install: 'apt-get install python3-redis',
  },
  'python3-requests': {
    probe: ['/usr/bin/python3', '-c', 'import requests'],
    install: 'apt-get install python3-requests',
  },
  'redis-server': { probe: ['redis-server', '--version'], install: 'apt-get install redis-server' },
  'systemd-analyze': { probe: ['systemd-analyze', '--version'], install: 'apt-get install systemd' },
  setpriv: { probe: ['setpriv', '--version'], install: 'apt-get install util-linux' },
  script: { probe: ['script', '--version'], install: 'apt-get install bsdutils' },
  tar: { probe: ['tar', '--version'], install: 'apt-get install tar' },
  /** For Debian's own Python; what its client sends is replayed without it. */
  tritonclient: {
    probe: ['/usr/bin/python3', '-c', 'import tritonclient.http'],
    install:
      'put src/python/library of github.com/triton-inference-server/client on PYTHONPATH; apt-get install python3-geventhttpclient python3-rapidjson python3-numpy',
    isRare: true,
  },
  /** Linux namespaces, as containers have them; root of its own in each. */
  unshare: {
    probe: ['unshare', '--map-root-user', '--mount', '--pid', '--fork', '--mount-proc', 'true'],
    install: 'apt-get install util-linux, on a Linux that allows namespaces',
  },
  unzip: { probe: ['unzip', '-v'], install: 'apt-get install unzip' },
} satisfies Record<string, Program>;

export type ProgramName = keyof typeof PROGRAMS;

const found = new Map<ProgramName, boolean>();

/**
 * For a test's `skip`: false if every program is there, else one line that names the missing one and how to install it.
 * @throws that line instead if BANANA_TEST_ALL is 1, as .ci/run sets it: there a skip would hide what was not tested.
 */
export function needs(...names: readonly ProgramName[]): string | false {
  const missing = names.filter((name) => !isFound(name));
  if (missing.length === 0) return false;
  const line = missing.map((name) => `${name} is missing: ${PROGRAMS[name].install}`).join('; ');
  const programs: Readonly<Record<ProgramName, Program>> = PROGRAMS;
  const isRare = missing.every((name) => programs[name].isRare === true);
  if (process.env['BANANA_TEST_ALL'] === '1' && !isRare) throw new Error(line);
  return line;
}

function isFound(name: ProgramName): boolean {
  const known = found.get(name);
  if (known !== undefined) return known;
  const [file, ...args] = PROGRAMS[name].probe;
  const works = spawnSync(file, args, { stdio: 'ignore' }).status === 0;
  found.set(name, works);
  return works;
}
