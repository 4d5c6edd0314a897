/** Loads the packages that only the store in Redis needs: both are optional peers. */
import { configError } from '../../../protocol/errors.js';

export type RedisClient = ReturnType<(typeof import('redis'))['createClient']>;

export interface Packages {
  readonly redis: typeof import('redis');
  readonly bullmq: typeof import('bullmq');
}

/** @throws SERVE_CONFIG, which says what to install */
export async function loadPackages(): Promise<Packages> {
  try {
    const [redis, bullmq] = await Promise.all([import('redis'), import('bullmq')]);
    return { redis, bullmq };
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    throw configError(
      'the store of jobs in Redis needs the packages redis and bullmq: npm install redis bullmq@6.7',
    );
  }
}
