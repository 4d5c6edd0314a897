/** A request as the bytes that go on the socket, made once per run. */
import type { RequestSpec } from './plan.js';

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** @throws a RangeError unless the target is this machine's loopback */
export function targetOf(request: RequestSpec): Target {
  const { hostname, port } = new URL(request.url);
  if (hostname !== '127.0.0.1' && hostname !== 'localhost' && hostname !== '[::1]') {
    throw new RangeError(`the load generator aims at loopback only, not at ${hostname}`);
  }
  return { host: hostname === '[::1]' ? '::1' : '127.0.0.1', port: Number(port) };
}

export function requestBytes(request: RequestSpec): Buffer {
  const { pathname, host } = new URL(request.url);
  const headers = { Host: host, ...request.headers, 'Content-Length': String(request.body.length) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${pathname} HTTP/1.1\r\n${lines.join('')}\r\n`), request.body]);
}
