/** A model store, served by the real command or in the process of the test, whose models are managed over HTTP. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { startHere } from './here.js';
import { Management } from './managed-server.js';
import { ROOT, isAlive, startServer, type Server, type StartOptions } from './server.js';

export interface ManagedCommand {
  readonly server: Server;
  readonly management: Management;
}

/** `store`: the fixture apps, unless another folder is given. */
export async function startManagedCommand(
  t: TestContext,
  options: StartOptions = {},
  store = `${ROOT}test/fixtures/apps`,
): Promise<ManagedCommand> {
  const server = await startServer(null, { ...options, t, args: argsOf(options, store) });
  return { server, management: await managementOf(server) };
}

/** As `startManagedCommand`, in the process of the test. */
export async function startManagedHere(
  t: TestContext,
  options: Omit<StartOptions, 'command' | 'key'>,
  store: string,
): Promise<ManagedCommand> {
  const server = await startHere(null, { ...options, t, args: argsOf(options, store) });
  return { server, management: await managementOf(server) };
}

function argsOf({ args = [] }: StartOptions, store: string): string[] {
  return ['--model-store', store, '--management-port', '0', ...args];
}

/** The two listeners of a server that was started with `--management-port`. */
export async function managementOf(server: Server): Promise<Management> {
  const line = /the management API is on (http:[^\s"]+)/;
  await server.untilPrinted(line);
  const url = line.exec(server.stderr())?.[1];
  assert.ok(url !== undefined);
  return new Management(server.url, url);
}

/** The workers of a server as the kernel lists them: its children, without the guard that outlives it. In ascending order. */
export function workerProcesses({ pid }: Pick<Server, 'pid'>): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' '),
  );
  const pids = children.filter((child) => child !== '').map(Number);
  return pids.filter((child) => isAlive(child) && !isHelper(child)).sort((a, b) => a - b);
}

/** Whether this process of the front is no worker: it guards orphans, or removes a folder. */
function isHelper(pid: number): boolean {
  try {
    return /orphan-guard|folder-removal-process/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
  } catch {
    return false; // it has ended meanwhile
  }
}
