/** What a request for another protocol asks for, before anybody looks at its path. */
import type { IncomingMessage } from 'node:http';

/** RFC 6455 section 4.1. HTTP/1.0 knows no upgrades (RFC 9110 section 7.8), and no frame could follow a body. */
export function asksForWebSocket(request: IncomingMessage): boolean {
  const { method, headers, httpVersion } = request;
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    !hasBody(request)
  );
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}
