/** Clients that announce large bodies and send next to nothing keep no other client out. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { RawConnection } from '../helpers/raw-http.js';
import { startHere } from '../helpers/here.js';
import { call, eventually, fixture } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

/** Bodies that drip end by themselves after 30 s. */
const SOON_MS = 25_000;

/** Connections that each announce 99 MB, of which one byte comes. */
async function drip(
  t: TestContext,
  server: { readonly url: string },
  count: number,
  path = '/',
): Promise<RawConnection[]> {
  const drippers = await Promise.all(Array.from({ length: count }, () => RawConnection.open(server)));
  t.after(() => drippers.forEach((dripper) => dripper.destroy()));
  for (const dripper of drippers)
    dripper.send(`POST ${path} HTTP/1.1\r\nHost: test\r\nContent-Length: 99000000\r\n\r\n{`);
  return drippers;
}

test(
  'six bodies of 99 MB that drip: their bytes count as they arrive, and others are served',
  LIMIT,
  async (t) => {
    const server = await startHere(fixture('works.mjs'), { t, env: makeCues(t).env });
    const drippers = await drip(t, server, 6);
    const { model } = await server.until(({ model: { queue } }) => queue.arriving === 6 && queue.bytes === 6);
    assert.equal(model.queue.maxBytes, 512 * 1024 * 1024);
    for (let i = 0; i < 5; i += 1) assert.equal((await ask(server, {})).status, 200);
    assert.equal((await server.status()).model.queue.arriving, 6, 'no client had to be refused for it');
    for (const dripper of drippers) dripper.destroy(); // the end of the server would wait for them
    await server.stop();
  },
);

test('a body in 300,000 chunks of one byte is taken, and the worker serves on', LIMIT, async (t) => {
  const server = await startHere(fixture('works.mjs'), { t, env: makeCues(t).env });
  const connection = await RawConnection.open(server);
  t.after(() => connection.destroy());
  connection.send(
    'POST / HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  );
  connection.send(`${'1\r\n \r\n'.repeat(300_000)}2\r\n{}\r\n0\r\n\r\n`);
  const reply = await connection.reply();
  assert.equal(reply.status, 200, reply.body);
  assert.equal((await ask(server, {})).status, 200);
  await server.stop();
});

test('when drippers take every place, newcomers get one and the drippers lose theirs', LIMIT, async (t) => {
  const server = await startHere(fixture('works.mjs'), {
    t,
    args: ['--queue-size', '8'],
    env: makeCues(t).env,
  });
  await server.until(({ state }) => state === 'ready');
  const drippers = await drip(t, server, 9); // an idle worker's call needs no place in the queue
  await server.until(({ model: { queue } }) => queue.arriving === 9);
  const isServed = async (): Promise<boolean> => (await ask(server, {})).status === 200;
  await eventually(isServed, SOON_MS, () => 'a newcomer is refused although all the others drip');
  for (let i = 0; i < 5; i += 1) assert.equal((await ask(server, {})).status, 200);
  const { model } = await server.status();
  assert.equal(model.queue.arriving, 8, 'one was refused, and no more than that');
  const refused = drippers.filter((dripper) => dripper.rest.includes('SERVE_QUEUE_FULL'));
  assert.equal(refused.length, 1);
  for (const dripper of drippers) dripper.destroy();
  await server.stop();
});

test('clients without a key that drip keep no gateway client out', LIMIT, async (t) => {
  const server = await startHere(fixture('works.mjs'), {
    t,
    args: ['--api-key', 'secret'],
    env: makeCues(t).env,
  });
  await drip(t, server, 64, '/start/v4/');
  const start = JSON.stringify({ id: 'a', apiKey: 'secret', modelKey: 'm', modelInputs: {} });
  const isServed = async (): Promise<boolean> => {
    const { text } = await call(`${server.url}/start/v4/`, start, { 'content-type': 'application/json' });
    return text.includes('"modelOutputs"');
  };
  await eventually(isServed, SOON_MS, () => 'a client with a key is refused although all the others drip');
  for (let i = 0; i < 5; i += 1) assert.ok(await isServed());
  await server.stop();
});
