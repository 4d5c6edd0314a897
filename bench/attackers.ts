/**
 * Clients that hold up others, in a process of their own: `node attackers.js URL KIND CONNECTIONS [KEY]`. Sends
 * `attacking` to its parent when they have begun, and ends with it.
 */
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';

const [url = '', kind = '', connections = '8', key = ''] = process.argv.slice(2);
const { hostname, port, host } = new URL(url);

const MB = 1_000_000;
const GET = `GET /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

/** Uses one connection. Resolves when it is to be opened anew. */
type Attack = (socket: Socket) => Promise<void>;

const ATTACKS: Readonly<Record<string, () => Attack>> = {
  control: () => askAgain(GET),
  probes: () => askAgain(`GET /nothing-here HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
  pipelining: () => flood('', GET.repeat(2000)),
  'chunks-401': () => flood(post('/', ['Transfer-Encoding: chunked']), '1\r\nx\r\n'.repeat(11_000)),
  'chunks-404': () =>
    flood(post('/nothing-here', ['Transfer-Encoding: chunked']), '1\r\nx\r\n'.repeat(11_000)),
  'chunks-200': () =>
    askAgain(
      `${post('/', ['Transfer-Encoding: chunked'])}${'1\r\n \r\n'.repeat(20_000)}2\r\n{}\r\n0\r\n\r\n`,
    ),
  'large-bodies': () => askAgain(withBody('/', Buffer.from(JSON.stringify({ pad: 'x'.repeat(90 * MB) })))),
  'gzip-bombs': () =>
    askAgain(
      withBody('/', gzipSync(JSON.stringify({ pad: 'x'.repeat(90 * MB) })), ['Content-Encoding: gzip']),
    ),
  gateway: () =>
    askAgain(
      withBody(
        '/start/v4/',
        Buffer.from(JSON.stringify({ apiKey: key, modelInputs: { pad: 'x'.repeat(40 * MB) } })),
      ),
    ),
};

function post(path: string, headers: readonly string[]): string {
  const lines = [`POST ${path} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', ...headers];
  if (key !== '') lines.push(`X-Banana-Api-Key: ${key}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function withBody(path: string, body: Buffer, headers: readonly string[] = []): Buffer {
  return Buffer.concat([Buffer.from(post(path, [...headers, `Content-Length: ${body.length}`])), body]);
}

/** One request after the other, each after the answer to the last. Each answer comes in one piece, or its head does. */
function askAgain(request: string | Buffer): Attack {
  return (socket) =>
    new Promise((resolve) => {
      let head = '';
      let left = 0;
      socket.on('close', resolve);
      socket.on('data', (piece: Buffer) => {
        if (left === 0) {
          head += piece.toString('latin1');
          const end = head.indexOf('\r\n\r\n');
          if (end < 0) return;
          left = end + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0) - head.length;
          head = '';
        } else left -= piece.length;
        if (left <= 0) {
          left = 0;
          socket.write(request);
        }
      });
      socket.write(request);
    });
}

/** Sends as fast as it can, whatever the answers. */
function flood(first: string, bytes: string): Attack {
  const block = Buffer.from(bytes);
  return (socket) =>
    new Promise((resolve) => {
      socket.on('close', resolve).resume();
      const pump = (): void => {
        if (!socket.destroyed) socket.write(block, () => setImmediate(pump));
      };
      socket.write(first);
      pump();
    });
}

async function keepAttacking(attack: Attack): Promise<never> {
  for (;;) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    await attack(socket);
    socket.destroy();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const attack = ATTACKS[kind]?.();
if (attack === undefined) throw new RangeError(`no attack is called ${kind}`);
process.on('disconnect', () => process.exit(0));
for (let i = 0; i < Number(connections); i += 1) void keepAttacking(attack);
setTimeout(() => process.send?.('attacking'), 200);
