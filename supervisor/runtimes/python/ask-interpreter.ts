/** What a program says of itself when it is run as a Python interpreter: bounded in time, and asked once for each program. */
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';

export interface Interpreter {
  /** Absolute path: of the interpreter itself where the program that was found is a shim in front of it. */
  readonly path: string;
  /** Such as `3.11.7`. */
  readonly version: string;
}

/** The program does not run, or is no Python. The message says why, as a clause. */
export class NoInterpreter extends Error {}

/** Shims look for versions in many places; a network may be among them. */
const LIMIT_MS = 10_000;

/** In the words of every Python there is. Without `site`, it takes a fraction of the time. */
const ARGS = [
  '-S',
  '-c',
  'import sys; sys.stdout.write("%s\\n%s" % (".".join(str(n) for n in sys.version_info[:3]), sys.executable or ""))',
];

const asked = new Map<string, Promise<Interpreter>>();

/** The same answer for the same program, as long as nobody writes to it. Rejects with NoInterpreter. */
export function askInterpreter(
  program: string,
  env: Readonly<Record<string, string | undefined>>,
  limitMs = LIMIT_MS,
): Promise<Interpreter> {
  const { mtimeMs = 0, ino = 0 } = statSync(program, { throwIfNoEntry: false }) ?? {};
  const key = `${ino} ${mtimeMs} ${program}`;
  const known = asked.get(key);
  if (known !== undefined) return known;
  const answer = ask(program, env, limitMs);
  asked.set(key, answer);
  answer.catch(() => asked.delete(key)); // whoever has mended it may ask again
  return answer;
}

function ask(
  program: string,
  env: Readonly<Record<string, string | undefined>>,
  limitMs: number,
): Promise<Interpreter> {
  return new Promise((resolve, reject) => {
    const options = { env, timeout: limitMs, killSignal: 'SIGKILL', encoding: 'utf8' } as const;
    const child = execFile(program, ARGS, options, (error, stdout, stderr) => {
      const [version = '', path = ''] = stdout.split('\n');
      if (error === null && /^\d+\.\d+\.\d+$/.test(version))
        resolve({ path: path === '' ? program : path, version });
      else reject(new NoInterpreter(error === null ? 'is no Python' : problemOf(error, stderr, limitMs)));
    });
    child.stdin?.end();
  });
}

type Failure = Error & { readonly code?: number | string | null; readonly killed?: boolean };

function problemOf({ code, killed, message }: Failure, stderr: string, limitMs: number): string {
  if (code === 'ENOENT') return 'cannot be run: it, or what it is a link to, is not there';
  if (code === 'EACCES') return 'cannot be run: it is no program that this user may run';
  if (killed === true) return `did not say its version in ${limitMs} ms`;
  const said = stderr.trim().split('\n').at(-1) ?? '';
  return `does not run: ${said === '' ? message.trim().split('\n')[0] : said}`;
}
