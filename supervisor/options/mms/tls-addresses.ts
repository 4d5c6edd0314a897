/** The listeners that use TLS by Multi Model Server's config: exactly those whose addresses begin with https. */
import type { TlsListener } from '../tls-values.js';

interface Setting {
  readonly key: string;
  readonly text: string;
  readonly place: string;
}

const ADDRESSES: Readonly<Record<string, TlsListener>> = {
  inference_address: 'main',
  management_address: 'management',
  metrics_address: 'metrics',
};

const SECURE = /^https:/i;

const FILES: readonly string[] = ['certificate_file', 'private_key_file'];

/** Whether the key decides about TLS. */
export function concernsTls(key: string): boolean {
  return Object.hasOwn(ADDRESSES, key) || FILES.includes(key);
}

/**
 * Returns the listeners and the source of the first of them; null if no setting mentions TLS. The last of several settings
 * of a key counts. A certificate without an https address is used by no listener.
 */
export function tlsListeners(
  settings: readonly Setting[],
): { readonly listeners: readonly TlsListener[]; readonly place: string } | null {
  const given = Object.keys(ADDRESSES).flatMap((key) => lastOf(settings, key) ?? []);
  const secure = given.filter(({ text }) => SECURE.test(text));
  const files = FILES.flatMap((key) => lastOf(settings, key) ?? []);
  const isMentioned =
    files.length > 0 || settings.some(({ key, text }) => Object.hasOwn(ADDRESSES, key) && SECURE.test(text));
  const [first] = [...secure, ...files, ...given];
  if (!isMentioned || first === undefined) return null;
  return { listeners: secure.flatMap(({ key }) => ADDRESSES[key] ?? []), place: first.place };
}

function lastOf(settings: readonly Setting[], key: string): Setting | undefined {
  return settings.findLast((one) => one.key === key && one.text !== '');
}
