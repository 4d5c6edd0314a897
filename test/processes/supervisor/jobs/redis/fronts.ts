/** Stores on one Redis, as separate fronts have them, for tests. */
import type { JobStore, KeepLimits } from '../../../../../supervisor/jobs/job-store.js';
import { loadPackages } from '../../../../../supervisor/jobs/redis/load-packages.js';
import { RedisLink } from '../../../../../supervisor/jobs/redis/redis-link.js';
import { RedisStore } from '../../../../../supervisor/jobs/redis/redis-store.js';

export interface Front {
  readonly store: RedisStore & JobStore;
  readonly link: RedisLink;
}

export interface FrontOptions {
  readonly limits?: KeepLimits;
  readonly lockMs?: number;
  readonly database?: number;
}

const LIMITS: KeepLimits = { retentionMs: 60_000, maxBytes: 1e8 };

export async function openFront(port: number, options: FrontOptions = {}): Promise<Front> {
  const { limits = LIMITS, database = 0, ...rest } = options;
  const packages = await loadPackages();
  const place = `127.0.0.1:${port}`;
  const check = (): Promise<void> => Promise.resolve();
  const link = new RedisLink({ packages, url: `redis://${place}/${database}`, place, check });
  const store = new RedisStore({ link, name: 'redis', limits, ...rest });
  await link.open(() => store.onOpen());
  await store.idle();
  return { store, link };
}

/** Forgets all that is in Redis. */
export async function flush(port: number): Promise<void> {
  const { redis } = await loadPackages();
  const client = redis.createClient({ socket: { host: '127.0.0.1', port } });
  await client.connect();
  await client.flushAll();
  client.destroy();
}

/** The time of fronts that do not live any more is over: others take what these have owed. */
export async function forgetFronts(port: number): Promise<void> {
  const { redis } = await loadPackages();
  const client = redis.createClient({ socket: { host: '127.0.0.1', port } });
  await client.connect();
  const names = await client.zRange('banana:owed', 0, -1);
  if (names.length > 0)
    await client.zAdd(
      'banana:owed',
      names.map((value) => ({ score: 0, value })),
    );
  client.destroy();
}
