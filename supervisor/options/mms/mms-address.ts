/**
 * Addresses of Multi Model Server's config: `http://host:port`, `https://host`, `unix:/path`. The listeners that use TLS are
 * exactly those whose addresses begin with https.
 */
import { NotAllowed } from '../units.js';
import type { TlsListener } from '../value-forms.js';

export interface MmsAddress {
  /** Undefined for a unix socket. */
  readonly host: string | undefined;
  readonly port: number | string;
  readonly isHttps: boolean;
}

/** Ports of addresses without a port. */
export interface DefaultPorts {
  readonly http: number;
  readonly https: number;
}

/** @throws NotAllowed */
export function parseMmsAddress(text: string, defaults: DefaultPorts): MmsAddress {
  const [, socket] = UNIX.exec(text) ?? [];
  if (socket !== undefined) return { host: undefined, port: socket, isHttps: false };
  const [, scheme = '', host = '', digits] = WEB.exec(text) ?? [];
  const isHttps = scheme.toLowerCase() === 'https';
  const port = digits === undefined ? defaults[isHttps ? 'https' : 'http'] : Number(digits);
  if (host === '' || port > 65_535) throw new NotAllowed(ALLOWED);
  return { host: host.replace(/^\[|\]$/g, ''), port, isHttps };
}

const UNIX = /^unix:(\/.*[^/])$/;
const WEB = /^(https?):\/\/(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?\/?$/i;

const ALLOWED =
  'http://host:port or https://host:port, with a port up to 65535 and no path, or unix:/path of a socket';

/** A key with its value and source. */
export interface Setting {
  readonly key: string;
  readonly text: string;
  /** `config.properties line 3: job_queue_size`, or the name of a variable. */
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
