/** Clients without a key that pipeline requests, or send bodies that nobody reads, do not hold up others, on any listener. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCertificate } from '../helpers/certificates.js';
import { connectTo } from '../helpers/connect-to.js';
import { needs } from '../helpers/needs.js';
import { fixture, startServer } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const CONNECTIONS = 300;

process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
process.removeAllListeners('warning');

test(
  'each listener, with TLS or without, ends a connection after 32 pipelined requests, and one whose unread body is in chunks of one byte',
  { ...LIMIT, skip: needs('openssl') },
  async (t) => {
    const { certPath, keyPath } = makeCertificate(t);
    const args = [
      '--management-port',
      '0',
      '--metrics-port',
      '0',
      '--tls-cert',
      certPath,
      '--tls-key',
      keyPath,
    ];
    const server = await startServer(fixture('echoes.mjs'), {
      t,
      args: [...args, '--tls-for', 'main,management'],
      env: { NODE_TLS_REJECT_UNAUTHORIZED: undefined },
    });
    const shown = [/the management API is on ([^\s"]+)/, /metrics are on ([^\s"]+)/];
    await Promise.all(shown.map((line) => server.untilPrinted(line)));
    const others = shown.map((line) => line.exec(server.stderr())?.[1] as string);
    const [management = '', metrics = ''] = others;
    const urls = [`${server.url}/livez`, `${management}/models`, metrics];
    assert.deepEqual(
      urls.map((url) => new URL(url).protocol),
      ['https:', 'https:', 'http:'],
    );
    for (const url of urls) {
      const socket = await connectTo(url);
      socket.on('error', () => {}).write(requests(url, 1000));
      const answers = (await text(socket)).split('HTTP/1.1 ').slice(1);
      assert.equal(answers.length, 32, url);
      assert.deepEqual(
        answers.map((answer) => /^Connection: close\r$/m.test(answer)),
        answers.map((_, i) => i === 31),
      );
    }
    const pages = ['/livez', '/readyz', '/', '/openapi.json', '/v2/health/live', '/status', '/not-found'];
    for (const url of [...pages.map((path) => server.url + path), `${management}/models`, metrics])
      assert.equal(await answersBeforeCut(url), 1, url);
    await server.stop();
  },
);

test(
  'while 300 connections without a key pipeline, a call is answered and SIGINT ends the server',
  LIMIT,
  async (t) => {
    const server = await startServer(fixture('echoes.mjs'), { t, key: 'k', args: ['--api-key', 'k'] });
    const headers = { 'x-banana-api-key': 'k' };
    assert.equal((await ask(server, {}, { headers })).status, 200);
    const attack = beginAttack(t, server.url);
    while (attack.ended() === 0) assert.equal((await ask(server, {}, { headers })).status, 200);
    assert.equal((await ask(server, {}, { headers })).status, 200);
    await server.stop();
  },
);

function requests(url: string, count: number): string {
  const { pathname, host } = new URL(url);
  return `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(count);
}

/** Sends a body in chunks of one byte, then another request. Returns the number of answers until the connection is ended. */
async function answersBeforeCut(url: string): Promise<number> {
  const { pathname, host } = new URL(url);
  const head = `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\n`;
  const body = `Transfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(20_000)}0\r\n\r\n`;
  const socket = await connectTo(url);
  const pieces: Buffer[] = [];
  socket.on('error', () => {}).on('data', (piece: Buffer) => pieces.push(piece));
  socket.write(`${head}${body}${head}Connection: close\r\n\r\n`);
  await new Promise((resolve) => socket.once('close', resolve));
  return Buffer.concat(pieces).toString('latin1').split('HTTP/1.1 ').length - 1;
}

/** Keeps pipelining on so many connections; one that the server has ended is opened anew. */
function beginAttack(t: TestContext, url: string): { ended(): number } {
  let ended = 0;
  let isOver = false;
  const open = new Set<Socket>();
  const next = async (): Promise<void> => {
    while (!isOver) {
      const socket = await connectTo(url).catch(() => null);
      if (socket === null) return;
      open.add(socket);
      socket.on('error', () => {}).write(requests(`${url}/livez`, 300));
      socket.resume();
      await new Promise((resolve) => socket.once('close', resolve));
      open.delete(socket);
      ended += 1;
    }
  };
  for (let i = 0; i < CONNECTIONS; i += 1) void next();
  t.after(() => {
    isOver = true;
    for (const socket of open) socket.destroy();
  });
  return { ended: () => ended };
}
