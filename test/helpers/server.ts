/** Starts the real command on a free port and checks, when it ends, that nothing died or stayed behind unnoticed. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { BudgetStatus } from '../../supervisor/budget/memory-budget.js';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
export const CLI = `${ROOT}dist/front/cli.js`;

export interface StartOptions {
  readonly args?: readonly string[];
  /** Variables beside those of this process; undefined removes one. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** The API key for `/status`, which helpers ask. */
  readonly key?: string;
  /** An installed command instead of this checkout's. */
  readonly command?: string | undefined;
  /** True if the server's address comes from its files, and not from a flag. */
  readonly isAddressGiven?: boolean;
  /** Checked at the end: a restart that no test expects hides a bug. */
  readonly expectedRestarts?: number;
  /** The server is killed when this test ends, however it ends. */
  readonly t?: TestContext;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface WorkerStatus {
  readonly index: number;
  readonly state: string;
  readonly standby: boolean;
  readonly pid: number | null;
  readonly calls: number;
  readonly held: number;
  readonly restarts: number;
  readonly device: string;
  readonly waitsFor: string | null;
  readonly lastExit: {
    readonly how: string;
    readonly why: string;
    readonly code: number | null;
    readonly signal: string | null;
    readonly during: string;
    readonly requestId: string | null;
  } | null;
}

export interface Status {
  readonly state: string;
  readonly replies: Readonly<Record<string, number>>;
  readonly spares: readonly { readonly pid: number; readonly program: string }[];
  readonly memory: BudgetStatus | null;
  readonly jobs: { readonly problem: string | null };
  readonly unsent: { readonly clients: number; readonly bytes: number; readonly maxBytes: number };
  readonly model: ModelStatus;
  readonly models: readonly ModelStatus[];
  readonly front: { readonly rssBytes: number };
}

export interface ModelStatus {
  readonly name: string;
  readonly version: string;
  readonly state: string;
  readonly problem: string | null;
  readonly isDefaultVersion: boolean;
  readonly loadedAtStartup: boolean;
  readonly minWorkers: number;
  readonly maxWorkers: number;
  readonly scaling: {
    readonly changes: readonly { readonly change: string; readonly rule: string }[];
  } | null;
  readonly workers: readonly WorkerStatus[];
  readonly queue: {
    readonly waiting: number;
    readonly arriving: number;
    readonly bytes: number;
    readonly maxCalls: number;
    readonly maxBytes: number;
  };
  readonly inFlight: number;
  readonly standby: { readonly wanted: number; readonly ready: number };
  readonly runMs: { readonly mean: number | null; readonly slow: number | null };
}

export interface Server {
  readonly url: string;
  readonly pid: number;
  readonly process: ChildProcess;
  readonly stdout: () => string;
  /** Undecoded: an app may print anything. */
  readonly stdoutBytes: () => Buffer;
  readonly stderr: () => string;
  status(): Promise<Status>;
  /** Resolves with the first status that satisfies `test`; rejects after `limitMs`. */
  until(test: (status: Status) => boolean, limitMs?: number): Promise<Status>;
  /** Resolves once stdout and stderr together hold `text` or match it. */
  untilPrinted(text: string | RegExp, limitMs?: number): Promise<void>;
  /** Signals, waits for the end, and checks `expectedRestarts` (unless given here) and that no worker is left. */
  stop(signal?: NodeJS.Signals, restarts?: number): Promise<Exit>;
  /** Resolves when the process has ended by itself. */
  readonly ended: Promise<Exit>;
}

/** Every process of this test file that still runs when it ends is killed: a failing test must not leave any. */
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Path of a fixture app in test/fixtures/apps, where it is, uncompiled. */
export function fixture(name: string): string {
  const path = `${ROOT}test/fixtures/apps/${name}`;
  assert.ok(existsSync(path), `fixture ${path} exists`);
  return path;
}

/** Starts the command with `args`, without waiting for anything. */
export function runCommand(args: readonly string[], options: StartOptions = {}): RunningCommand {
  const [file, ...before] = options.command === undefined ? [process.execPath, CLI] : [options.command];
  const child = spawn(file, [...before, ...args], {
    cwd: options.cwd ?? ROOT,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  options.t?.after(() => child.kill('SIGKILL'));
  const [out, err] = [gather(child.stdout), gather(child.stderr)];
  const ended = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve({ code, signal });
    });
  });
  return {
    process: child,
    ended,
    stdoutBytes: out.bytes,
    stdout: out.text,
    stderr: err.text,
  };
}

/** All that a stream has brought. It is joined and decoded once, however often a test looks for its next line. */
export function gather(stream: Readable): { readonly bytes: () => Buffer; readonly text: () => string } {
  let chunks: Buffer[] = [];
  let decoded: string | null = '';
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    decoded = null;
  });
  const bytes = (): Buffer => {
    if (chunks.length !== 1) chunks = [Buffer.concat(chunks)];
    return chunks[0] as Buffer;
  };
  return { bytes, text: () => (decoded ??= bytes().toString()) };
}

