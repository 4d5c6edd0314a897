/** The API key of the person before the page: kept for this tab, never in an address. */

const NAME = 'banana-serve-key';
const MANAGEMENT_NAME = 'banana-serve-management-key';

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
let management = storage?.getItem(MANAGEMENT_NAME) ?? '';

/** Empty if there is none. */
export function storedKey(): string {
  return current;
}

/**
 * A sign that no key has, such as one that is invisible and came along with a copied key, becomes `?`: browsers send no such
 * header, and the server is to say that it does not know the key.
 */
export function storeKey(typed: string): void {
  current = typed.replace(/[^\x21-\x7e]/g, '?');
  store(NAME, current);
  if (current === '') storeManagementKey(''); // forgets everything
}

/** Kept beside the key of calls, where managing models takes another one. */
export function storeManagementKey(typed: string): void {
  management = typed.replace(/[^\x21-\x7e]/g, '?');
  store(MANAGEMENT_NAME, management);
}

export function storedManagementKey(): string {
  return management;
}

function store(name: string, key: string): void {
  if (key === '') storage?.removeItem(name);
  else storage?.setItem(name, key);
}

export function keyHeaders(): Record<string, string> {
  return headersOf(current);
}

/** The headers of a request that manages models. */
export function managementHeaders(): Record<string, string> {
  return headersOf(management === '' ? current : management);
}

function headersOf(key: string): Record<string, string> {
  return key === '' ? {} : { [KEY_HEADER]: key };
}

/** Subprotocols of a WebSocket: it can have no header. The first is for the server to select. */
export function keyProtocols(): string[] {
  const bytes = new TextEncoder().encode(storedKey());
  const encoded = btoa(String.fromCharCode(...bytes));
  const base64url = encoded.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return ['banana-serve', ...(base64url === '' ? [] : [`banana-key.${base64url}`])];
}
