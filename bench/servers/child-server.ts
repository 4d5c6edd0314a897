/** A server in a process of its own: started, found by the URL it prints on stderr, stopped. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 15_000;
const URL_PATTERN = /http:\/\/(localhost|127\.0\.0\.1):\d+/;

export interface ChildServer {
  readonly url: string;
  readonly pid: number;
  /** Asks the process to end with SIGINT, kills it if it does not, and resolves when it is gone. */
  stop(): Promise<void>;
}

/** Path of a compiled file beside the bench, such as `../front/cli.js`. */
export function compiled(relative: string): string {
  return fileURLToPath(new URL(`../${relative}`, import.meta.url));
}

/** Path of a source file, such as `bench/apps/small.mjs`. */
export function source(relative: string): string {
  return fileURLToPath(new URL(`../../../${relative}`, import.meta.url));
}

/** Resolves when the process has printed its URL. @throws an Error with its stderr if it ends before */
export async function startChildServer(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  program: string = process.execPath,
  cwd?: string,
): Promise<ChildServer> {
  const child = spawn(program, args, {
    cwd,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  });
  const url = await printedUrl(child);
  return { url, pid: child.pid as number, stop: () => stop(child) };
}

async function printedUrl(child: ChildProcess): Promise<string> {
  let text = '';
  const limit = setTimeout(() => child.kill('SIGKILL'), START_LIMIT_MS);
  try {
    return await new Promise((resolve, reject) => {
      child.once('exit', () => reject(new Error(`a server ended before it listened:\n${text}`)));
      child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
        text = (text + chunk).slice(-10_000); // the pipe is read all the time: a full one would stall the server
        const url = URL_PATTERN.exec(text);
        if (url !== null) resolve(url[0].replace('localhost', '127.0.0.1'));
      });
    });
  } finally {
    clearTimeout(limit);
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGINT'); // like Ctrl-C, this stops it without the pause that a SIGTERM grants to load balancers
  const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  await gone;
  clearTimeout(limit);
}
