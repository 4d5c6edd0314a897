/** Bodies in chunks of one byte take little more memory than others, wherever they wait. A chunk that is kept costs 350 bytes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { makeCues } from '../helpers/cues.js';
import { RawConnection } from '../helpers/raw-http.js';
import { fixture, startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

/** Node 20 keeps so much for an unread request, Node 22 and newer four times as much. */
const TEXT = 'x'.repeat(16_000);
const BODY = JSON.stringify({ text: TEXT });
const CALLS = 30;

/** Each of half a million chunks in 350 bytes would be 168 MB; 30 bodies are 0.5 MB. */
const MAX_GROWN_BYTES = 90e6;

function inChunks(body: string | Uint8Array): Buffer {
  const chunks = [...Buffer.from(body)].map((byte) => `1\r\n${String.fromCharCode(byte)}\r\n`);
  return Buffer.from(`${chunks.join('')}0\r\n\r\n`, 'latin1');
}

/** The most memory that the front ever had. */
function peakBytes({ pid }: Server): number {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) * 1024;
}

async function sendAll(
  t: TestContext,
  server: Server,
  body: Uint8Array,
  headers: readonly string[] = [],
): Promise<RawConnection[]> {
  const lines = [
    'POST / HTTP/1.1',
    'Host: x',
    'Transfer-Encoding: chunked',
    'Content-Type: application/json',
  ];
  return Promise.all(
    Array.from({ length: CALLS }, async () => {
      const connection = await RawConnection.open(server);
      t.after(() => connection.destroy());
      connection.send(`${[...lines, ...headers].join('\r\n')}\r\n\r\n`);
      connection.send(body);
      return connection;
    }),
  );
}

async function assertAnswered(connections: readonly RawConnection[]): Promise<void> {
  const replies = await Promise.all(connections.map((connection) => connection.reply()));
  const answers = replies.map(({ status, body }) => `${status} ${body}`);
  assert.deepEqual([...new Set(answers)], [`200 ${TEXT.length}`]);
}

test('bodies in chunks of one byte that wait for their model to be loaded', LIMIT, async (t) => {
  const cues = makeCues(t);
  const server = await startServer(fixture('imports-on-cue.mjs'), { t, env: cues.env });
  const before = peakBytes(server);
  const connections = await sendAll(t, server, inChunks(BODY));
  await server.until(({ model }) => model.queue.arriving === CALLS);
  cues.give('import may end');
  await assertAnswered(connections);
  const grown = peakBytes(server) - before;
  assert.ok(grown < MAX_GROWN_BYTES, `the front grew by ${grown} bytes`);
  await server.stop();
});

test('compressed bodies in chunks of one byte', LIMIT, async (t) => {
  const cues = makeCues(t);
  cues.give('import may end');
  const server = await startServer(fixture('imports-on-cue.mjs'), { t, env: cues.env });
  await server.until(({ state }) => state === 'ready');
  const before = peakBytes(server);
  const coded = gzipSync(BODY, { level: 0 });
  const connections = await sendAll(t, server, inChunks(coded), ['Content-Encoding: gzip']);
  await assertAnswered(connections);
  const grown = peakBytes(server) - before;
  assert.ok(grown < MAX_GROWN_BYTES, `the front grew by ${grown} bytes`);
  await server.stop();
});
