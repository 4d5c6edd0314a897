/** The API key of the person before the page: kept for this tab, never in an address. */

const NAME = 'banana-serve-key';

export const KEY_HEADER = 'X-Banana-Api-Key';

/** Null where the browser forbids pages to store anything: then a reload forgets the key. */
const storage = ((): Storage | null => {
  try {
    return window.sessionStorage;
  } catch {
    return null;
  }
})();

let current = storage?.getItem(NAME) ?? '';

/** Empty if there is none. */
export function storedKey(): string {
  return current;
}

/**
 * A sign that no key has, such as one that is invisible and came along with a copied key, becomes `?`: browsers send no such
 * header, and the server is to say that it does not know the key.
 */
export function storeKey(typed: string): void {
  const key = typed.replace(/[^\x21-\x7e]/g, '?');
  current = key;
  if (key === '') storage?.removeItem(NAME);
  else storage?.setItem(NAME, key);
}

export function keyHeaders(): Record<string, string> {
  const key = storedKey();
  return key === '' ? {} : { [KEY_HEADER]: key };
}

/** Subprotocols of a WebSocket: it can have no header. The first is for the server to select. */
export function keyProtocols(): string[] {
  const bytes = new TextEncoder().encode(storedKey());
  const encoded = btoa(String.fromCharCode(...bytes));
  const base64url = encoded.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return ['banana-serve', ...(base64url === '' ? [] : [`banana-key.${base64url}`])];
}
