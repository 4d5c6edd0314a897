/** Our server as a user starts it, and its own status. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { compiled, startChildServer, type ChildServer } from './child-server.js';

export interface BananaOptions {
  /** Workers of each model; null: the flags say. */
  readonly workers?: number | null;
  /** Models beside the app, by their names. */
  readonly models?: Readonly<Record<string, string>>;
  /** The key that the server's flags name: `/status` needs it. */
  readonly key?: string;
  /** The content of `banana.json`. */
  readonly config?: object;
  /** Further flags. */
  readonly flags?: readonly string[];
  /** Compiled entry of another build of the server. */
  readonly cli?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** A compiled module of the bench that the front and its workers import before anything else. */
  readonly preload?: string;
}

const READY_LIMIT_MS = 60_000;

/** Resolves when every worker is ready. */
export async function startBanana(app: string, options: BananaOptions = {}): Promise<ChildServer> {
  const {
    workers = 1,
    models = {},
    flags = [],
    env = {},
    preload,
    key,
    config = {},
    cli = compiled('../front/cli.js'),
  } = options;
  const named = Object.entries(models).flatMap(([name, path]) => ['--model', `${name}=${path}`]);
  const counted = workers === null ? [] : ['--workers', String(workers)];
  const args = ['--port', '0', '--gpus', 'none', ...counted, ...named, ...flags];
  const preloadEnv =
    preload === undefined ? {} : { NODE_OPTIONS: `--import=${pathToFileURL(compiled(preload)).href}` };
  const folder = mkdtempSync(join(tmpdir(), 'banana-bench-started-'));
  writeFileSync(join(folder, 'banana.json'), JSON.stringify(config));
  const allEnv = { ...env, ...preloadEnv };
  const server = await startChildServer([cli, app, ...args], allEnv, process.execPath, folder);
  await ready(server.url, key);
  const stop = async (): Promise<void> => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { ...server, stop };
}

export interface Status {
  readonly model: ModelStatus;
  /** A build from before there were several has none. */
  readonly models?: readonly ModelStatus[];
  readonly front: { readonly eventLoopDelayMs: { readonly p99: number } };
}

export interface ModelStatus {
  readonly name: string;
  readonly workers: readonly { readonly pid: number; readonly state: string }[];
  readonly standby: { readonly ready: number };
  readonly scaling: { readonly startMs: number } | null;
}

export async function statusOf(url: string, key = ''): Promise<Status> {
  const headers: Record<string, string> = key === '' ? {} : { 'X-Banana-Api-Key': key };
  return (await (await fetch(`${url}/status`, { headers })).json()) as Status;
}

/** The front, then its workers. */
export async function pidsOf(server: ChildServer): Promise<number[]> {
  const { model } = await statusOf(server.url);
  return [server.pid, ...model.workers.map(({ pid }) => pid)];
}

/** Resolves when every worker of every model is ready. */
export function ready(url: string, key?: string): Promise<void> {
  const isUp = ({ state }: { readonly state: string }): boolean => state === 'idle' || state === 'busy';
  return untilSays(
    url,
    ({ model, models = [model] }) => models.every(({ workers }) => workers.every(isUp)),
    key,
  );
}

/** Resolves when so many workers of the first model stand by. */
export function standing(url: string, count: number): Promise<void> {
  return untilSays(url, ({ model }) => model.standby.ready === count);
}

async function untilSays(url: string, isReady: (status: Status) => boolean, key?: string): Promise<void> {
  const limitMs = performance.now() + READY_LIMIT_MS;
  while (!isReady(await statusOf(url, key))) {
    if (performance.now() > limitMs) throw new Error(`${url} was not ready within ${READY_LIMIT_MS} ms`);
    await delay(20);
  }
}
