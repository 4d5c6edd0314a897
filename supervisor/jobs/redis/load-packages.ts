/** Loads the packages that only the store in Redis needs: both are optional peers. */
import { configError } from '../../../protocol/errors.js';

export type RedisClient = ReturnType<(typeof import('redis'))['createClient']>;

/** Scripts of BullMQ that ours call. */
export type BullScripts = Readonly<
  Record<'moveToActive' | 'moveStalledJobsToWait', { readonly content: string }>
>;

export interface Packages {
  readonly redis: typeof import('redis');
  readonly bull: BullScripts;
}

/** The package has no types for it; the range of its versions is pinned, and tested. */
const BULL_SCRIPTS: string = 'bullmq/dist/cjs/scripts/index.js';

/** @throws SERVE_CONFIG, which says what to install */
export async function loadPackages(): Promise<Packages> {
  try {
    const [redis, bull] = await Promise.all([import('redis'), import(BULL_SCRIPTS) as Promise<BullScripts>]);
    return { redis, bull };
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    throw configError(
      'the store of jobs in Redis needs the packages redis and bullmq: npm install redis bullmq@6.7',
    );
  }
}
