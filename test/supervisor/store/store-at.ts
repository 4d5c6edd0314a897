/** A model store for one test. */
import { ModelStore } from '../../../supervisor/store/model-store.js';
import { NO_URLS } from '../../../supervisor/options/allowed-urls.js';

/** Closed when the test ends, so that it leaves nothing in the temp folder. `folder` null: without a folder. */
export function storeAt(t: { after(undo: () => void): void }, folder: string | null): ModelStore {
  const store = new ModelStore(folder, { allowedUrls: NO_URLS, defaultHandler: null });
  t.after(() => store.close());
  return store;
}
