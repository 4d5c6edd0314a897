/** A real receiver of webhooks on a free port, which records requests and gives the set answers. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { eventually } from './server.js';

export interface Arrival {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Receiver {
  readonly url: string;
  readonly arrivals: readonly Arrival[];
  /** Connections open now. */
  readonly connections: () => number;
  until(count: number, limitMs?: number): Promise<void>;
}

/** `answer` gets the arrivals so far, this one included; one that does not end the response hangs. */
export async function startReceiver(
  t: TestContext,
  answer: (response: ServerResponse, count: number, arrival: Arrival) => void = (response) => response.end(),
): Promise<Receiver> {
  const arrivals: Arrival[] = [];
  let open = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      const arrival = { method, path, headers, body: Buffer.concat(chunks) };
      arrivals.push(arrival);
      answer(response, arrivals.length, arrival);
    });
  });
  server.on('connection', (socket) => {
    open += 1;
    socket.on('close', () => (open -= 1));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
    connections: () => open,
    until: (count, limitMs = 60_000) =>
      eventually(
        () => arrivals.length >= count,
        limitMs,
        () => `${arrivals.length} webhooks came, not ${count}`,
      ),
  };
}
