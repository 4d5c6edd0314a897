/** Many clients that register, scale, call and unregister one model at once, and what must be true once they have stopped. */
import { readFileSync, readdirSync } from 'node:fs';
import { request } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import type { ServerHandle } from '../../index.js';
import { eventually } from './server.js';

/** Refusals that a client meets because others change the same model. */
const EXPECTED: ReadonlySet<string> = new Set([
  'SERVE_MODEL_NOT_FOUND',
  'SERVE_VERSION_NOT_FOUND',
  'SERVE_MODEL_CONFLICT',
]);

export interface StormResult {
  /** Number of accepted requests of each operation. */
  readonly accepted: Readonly<Record<string, number>>;
  /** Answers to calls, by status. */
  readonly answers: Readonly<Record<string, number>>;
  /** Whatever a client met that nothing explains. */
  readonly surprises: readonly string[];
}

export interface Storm {
  readonly app: string;
  readonly name: string;
  readonly clients: number;
  readonly ms: number;
}

/** Resolves once every client has stopped and the model is unregistered to its end: each operation was accepted once at least. */
export async function modelStorm(
  server: ServerHandle,
  { app, name, clients, ms }: Storm,
): Promise<StormResult> {
  const accepted: Record<string, number> = { register: 0, scale: 0, unregister: 0 };
  const answers: Record<string, number> = {};
  const surprises: string[] = [];
  const drainTimeoutMs = 3000;
  const operations: Readonly<Record<string, (turn: number) => Promise<unknown>>> = {
    register: () => server.models.register({ name, app }),
    scale: (turn) => server.models.scale({ name }, { min: turn % 3, drainTimeoutMs }).settled,
    call: async () => {
      const status = await statusOf(`${server.url}/models/${name}/`);
      answers[status] = (answers[status] ?? 0) + 1;
    },
    unregister: () => server.models.unregister({ name }, { drainTimeoutMs }).settled,
  };
  const order = ['register', 'scale', 'call', 'scale', 'call', 'call', 'unregister'];
  const endAtMs = performance.now() + ms;
  const client = async (first: number): Promise<void> => {
    for (let turn = first; performance.now() < endAtMs || Object.values(accepted).includes(0); turn += 1) {
      const operation = order[turn % order.length] as string;
      try {
        await operations[operation]?.(turn);
        if (operation in accepted) accepted[operation] = (accepted[operation] ?? 0) + 1;
      } catch (thrown) {
        const { code, message } = thrown as { code?: string; message?: string };
        if (!EXPECTED.has(code ?? '')) surprises.push(`${operation}: ${code} ${message}`);
        await new Promise((resolve) => setImmediate(resolve)); // or a client that is refused at once would starve the others
      }
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, i) => client(i)));
  await endOf(server, name);
  return { accepted, answers, surprises };
}

async function endOf({ models }: ServerHandle, name: string): Promise<void> {
  if (models.describe().every((model) => model.name !== name)) return;
  await models.unregister({ name }, { drainTimeoutMs: 3000 }).settled;
}

/** A connection of its own, gone with the answer: descriptors are counted. */
function statusOf(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request(url, { method: 'POST', agent: false }, (response) => {
      response.resume().once('end', () => resolve(String(response.statusCode)));
    });
    call.once('error', reject).end('{}');
  });
}

/** Counts the system resources of this process, in which the server runs. */
export interface Holdings {
  readonly processes: readonly number[];
  readonly descriptors: number;
  /** Files of this server in the folders for temporary ones. */
  readonly files: readonly string[];
}

export function holdings(): Holdings {
  const tasks = readdirSync(`/proc/self/task`);
  const children = tasks.flatMap((task) =>
    readFileSync(`/proc/self/task/${task}/children`, 'utf8').split(' '),
  );
  return {
    processes: children
      .filter((pid) => pid !== '')
      .map(Number)
      .sort((a, b) => a - b),
    descriptors: readdirSync('/proc/self/fd').length,
    files: readdirSync('/dev/shm').filter((file) => file.startsWith(`banana-serve-${process.pid}-`)),
  };
}

/** Counts them once no connection of this process is open; those of a client that has its answer close a moment later. */
export async function calmHoldings(): Promise<Holdings> {
  const connections = (): number =>
    process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;
  await eventually(
    () => connections() === 0,
    90_000,
    () => `${connections()} connections are still open`,
  );
  return holdings();
}

/**
 * Resolves once nothing is held beyond `before`: what a worker printed last may still be read when it is gone. A process
 * that holds less than before has leaked nothing.
 */
export async function untilNothingHasGrown(before: Holdings): Promise<void> {
  const grown = (): Holdings => {
    const now = holdings();
    return {
      processes: now.processes.filter((pid) => !before.processes.includes(pid)),
      descriptors: Math.max(0, now.descriptors - before.descriptors),
      files: now.files.filter((file) => !before.files.includes(file)),
    };
  };
  await eventually(
    () => isDeepStrictEqual(grown(), { processes: [], descriptors: 0, files: [] }),
    90_000,
    () => `held beyond ${JSON.stringify(before)}: ${JSON.stringify(grown())}`,
  );
}
