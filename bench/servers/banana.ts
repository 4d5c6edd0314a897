/** Our server as a user starts it, and what it says of itself. */
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { compiled, startChildServer, type ChildServer } from './child-server.js';

export interface BananaOptions {
  readonly workers?: number;
  /** Compiled entry of another build of the server. */
  readonly cli?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** A compiled module of the bench that the front and its workers import before anything else. */
  readonly preload?: string;
}

const READY_LIMIT_MS = 60_000;

/** Resolves when every worker is ready. */
export async function startBanana(app: string, options: BananaOptions = {}): Promise<ChildServer> {
  const { workers = 1, env = {}, preload, cli = compiled('../supervisor/cli.js') } = options;
  const args = ['--port', '0', '--gpus', 'none', '--workers', String(workers)];
  const preloadEnv =
    preload === undefined ? {} : { NODE_OPTIONS: `--import=${pathToFileURL(compiled(preload)).href}` };
  const server = await startChildServer([cli, app, ...args], {
    ...env,
    ...preloadEnv,
  });
  await ready(server.url);
  return server;
}

export interface Status {
  readonly model: { readonly workers: readonly { readonly pid: number; readonly state: string }[] };
  readonly front: { readonly eventLoopDelayMs: { readonly p99: number } };
}

export async function statusOf(url: string): Promise<Status> {
  return (await (await fetch(`${url}/status`)).json()) as Status;
}

/** The front, then its workers. */
export async function pidsOf(server: ChildServer): Promise<number[]> {
  const { model } = await statusOf(server.url);
  return [server.pid, ...model.workers.map(({ pid }) => pid)];
}

async function ready(url: string): Promise<void> {
  const limitMs = performance.now() + READY_LIMIT_MS;
  const isUp = ({ state }: { readonly state: string }): boolean => state === 'idle' || state === 'busy';
  while (!(await statusOf(url)).model.workers.every(isUp)) {
    if (performance.now() > limitMs) throw new Error(`${url} was not ready within ${READY_LIMIT_MS} ms`);
    await delay(20);
  }
}
