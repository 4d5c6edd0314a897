/** Parses addresses of Multi Model Server's config: `http://host:port`, `https://host`, `unix:/path`. */
import { NotAllowed } from '../units.js';

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
