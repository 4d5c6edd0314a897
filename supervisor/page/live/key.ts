/** The API keys of the person before the page, for calls and for managing models: kept for this tab, never in an address. */

export const KEY_HEADER = 'X-Banana-Api-Key';

const NAMES = { calls: 'banana-serve-key', management: 'banana-serve-management-key' } as const;
type Use = keyof typeof NAMES;

/** Null where the browser forbids pages to store anything: then a reload forgets the keys. */
const storage = ((): Storage | null => {
  try {
    return window.sessionStorage;
  } catch {
    return null;
  }
})();

const keys: Record<Use, string> = {
  calls: storage?.getItem(NAMES.calls) ?? '',
  management: storage?.getItem(NAMES.management) ?? '',
};

/** Empty if there is none. */
export function storedKey(use: Use): string {
  return keys[use];
}

/**
 * A sign that no key has, such as one that is invisible and came along with a copied key, becomes `?`: browsers send no such
 * header, and the server is to say that it does not know the key.
 */
export function storeKey(use: Use, typed: string): void {
  const key = typed.replace(/[^\x21-\x7e]/g, '?');
  keys[use] = key;
  if (key === '') storage?.removeItem(NAMES[use]);
  else storage?.setItem(NAMES[use], key);
  if (use === 'calls' && key === '') storeKey('management', ''); // forgets everything
}

/** Requests that manage models have the key of calls where they take no other. */
export function keyHeaders(use: Use = 'calls'): Record<string, string> {
  const key = keys[use] === '' ? keys.calls : keys[use];
  return key === '' ? {} : { [KEY_HEADER]: key };
}

/** Subprotocols of a WebSocket: it can have no header. The first is for the server to select. */
export function keyProtocols(): string[] {
  const encoded = btoa(keys.calls).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return ['banana-serve', ...(encoded === '' ? [] : [`banana-key.${encoded}`])];
}