export interface RunningCommand {
  readonly process: ChildProcess;
  readonly ended: Promise<Exit>;
  readonly stdoutBytes: () => Buffer;
  readonly stdout: () => string;
  readonly stderr: () => string;
}

export const FREE_PORT = ['--host', '127.0.0.1', '--port', '0'];

/** Starts the server and resolves once its port is open. `app` null: its models have names. */
export async function startServer(app: string | null, options: StartOptions = {}): Promise<Server> {
  const named = app === null ? [] : [app];
  const command = runCommand(
    [...named, ...(options.isAddressGiven === true ? [] : FREE_PORT), ...(options.args ?? [])],
    options,
  );
  const { process: child, ended } = command;
  const printed = (): string => command.stdout() + command.stderr();
  const address = / on (https?:\/\/[^\s"]+)/;
  const untilOpen = eventually(
    () => address.test(command.stderr()),
    90_000,
    () => `it does not listen:\n${printed()}`,
  );
  const early = ended.then(({ code }) => {
    throw new Error(`the server ended with ${code} before it listened:\n${printed()}`);
  });
  await Promise.race([untilOpen, early]);
  early.catch(() => {});
  const url = address.exec(command.stderr())?.[1] as string;
  const headers: Record<string, string> =
    options.key === undefined ? {} : { 'x-banana-api-key': options.key };
  const status = async (): Promise<Status> =>
    (await (await fetch(`${url}/status`, { headers })).json()) as Status;
  const { expectedRestarts = 0 } = options;
  return facadeOf({ ...command, url, process: child, expectedRestarts, status });
}

/** A server for its test, wherever it runs, without the helpers that are the same for all. */
export interface ServerParts extends RunningCommand {
  readonly url: string;
  readonly expectedRestarts: number;
  status(): Promise<Status>;
}

export function facadeOf({ expectedRestarts: expected, ...parts }: ServerParts): Server {
  const { process: child, ended, status } = parts;
  const printed = (): string => parts.stdout() + parts.stderr();
  return {
    ...parts,
    pid: child.pid as number,
    untilPrinted: (text, limitMs = 90_000) =>
      eventually(
        () => (typeof text === 'string' ? printed().includes(text) : text.test(printed())),
        limitMs,
        () => `waiting for ${String(text)} in:\n${printed()}`,
      ),
    until: async (test, limitMs = 90_000) => {
      let last: Status | null = null;
      await eventually(
        async () => test((last = await status())),
        limitMs,
        () => `last status: ${JSON.stringify(last, null, 1)}\n${printed()}`,
      );
      return last as unknown as Status;
    },
    stop: async (signal = 'SIGINT', expectedRestarts = expected) => {
      let workers: readonly WorkerStatus[] = [];
      const restarts = (): number => workers.reduce((sum, worker) => sum + worker.restarts, 0);
      // A caller may know of a death some milliseconds before its restart is counted.
      await eventually(
        async () => {
          workers = (await status()).models.flatMap((model) => model.workers);
          return restarts() >= expectedRestarts;
        },
        60_000,
        () => `${restarts()} restarts of workers, not ${expectedRestarts}\n${printed()}`,
      ).finally(() => child.kill(signal));
      const exit = await ended;
      assert.equal(restarts(), expectedRestarts, `restarts of workers\n${printed()}`);
      const left = workers.flatMap(({ pid }) => (pid !== null && isAlive(pid) ? [pid] : []));
      assert.deepEqual(left, [], 'no worker outlives its server');
      return exit;
    },
  };
}

/**
 * Asks again until true, less often with time, because each question costs CPU. For facts that only another process knows;
 * everything else has an event.
 */
export async function eventually(
  test: () => boolean | Promise<boolean>,
  limitMs: number,
  explain: () => string,
): Promise<void> {
  const endMs = performance.now() + limitMs;
  for (let pauseMs = 10; !(await test()); pauseMs = Math.min(pauseMs * 1.2, 30)) {
    if (performance.now() > endMs) throw new Error(`not so within ${limitMs} ms; ${explain()}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  json<T = unknown>(): T;
}

/** POSTs and reads the whole answer. Strings go as JSON text, bytes as they are. */
export async function call(
  url: string,
  body: string | Uint8Array | null,
  headers: Record<string, string> = { 'content-type': 'application/json' },
  init: RequestInit = {},
): Promise<Answer> {
  const response = await fetch(url, { method: 'POST', body, headers, ...init });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: <T>() => JSON.parse(text) as T };
}

/** Whether a process still runs (a zombie does not). */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    // The state follows the name, which is in parentheses and may hold anything.
    return !/\) Z [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return process.platform !== 'linux';
  }
}
