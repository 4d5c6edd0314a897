/** Requests as the bytes that go on the socket, made once per run. */
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

/** Gives the next request at every call: the same one again, or that of the next path. */
export function requestsOf(request: RequestSpec): () => Buffer {
  const { pathname } = new URL(request.url);
  const all = (request.paths ?? [pathname]).map((path) => requestBytes(request, path));
  let next = 0;
  return () => all[next++ % all.length] as Buffer;
}

function requestBytes(request: RequestSpec, path: string): Buffer {
  const { host } = new URL(request.url);
  const headers = { Host: host, ...request.headers, 'Content-Length': String(request.body.length) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), request.body]);
}
