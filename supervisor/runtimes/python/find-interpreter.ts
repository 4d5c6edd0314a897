/** Finds the interpreter of an app: the first existing one (`places.ts`), which must run and be new enough. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { configError } from '../../../protocol/errors.js';
import { killGroup } from '../../machine/processes.js';
import type { AppSetting, WorkerProgram } from '../runtime.js';
import { interpreterPlaces, type InterpreterPlace } from './places.js';

/** The oldest version that the worker supports. */
const LEAST = '3.8';

/**
 * `app`: for errors. `warnings`: environments that exist but were not used, with reasons. @throws SERVE_CONFIG with one line
 * that lists all attempts, or the reason of `stop`
 */
export async function findInterpreter(
  app: string,
  setting: AppSetting,
): Promise<Interpreter & { readonly warnings: readonly string[] }> {
  const { env, stop, resolved } = setting;
  const given = resolved.options.python;
  const tried: InterpreterPlace[] = [];
  for (const place of interpreterPlaces(app, setting)) {
    tried.push(place);
    if (place.program === null) continue;
    const answer = askInterpreter(place.program, env, stop);
    const found = await answer.catch((problem: unknown) => problem as Error);
    if ('version' in found && isNewEnough(found.version))
      return { ...found, warnings: tried.flatMap(({ warning = [] }) => warning) };
    if (!('version' in found) && !(found instanceof NoInterpreter)) throw found;
    const what = 'version' in found ? `is Python ${found.version}` : found.message;
    throw configError(
      `${app}: it needs Python ${LEAST} or newer, and ${textOf(place)} ${what}. ${cureOf(tried, given)}`,
    );
  }
  const where = given === null ? 'none was found' : `there is no ${tried.map(textOf).join('')}`;
  throw configError(`${app}: it needs Python ${LEAST} or newer, and ${where}. ${cureOf(tried, given)}`);
}

function isNewEnough(version: string): boolean {
  return version.localeCompare(LEAST, 'en', { numeric: true }) >= 0;
}

/** The place, with the path that was found there. */
function textOf({ program, text }: InterpreterPlace): string {
  return program === null || text.startsWith(program) ? text : `${program} (${text})`;
}

function cureOf(tried: readonly InterpreterPlace[], given: string | null): string {
  if (given !== null) return 'Name another, such as --python /usr/bin/python3, or leave it out.';
  return `Tried: ${tried.map(textOf).join(', ')}. Install one, or name it: --python /path/to/python3.`;
}

/** Its path is absolute; if the program is a shim, that of the interpreter behind it. */
type Interpreter = NonNullable<WorkerProgram['interpreter']>;

/** The program does not run, or is not Python. The message is a clause with the reason. */
class NoInterpreter extends Error {}

/** Long, because shims search many folders, perhaps over a network. */
const LIMIT_MS = 10_000;

/** Limit of the output: a program that is not Python may print without end. */
const MOST_CHARS = 100_000;

/** Runs on every version of Python. `-S` skips `site`, which takes most of the time. */
const ARGS = [
  '-S',
  '-c',
  'import sys; sys.stdout.write("%s\\n%s" % (".".join(str(n) for n in sys.version_info[:3]), sys.executable or ""))',
];

const asked = new Map<string, Promise<Interpreter>>();

/**
 * Runs a program as a Python interpreter to learn its version and path. Answers are cached until the program's file changes.
 * `stop` cancels the question. Rejects with NoInterpreter, or the reason of `stop`.
 */
export function askInterpreter(
  program: string,
  env: AppSetting['env'],
  stop?: AbortSignal,
  limitMs = LIMIT_MS,
): Promise<Interpreter> {
  const key = `${stateOf(program)} ${program}`;
  const known = asked.get(key);
  if (known !== undefined) return known;
  const answer = ask(program, env, limitMs, stop);
  asked.set(key, answer);
  answer.catch(() => asked.delete(key)); // failures are not cached
  return answer;
}

/** Changes when the program's file changes; empty if it cannot be read, which running it reports better. */
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
  env: AppSetting['env'],
  limitMs: number,
  stop: AbortSignal | undefined,
): Promise<Interpreter> {
  stop?.throwIfAborted();
  const late = AbortSignal.timeout(limitMs);
  const over = AbortSignal.any([late, stop ?? late]);
  const { code, signal, stdout, stderr } = await run(program, env, over).catch((cause: unknown) => {
    stop?.throwIfAborted();
    const problem = late.aborted ? `did not report its version in ${limitMs} ms` : problemOf(cause as Error);
    throw new NoInterpreter(problem, { cause });
  });
  const end = signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
  if (code !== 0) throw new NoInterpreter(`does not run: ${errorLine(stderr) || end}`);
  const [version = '', path = ''] = stdout.split('\n');
  if (!/^\d+\.\d+\.\d+$/.test(version)) throw new NoInterpreter('is not Python');
  return { path: path === '' ? program : path, version };
}

/**
 * Runs the program in its own process group, so that `over` also ends processes that a shim has started; it does not wait
 * for a process that cannot be killed. Rejects if the program cannot be run, or when `over` aborts.
 */
async function run(program: string, env: AppSetting['env'], over: AbortSignal) {
  const child = spawn(program, ARGS, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const closed = once(child, 'close', { signal: over }); // before any await: an unhandled 'error' event would end the server
  // Without a free file descriptor the child has no streams.
  const streams = [child.stdout, child.stderr] as readonly (Readable | undefined)[];
  const [stdout, stderr] = streams.map(beginOf) as [() => string, () => string];
  try {
    const [code, signal] = (await closed) as [number | null, string | null];
    return { code, signal, stdout: stdout(), stderr: stderr() };
  } finally {
    if (over.aborted) {
      if (child.pid !== undefined) killGroup(child.pid, 'SIGKILL');
      for (const stream of streams) stream?.destroy(); // another process may keep it open
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
  if (code === 'ENOENT') return 'cannot be run: it, or the target of its link, does not exist';
  if (code === 'ELOOP') return 'cannot be run: its symbolic links form a loop';
  if (code === 'EACCES') return 'cannot be run: this user may not execute it';
  return `does not run: ${message}`;
}

/** The last line with an error's name, else the last line: without its library (PYTHONHOME), Python prints a stack after the error. */
function errorLine(stderr: string): string {
  const lines = stderr.trim().split('\n');
  return (lines.findLast((line) => /^\w+Error\b/.test(line)) ?? lines.at(-1) ?? '').trim();
}
