/**
 * Clients that hold up others, in a process of their own: `node attackers.js URL KIND CONNECTIONS [KEY]
 * [SOCKET]`; SOCKET is the path of another listener. Sends `attacking` to its parent when they have begun, and ends with it.
 */
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';

const [url = '', kind = '', connections = '8', key = '', socketPath = ''] = process.argv.slice(2);
const { hostname, port, host } = new URL(url);

const MB = 1_000_000;
const GET = getWith([]);
const UPGRADE = getWith(['Connection: Upgrade', 'Upgrade: h2c']);
/** As many headers as are taken. */
const LARGE_GET = getWith(Array.from({ length: 199 }, (_, i) => `x-${i}: 1`));

const LISTED_JOBS = 100;

/** Uses one connection. Resolves when it is to be opened anew. */
type Attack = (socket: Socket) => Promise<void>;

const ATTACKS: Readonly<Record<string, () => Attack | Promise<Attack>>> = {
  control: () => askAgain(GET),
  ping: () => askAgain(`GET /ping HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
  probes: () => askAgain(`GET /nothing-here HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
  pipelining: () => flood('', GET.repeat(2000)),
  upgrades: () => flood('', UPGRADE.repeat(1000)),
  headers: () => flood('', LARGE_GET.repeat(200)),
  noise: () => flood('', 'noise\r\n\r\n'.repeat(8000)),
  'chunks-401': () => flood(post('/', ['Transfer-Encoding: chunked']), '1\r\nx\r\n'.repeat(11_000)),
  'chunks-404': () =>
    flood(post('/nothing-here', ['Transfer-Encoding: chunked']), '1\r\nx\r\n'.repeat(11_000)),
  'chunks-livez': () => flood(unread('/livez'), '1\r\nx\r\n'.repeat(11_000)),
  'chunks-metrics': () => flood(unread('/metrics'), '1\r\nx\r\n'.repeat(11_000)),
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
  openapi: () => flood('', asked('/openapi.json').repeat(100)),
  'job-list': async () => {
    for (let i = 0; i < LISTED_JOBS; i += 1) await endedJob(1);
    return flood('', asked(`/_k/jobs?limit=${LISTED_JOBS}`).repeat(100));
  },
  'job-pages': async () => flood('', asked(await endedJob(0.9 * MB)).repeat(100)),
  'result-readers': async () => staySilent(asked(`${await endedJob(20 * MB)}/result`), 'reads nothing'),
  'event-viewers': async () =>
    staySilent(asked(await endedJob(0.7 * MB), ['Accept: text/event-stream']), 'reads nothing'),
  'waiting-readers': async () => staySilent(asked(`${await endedJob(0.6 * MB)}?wait=50s`), 'reads nothing'),
  archives: () =>
    askAgain(manage('POST', '/models?url=many.mar&initial_workers=0'), manage('DELETE', '/models/many')),
  'refused-archives': () => askAgain(manage('POST', '/models?url=entries.tar.gz&initial_workers=0')),
  'slow-readers': () => readSlowly(withBody('/stream', Buffer.from('{}'))),
  'silent-websockets': () => staySilent(upgrade('/chat')),
};

function getWith(headers: readonly string[]): string {
  return ['GET /livez HTTP/1.1', `Host: ${host}`, ...headers, '', ''].join('\r\n');
}

/** A request with the key. */
function asked(path: string, headers: readonly string[] = []): string {
  return [`GET ${path} HTTP/1.1`, `Host: ${host}`, `X-Banana-Api-Key: ${key}`, ...headers, '', ''].join(
    '\r\n',
  );
}

/** The head of a request whose body nobody reads. */
function unread(path: string): string {
  return [`GET ${path} HTTP/1.1`, `Host: ${host}`, 'Transfer-Encoding: chunked', '', ''].join('\r\n');
}

/** Runs a call as a job whose result has so many bytes. Resolves with the path of the ended job. */
async function endedJob(bytes: number): Promise<string> {
  const headers = { 'Content-Type': 'application/json', Prefer: 'respond-async', 'X-Banana-Api-Key': key };
  const body = JSON.stringify({ prompt: 'x'.repeat(bytes) });
  const accepted = await fetch(`${url}/`, { method: 'POST', headers, body });
  const path = `/_k/jobs/${accepted.headers.get('x-banana-job-id')}`;
  const ended = await fetch(`${url}${path}?wait=50s`, { headers });
  await ended.arrayBuffer();
  return path;
}

function manage(method: string, path: string): string {
  const head = [`${method} ${path} HTTP/1.1`, 'Host: localhost', `X-Banana-Api-Key: ${key}`];
  return `${head.join('\r\n')}\r\nContent-Length: 0\r\n\r\n`;
}

function upgrade(path: string): string {
  const lines = [`GET ${path} HTTP/1.1`, `Host: ${host}`, 'Connection: Upgrade', 'Upgrade: websocket'];
  const key64 = Buffer.alloc(16).toString('base64');
  lines.push('Sec-WebSocket-Version: 13', `Sec-WebSocket-Key: ${key64}`, `X-Banana-Api-Key: ${key}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function post(path: string, headers: readonly string[]): string {
  const lines = [`POST ${path} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', ...headers];
  if (key !== '') lines.push(`X-Banana-Api-Key: ${key}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function withBody(path: string, body: Buffer, headers: readonly string[] = []): Buffer {
  return Buffer.concat([Buffer.from(post(path, [...headers, `Content-Length: ${body.length}`])), body]);
}

/**
 * One request after the other, each after the answer to the last, in rotation. Each answer comes in one piece, or its head
 * does.
 */
function askAgain(...requests: readonly (string | Buffer)[]): Attack {
  return (socket) =>
    new Promise((resolve) => {
      let head = '';
      let left = 0;
      let sent = 0;
      const send = (): void => {
        socket.write(requests[sent % requests.length] as string | Buffer);
        sent += 1;
      };
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
          send();
        }
      });
      send();
    });
}

/** Takes 2 kB a second of an answer without an end. */
function readSlowly(request: Buffer): Attack {
  return (socket) =>
    new Promise((resolve) => {
      const timer = setInterval(() => void socket.read(200), 100);
      socket
        .on('readable', () => {})
        .on('close', () => {
          clearInterval(timer);
          resolve();
        });
      socket.write(request);
    });
}

function staySilent(request: string, reading: 'reads' | 'reads nothing' = 'reads'): Attack {
  return (socket) =>
    new Promise((resolve) => {
      socket.on('close', resolve);
      if (reading === 'reads') socket.resume();
      else socket.pause();
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
    const socket = socketPath === '' ? connect(Number(port), hostname) : connect(socketPath);
    socket.on('error', () => {});
    await attack(socket);
    socket.destroy();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const attack = await ATTACKS[kind]?.();
if (attack === undefined) throw new RangeError(`no attack is called ${kind}`);
process.on('disconnect', () => process.exit(0));
for (let i = 0; i < Number(connections); i += 1) void keepAttacking(attack);
setTimeout(() => process.send?.('attacking'), 200);
