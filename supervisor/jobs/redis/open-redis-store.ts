/** Opens the store of jobs in Redis. */
import { within } from '../../machine/limit-timer.js';
import type { KeepLimits } from '../job-store.js';
import { checkRedis } from './check-redis.js';
import { loadPackages } from './load-packages.js';
import { RedisLink } from './redis-link.js';
import { RedisStore } from './redis-store.js';

/** A start waits so long for a Redis that is away, then goes on without it. The imports before are this process's own time. */
const PATIENCE_MS = 4000;

/**
 * Resolves with the store, which fails until Redis is there.
 * @throws if Redis answers but cannot be used; SERVE_CONFIG if packages are missing
 */
export async function openRedisStore(url: string, limits: KeepLimits): Promise<RedisStore> {
  const packages = await loadPackages();
  const place = placeOf(url);
  const warned = new Set<string>();
  const warn = (text: string): void => {
    if (!warned.has(text)) store.tell('onWarning', text);
    warned.add(text);
  };
  const link = new RedisLink({
    packages,
    url,
    place,
    check: async (client) => {
      for (const text of await checkRedis(client)) warn(text);
    },
  });
  const store = new RedisStore({ link, name: `redis (${place})`, limits });
  const opened = link.open(() => store.onOpen()).then(() => true);
  try {
    if ((await within(PATIENCE_MS, opened)) === null) store.tell('onFailed', link.problem);
  } catch (error) {
    await store.close();
    throw error;
  }
  opened.catch(() => {}); // the store tells of it
  return store;
}

/** The address without user, password and query. */
function placeOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}${pathname === '/' ? '' : pathname}`;
}
