/** What a program says of itself when it is run as a Python interpreter: bounded in time, and asked once for each program. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { killGroup } from '../../machine/kill-group.js';

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

/** Of what it prints. A program that is no Python may print without end. */
const MOST_CHARS = 100_000;

/** In the words of every Python there is. Without `site`, it takes a fraction of the time. */
const ARGS = [
  '-S',
  '-c',
  'import sys; sys.stdout.write("%s\\n%s" % (".".join(str(n) for n in sys.version_info[:3]), sys.executable or ""))',
];

const asked = new Map<string, Promise<Interpreter>>();

type Environment = Readonly<Record<string, string | undefined>>;

export interface AskingLimits {
  readonly limitMs?: number;
  /** Nobody wants the answer any more. */
  readonly stop?: AbortSignal | undefined;
}

/** The same answer for the same program, as long as nobody writes to it. Rejects with NoInterpreter, or the reason of `stop`. */
export function askInterpreter(
  program: string,
  env: Environment,
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

async function ask(
  program: string,
  env: Environment,
  limitMs: number,
  stop: AbortSignal | undefined,
): Promise<Interpreter> {
  stop?.throwIfAborted();
  const late = AbortSignal.timeout(limitMs);
  const over = AbortSignal.any([late, stop ?? late]);
  const { code, signal, stdout, stderr } = await run(program, env, over).catch((cause: unknown) => {
    stop?.throwIfAborted();
    const problem = late.aborted ? `did not say its version in ${limitMs} ms` : problemOf(cause as Error);
    throw new NoInterpreter(problem, { cause });
  });
  const end = signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
  if (code !== 0) throw new NoInterpreter(`does not run: ${lastWords(stderr) || end}`);
  const [version = '', path = ''] = stdout.split('\n');
  if (!/^\d+\.\d+\.\d+$/.test(version)) throw new NoInterpreter('is no Python');
  return { path: path === '' ? program : path, version };
}

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * In a process group of its own: `over` ends what a shim has started, too, and waits for no process that cannot be killed.
 * Rejects if it cannot be run, or then.
 */
async function run(program: string, env: Environment, over: AbortSignal): Promise<Ended> {
  const child = spawn(program, ARGS, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const closed = once(child, 'close', { signal: over }); // at once: an error that nobody hears would end the server
  // Where no descriptor is free the child has no streams.
  const streams = [child.stdout, child.stderr] as readonly (Readable | undefined)[];
  const [stdout, stderr] = streams.map(beginOf) as [() => string, () => string];
  try {
    const [code, signal] = (await closed) as [number | null, string | null];
    return { code, signal, stdout: stdout(), stderr: stderr() };
  } finally {
    if (over.aborted) {
      if (child.pid !== undefined) killGroup(child.pid, 'SIGKILL');
      for (const stream of streams) stream?.destroy(); // another process may have it
      child.unref();
    }
  }
}

function beginOf(stream: Readable | undefined): () => string {
  let text = '';
  stream?.setEncoding('utf8').on('data', (more: string) => {
    text += more;
    if (text.length > MOST_CHARS) stream.destroy(); // which ends the program
  });
  return () => text;
}

function problemOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'cannot be run: it, or what it is a link to, is not there';
  if (code === 'ELOOP') return 'cannot be run: it is a link that leads back to itself';
  if (code === 'EACCES') return 'cannot be run: it is no program that this user may run';
  return `does not run: ${message}`;
}

/** The last line that names an error: a Python whose library is missing (PYTHONHOME) tells its stack behind that. */
function lastWords(stderr: string): string {
  const lines = stderr.trim().split('\n');
  return (lines.findLast((line) => /^\w+Error\b/.test(line)) ?? lines.at(-1) ?? '').trim();
}
