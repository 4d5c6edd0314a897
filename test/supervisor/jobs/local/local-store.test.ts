/** The local store: the promises of every store, and its own. */
import { conformance } from '../conformance.js';
import { openHere, scratch } from './tables.js';

conformance('local', async (limits) => {
  const store = await openHere(scratch(), limits);
  return { store, close: () => store.close() };
});
