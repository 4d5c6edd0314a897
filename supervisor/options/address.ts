/** Addresses to listen on: a host and a TCP port, or a unix socket. */
import { NotAllowed, parseText, parseWhole } from './units.js';
import type { TlsListener } from './value-forms.js';

export interface Address {
  readonly host: string;
  /** A TCP port, or the path of a unix socket. */
  readonly port: number | string;
}

/** @throws NotAllowed */
export function parseHost(raw: unknown): string {
  return parseText(raw, 'an address or a host name').trim();
}

/** A TCP port, or the path of a unix socket: anything with a slash that is not a URL. @throws NotAllowed */
export function parsePort(raw: unknown): number | string {
  if (typeof raw === 'string' && raw.includes('/') && !raw.includes('://')) return raw;
  try {
    return parseWhole(raw, 0, 65_535);
  } catch {
    throw new NotAllowed('a port from 0 to 65535, or the path of a unix socket');
  }
}

/** Whether `port` is the path of a unix socket. */
export function isUnixSocket(port: number | string): port is string {
  return typeof port === 'string';
}

/** Whether a host name or address always means this machine; an IPv6 address may be in brackets. */
export function isThisMachine(host: string): boolean {
  return /^(?:(?:.+\.)?localhost|127\.\d+\.\d+\.\d+|::1|\[::1\])$/i.test(host);
}

/** Hosts that mean all addresses of the machine. */
export const EVERY_ADDRESS: readonly string[] = ['0.0.0.0', '::'];

/** Whether the two addresses cannot both be opened. */
export function isSameAddress(one: Address, other: Address): boolean {
  if (one.port !== other.port || one.port === 0) return false;
  const hosts = [one.host, other.host];
  return (
    isUnixSocket(one.port) || one.host === other.host || hosts.some((host) => EVERY_ADDRESS.includes(host))
  );
}

/** The flags that set the address of a listener; the error names them if it cannot be opened. */
export function addressFlags(listener: TlsListener = 'main') {
  const prefix = listener === 'main' ? '--' : `--${listener}-`;
  return { host: `${prefix}host`, port: `${prefix}port` };
}
