/** A model store for one test. */
import { ModelStore } from '../../../supervisor/store/model-store.js';
import { NO_URLS } from '../../../supervisor/options/allowed-urls.js';

/** Closed when the test ends, so that nothing of it stays in the temp folder. `folder` null: there is none. */
export function storeAt(t: { after(undo: () => void): void }, folder: string | null): ModelStore {
  const store = new ModelStore({ folder, allowedUrls: NO_URLS, defaultHandler: null });
  t.after(() => store.close());
  return store;
}
