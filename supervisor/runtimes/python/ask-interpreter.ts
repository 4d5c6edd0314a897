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

export interface AskingLimits {
  readonly limitMs?: number;
  /** Nobody wants the answer any more. */
  readonly stop?: AbortSignal | undefined;
}

/** The same answer for the same program, as long as nobody writes to it. Rejects with NoInterpreter, or the reason of `stop`. */
export function askInterpreter(
  program: string,
  env: Readonly<Record<string, string | undefined>>,
  { limitMs = LIMIT_MS, stop }: AskingLimits = {},
): Promise<Interpreter> {
  const key = `${stateOf(program)} ${program}`;
  const known = asked.get(key);
  if (known !== undefined) return known;
  const answer = ask(program, env, limitMs, stop);
  asked.set(key, answer);
  answer.catch(() => asked.delete(key)); // whoever has mended it may ask again
  return answer;
}

/** Another once somebody has written to the program; empty where it cannot be looked at, which running it tells better. */
function stateOf(program: string): string {
  try {
    const { mtimeMs, ino } = statSync(program);
    return `${ino} ${mtimeMs}`;
  } catch {
    return '';
  }
}

function ask(
  program: string,
  env: Readonly<Record<string, string | undefined>>,
  limitMs: number,
  stop: AbortSignal | undefined,
): Promise<Interpreter> {
  return new Promise((resolve, reject) => {
    const refuse = (why: string): void => reject(new NoInterpreter(why));
    const options = { env, timeout: limitMs, signal: stop, killSignal: 'SIGKILL', encoding: 'utf8' } as const;
    try {
      const child = execFile(program, ARGS, options, (error, stdout, stderr) => {
        const [version = '', path = ''] = stdout.split('\n');
        if (stop?.aborted === true) reject(stop.reason as Error);
        else if (error !== null) refuse(problemOf(error, stderr, limitMs));
        else if (/^\d+\.\d+\.\d+$/.test(version)) resolve({ path: path === '' ? program : path, version });
        else refuse('is no Python');
      });
      child.stdin?.end();
    } catch (thrown) {
      refuse(problemOf(thrown as Error, '', limitMs)); // the callback is told of the commoner errors only
    }
  });
}

type Failure = Error & {
  readonly code?: number | string | null;
  readonly signal?: string | null;
  readonly killed?: boolean;
};

function problemOf(failure: Failure, stderr: string, limitMs: number): string {
  const { code, killed } = failure;
  if (code === 'ENOENT') return 'cannot be run: it, or what it is a link to, is not there';
  if (code === 'ELOOP') return 'cannot be run: it is a link that leads back to itself';
  if (code === 'EACCES') return 'cannot be run: it is no program that this user may run';
  if (killed === true) return `did not say its version in ${limitMs} ms`;
  return `does not run: ${lastWords(stderr) || endOf(failure)}`;
}

/** The last line that names an error: a Python whose library is missing (PYTHONHOME) tells its stack behind that. */
function lastWords(stderr: string): string {
  const lines = stderr.trim().split('\n');
  return (lines.findLast((line) => /^\w+Error\b/.test(line)) ?? lines.at(-1) ?? '').trim();
}

/** How a program ended that said nothing; why it was not even started, if so. */
function endOf({ code, signal, message }: Failure): string {
  if (typeof signal === 'string') return `it was ended by ${signal}`;
  return typeof code === 'number' ? `it ended with exit code ${code}` : message;
}
