/** Which listeners speak TLS, by the config of Multi Model Server: those whose addresses say https, and no others. */
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

/** Whether a key has to do with TLS. */
export function concernsTls(key: string): boolean {
  return Object.hasOwn(ADDRESSES, key) || FILES.includes(key);
}

/**
 * The listeners, and where the first of them is asked for; null if nothing is said of TLS, by no setting of any source. Of several settings of a key the
 * last one counts. A certificate that no address asks for is for no listener.
 */
export function tlsListeners(
  settings: readonly Setting[],
): { readonly listeners: readonly TlsListener[]; readonly place: string } | null {
  const given = Object.keys(ADDRESSES).flatMap((key) => lastOf(settings, key) ?? []);
  const secure = given.filter(({ text }) => SECURE.test(text));
  const files = FILES.flatMap((key) => lastOf(settings, key) ?? []);
  const isSaid =
    files.length > 0 || settings.some(({ key, text }) => Object.hasOwn(ADDRESSES, key) && SECURE.test(text));
  const [first] = [...secure, ...files, ...given];
  if (!isSaid || first === undefined) return null;
  return { listeners: secure.flatMap(({ key }) => ADDRESSES[key] ?? []), place: first.place };
}

function lastOf(settings: readonly Setting[], key: string): Setting | undefined {
  return settings.findLast((one) => one.key === key && one.text !== '');
}
