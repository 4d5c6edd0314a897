/** Opens the store of jobs that an operator has chosen. Each kind is loaded only if it is used. */
import { resolve } from 'node:path';
import { configError, describeThrown } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { within } from '../machine/limit-timer.js';
import type { JobsPlace } from '../options/value-forms.js';
import { formatMs } from '../options/units.js';
import type { JobStore, KeepLimits } from './job-store.js';

export interface JobStoreOptions {
  readonly place: JobsPlace;
  /** Null: the default of this kind of store. */
  readonly retentionMs: number | null;
  readonly maxBytes: number | null;
  /** Folder of relative paths. */
  readonly cwd: string;
}

/** Longest time to open a store on a disk: it reads all jobs first. */
const LOCAL_LIMIT_MS = 5 * 60_000;

const MINUTE = 60_000;
const MIB = 1024 ** 2;

const MEMORY_LIMITS: KeepLimits = { retentionMs: 15 * MINUTE, maxBytes: 256 * MIB };
const DURABLE_LIMITS: KeepLimits = { retentionMs: 24 * 60 * MINUTE, maxBytes: 1024 * MIB };

/** @throws SERVE_CONFIG if the store cannot be used, with the reason and the cure */
export async function openJobStore(options: JobStoreOptions): Promise<JobStore> {
  const { place, cwd } = options;
  const limits = keepLimits(options);
  switch (place.in) {
    case 'memory': {
      const { MemoryStore } = await import('./memory-store.js');
      return new MemoryStore(limits);
    }
    case 'redis': {
      const { openRedisStore } = await import('./redis/open-redis-store.js');
      return explained(openRedisStore(place.url, limits)); // it has a limit of its own, for the connection alone
    }
    case 'local': {
      const folder = resolve(cwd, place.folder);
      const { LocalStore } = await import('./local/local-store.js');
      return inTime(LocalStore.open(folder, limits), LOCAL_LIMIT_MS);
    }
  }
}

/** The limits that the operator has given, else the defaults of this kind of store. */
export function keepLimits({ place, retentionMs, maxBytes }: Omit<JobStoreOptions, 'cwd'>): KeepLimits {
  const usual = place.in === 'memory' ? MEMORY_LIMITS : DURABLE_LIMITS;
  return { retentionMs: retentionMs ?? usual.retentionMs, maxBytes: maxBytes ?? usual.maxBytes };
}

/** A store that is opened too late is closed. @throws SERVE_CONFIG */
async function inTime(opening: Promise<JobStore>, limitMs: number): Promise<JobStore> {
  const store = await explained(within(limitMs, opening));
  if (store !== null) return store;
  void opening.then((late) => late.close()).catch(() => {});
  throw configError(`--jobs: the store of jobs was not open after ${formatMs(limitMs)}.`);
}

/** @throws SERVE_CONFIG */
async function explained<T>(opening: Promise<T>): Promise<T> {
  try {
    return await opening;
  } catch (cause) {
    throw configError(`--jobs: ${asSentence(describeThrown(cause).message)}`);
  }
}
