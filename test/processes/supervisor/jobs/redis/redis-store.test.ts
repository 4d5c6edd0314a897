/** The store in Redis: the promises of every store. */
import { after, before } from 'node:test';
import { NO_LISTENER, type KeepLimits } from '../../../../../supervisor/jobs/job-store.js';
import { needs } from '../../../../helpers/needs.js';
import {
  conformance,
  durableConformance,
  type DurableStore,
} from '../../../../supervisor/jobs/conformance.js';
import { followsModel } from '../../../../supervisor/jobs/store-property.js';
import { RedisServer } from '../../../worker/api/store/redis-server.js';
import { flush, forgetFronts, openFront } from './fronts.js';

const isMissing = needs('redis-server');
/** Redis has a clock of its own: no lock may expire while a test runs, however slow it is. */
const LONG_MS = 240_000;

let redis: RedisServer;

if (isMissing === false) {
  before(async () => (redis = await RedisServer.start()));
  after(() => redis.down());
  conformance('redis', async (limits) => {
    await flush(redis.port);
    const { store } = await openFront(redis.port, { limits, lockMs: LONG_MS });
    return { store, idle: () => store.idle(), close: () => store.close() };
  });

  followsModel(
    'redis',
    async (limits) => {
      await flush(redis.port);
      const { store } = await openFront(redis.port, { limits, lockMs: LONG_MS });
      const look = (): Promise<void> => {
        store.onOpen();
        return store.idle();
      };
      return { store, look, idle: () => store.idle(), close: () => store.close() };
    },
    10,
    'due',
  );

  const durable = async (limits: KeepLimits): Promise<DurableStore> => {
    const { store, link } = await openFront(redis.port, { limits, lockMs: LONG_MS });
    return {
      store,
      reopen: async () => {
        store.listener = NO_LISTENER;
        link.close(); // it cannot say that it leaves
        await forgetFronts(redis.port);
        await store.close();
        return durable(limits);
      },
      close: () => store.close(),
    };
  };
  durableConformance('redis', async (limits) => {
    await flush(redis.port);
    return durable(limits);
  });
}
