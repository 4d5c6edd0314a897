/** The local store: the promises of every store, and its own. */
import { conformance } from '../conformance.js';
import { followsModel, type TestedStore } from '../store-property.js';
import type { KeepLimits } from '../../../../supervisor/jobs/job-store.js';
import { copyOf, openHere, scratch } from './tables.js';

conformance('local', async (limits) => {
  const store = await openHere(scratch(), limits);
  return { store, close: () => store.close() };
});

async function open(folder: string, limits: KeepLimits): Promise<TestedStore> {
  const store = await openHere(folder, limits);
  return {
    store,
    crash: async () => {
      const copy = copyOf(folder);
      await store.close();
      return open(copy, limits);
    },
    close: () => store.close(),
  };
}

followsModel('local', (limits) => open(scratch(), limits), 40);
