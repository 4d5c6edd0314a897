/**
 * Lets this process import TypeScript, through tsx with the app's own tsconfig: Node's type stripping supports neither
 * enums nor path aliases.
 */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';

/** Preloaded into the Node processes that this one starts. */
const CHILD_PRELOAD = fileURLToPath(new URL('./typescript-child.cjs', import.meta.url));

/**
 * `folder` is the folder of the app; the nearest tsconfig.json from there upwards is used. Node processes that this one
 * starts can run files in TypeScript, too.
 */
export async function registerTypeScript(folder: string): Promise<void> {
  const [cjs, esm] = await loadTsx();
  const tsconfig = nearestTsconfig(folder);
  const restore = setEnvironment({
    ...cacheEnvironment(), // for the thread that it starts
    TSX_TSCONFIG_PATH: tsconfig ?? process.env['TSX_TSCONFIG_PATH'], // of CommonJS, from the environment only
  });
  try {
    cjs.register();
    esm.register(tsconfig === null ? undefined : { tsconfig });
  } finally {
    restore(); // programs that the app starts must not inherit it
  }
  passToProcesses();
  explainThreads();
}

/** `fork` takes the arguments of this process, whatever environment it is given; `spawn` takes only the environment. */
function passToProcesses(): void {
  if (!process.execArgv.includes(CHILD_PRELOAD)) process.execArgv.push('--require', CHILD_PRELOAD);
  const before = process.env['NODE_OPTIONS'] ?? '';
  const option = `--require ${JSON.stringify(CHILD_PRELOAD)}`; // in quotes, as the path may have spaces
  if (!before.includes(option)) process.env['NODE_OPTIONS'] = `${before} ${option}`.trim();
}

/** Threads load files without tsx: their error says what to do. A newer Node runs files whose types it can strip. */
function explainThreads(): void {
  if (Object.hasOwn(Worker.prototype, 'emit')) return;
  const { emit } = Worker.prototype;
  Worker.prototype.emit = function (this: Worker, name: string, ...given: unknown[]): boolean {
    const [error] = given;
    if (name === 'error' && isUnreadTypeScript(error)) addCure(error);
    return emit.call(this, name, ...given);
  };
}

const THREAD_CURE =
  'Threads cannot load this file in TypeScript: write it in JavaScript (.mjs), compile it, or start it with fork().';

/** The log shows the stack, which has the message as it was. In Node 26 it cannot be assigned. */
function addCure(error: Error): void {
  const message = `${error.message}. ${THREAD_CURE}`;
  const stack = error.stack?.replace(error.message, () => message);
  for (const [name, value] of Object.entries({ message, stack }))
    Object.defineProperty(error, name, { value, configurable: true, writable: true });
}

function isUnreadTypeScript(error: unknown): error is Error {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') return true;
  return code === 'ERR_UNKNOWN_FILE_EXTENSION' && / "\.[mc]?ts" /.test(String(message));
}

/** Loads what `registerTypeScript` needs; a failure is left to that. */
export async function preloadTypeScript(): Promise<void> {
  await loadTsx().catch(() => {});
}

type Tsx = [typeof import('tsx/cjs/api'), typeof import('tsx/esm/api')];

let tsx: Promise<Tsx> | null = null;

function loadTsx(): Promise<Tsx> {
  return (tsx ??= importTsx());
}

/** tsx reads from the environment, as it is imported, whether it may write a cache. */
async function importTsx(): Promise<Tsx> {
  const restore = setEnvironment(cacheEnvironment());
  try {
    return await Promise.all([import('tsx/cjs/api'), import('tsx/esm/api')]);
  } finally {
    restore();
  }
}

function cacheEnvironment(): Readonly<Record<string, string | undefined>> {
  return { TSX_DISABLE_CACHE: hasCacheFolder() ? process.env['TSX_DISABLE_CACHE'] : '1' };
}

function nearestTsconfig(folder: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    const candidate = join(at, 'tsconfig.json');
    if (existsSync(candidate)) return candidate;
    if (at === dirname(at)) return null;
  }
}

/**
 * Whether tsx has a folder for its cache. It fails if the folder cannot be created because the disk is full or
 * read-only; a file that it cannot write there does not matter. Not `recursive`: Node 20 never returns from that in a
 * file system that allows no new folders, such as /proc.
 */
function hasCacheFolder(): boolean {
  const folder = join(tmpdir(), `tsx-${process.geteuid?.() ?? ''}`);
  try {
    mkdirSync(folder);
    return true;
  } catch {
    return existsSync(folder) && statSync(folder).isDirectory();
  }
}

/** Returns a function that restores the old values. */
function setEnvironment(values: Readonly<Record<string, string | undefined>>): () => void {
  const before = Object.entries(values).map(([name]) => [name, process.env[name]] as const);
  for (const [name, value] of Object.entries(values)) setVariable(name, value);
  return () => before.forEach(([name, value]) => setVariable(name, value));
}

function setVariable(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}
