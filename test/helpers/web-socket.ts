/** A WebSocket client that records the messages it received. */
import type { TestContext } from 'node:test';
import WebSocket from 'ws';
import { eventually, type Server } from './server.js';

export interface Heard {
  readonly socket: WebSocket;
  /** Texts as they are, bytes as buffers. */
  readonly messages: (string | Buffer)[];
  /** Resolves once so many messages are here. */
  heard(count: number): Promise<(string | Buffer)[]>;
  /** Code and reason of the close. */
  readonly closed: Promise<readonly [code: number, reason: string]>;
}

/** Rejects with the status and body of a refusal. */
export async function openSocket(
  t: TestContext,
  { url }: Pick<Server, 'url'>,
  path: string,
  headers: Record<string, string> = {},
  protocols: readonly string[] = [],
): Promise<Heard> {
  const socket = new WebSocket(url.replace('http', 'ws') + path, [...protocols], { headers });
  t.after(() => socket.terminate());
  const messages: (string | Buffer)[] = [];
  socket.on('message', (data: Buffer, isBinary) => messages.push(isBinary ? data : data.toString()));
  const closed = new Promise<readonly [number, string]>((resolve) => {
    socket.once('close', (code, reason) => resolve([code, reason.toString()]));
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.on('error', reject);
    socket.once('unexpected-response', (_request, response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('end', () =>
        reject(new Refused(response.statusCode as number, Buffer.concat(pieces).toString())),
      );
    });
  });
  return {
    socket,
    messages,
    closed,
    heard: async (count) => {
      await eventually(
        () => messages.length >= count,
        60_000,
        () => `${count} messages; heard ${messages.length}: ${String(messages.at(-1)).slice(0, 200)}`,
      );
      return messages;
    },
  };
}

export class Refused extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, body: string) {
    super(`${status}: ${body}`);
    this.status = status;
    this.code = (JSON.parse(body) as { error: { code: string } }).error.code;
  }
}
