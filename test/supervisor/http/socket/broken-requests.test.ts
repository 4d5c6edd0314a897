/** Answers to requests that the parser refuses. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { LateHandler, createHttpServer } from '../../../../supervisor/http/socket/http-server.js';
import { InputTurns } from '../../../../supervisor/http/socket/input-turns.js';
import { eventually } from '../../../helpers/server.js';

const BROKEN = 'Host: x\r\nno colon\r\n\r\n';

interface Answered {
  readonly text: string;
  /** Requests that were handed over. */
  readonly handled: readonly (string | undefined)[];
}

async function answerTo(t: TestContext, input: string): Promise<Answered> {
  const late = new LateHandler();
  const body = Buffer.from('{"error":1}');
  const handled: (string | undefined)[] = [];
  late.arrive({
    request: ({ url }, response) => {
      handled.push(url);
      response.setHeader('Connection', 'close').end('taken');
    },
    upgrade: () => false,
    fail: ({ code }) => ({ status: code === 'SERVE_HEADERS_TOO_LARGE' ? 431 : 400, headers: {}, body }),
  });
  const server = createHttpServer(10_000, late, ServerResponse, new InputTurns());
  server.listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(input);
  return { text: await text(socket), handled };
}

for (const [what, input, hasBody] of [
  ['a broken GET', `GET / HTTP/1.1\r\n${BROKEN}`, true],
  ['a broken HEAD', `HEAD / HTTP/1.1\r\n${BROKEN}`, false],
  ['a broken GET before a HEAD', `GET / HTTP/1.1\r\n${BROKEN}HEAD / HTTP/1.1\r\nHost: x\r\n\r\n`, true],
  ['a broken HEAD before a GET', `HEAD / HTTP/1.1\r\n${BROKEN}GET / HTTP/1.1\r\nHost: x\r\n\r\n`, false],
  ['a HEAD with an invalid path', `HEAD /\x01 HTTP/1.1\r\n${BROKEN}`, false],
  ['noise', 'XX\r\n\r\n', true],
] as const)
  test(`${what} is answered ${hasBody ? 'with' : 'without'} a body`, async (t) => {
    const answer = await answerTo(t, input);
    assert.match(answer.text, /^HTTP\/1.1 400 /);
    assert.equal(answer.text.endsWith('{"error":1}'), hasBody, answer.text);
  });

/** A request with so many header fields, `Host` and `last` included. */
function withFields(count: number, last: string): string {
  const fields = Array.from({ length: count - 2 }, (_, i) => `x-${i}: 1`);
  return ['POST /fields HTTP/1.1', 'Host: x', ...fields, last, '', ''].join('\r\n');
}

test('a request with 200 header fields is handed over', async (t) => {
  const answer = await answerTo(t, withFields(200, 'Content-Length: 0'));
  assert.match(answer.text, /^HTTP\/1.1 200 [^]*taken/);
  assert.deepEqual(answer.handled, ['/fields']);
});

for (const [count, last] of [
  [201, 'Content-Length: 0'],
  [900, 'Transfer-Encoding: chunked'],
  [900, 'Upgrade: h2c'],
] as const)
  test(`a request with ${count} header fields, the last ${last}, is refused before it is handed over`, async (t) => {
    const answer = await answerTo(t, withFields(count, last));
    assert.match(answer.text, /^HTTP\/1.1 431 [^]*\{"error":1\}$/);
    assert.deepEqual(answer.handled, []);
  });

test('what follows a broken request is read and thrown away, and no parser sees it', async (t) => {
  const late = new LateHandler(); // no answer ends the connection before all is read
  const server = createHttpServer(10_000, late, ServerResponse, new InputTurns());
  let errors = 0;
  server.on('clientError', () => (errors += 1));
  server.listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  t.after(() => socket.destroy());
  const [served] = (await once(server, 'connection')) as [Socket];
  socket.write(BROKEN);
  await once(server, 'clientError');
  socket.write(Buffer.alloc(1_000_000, 'x'));
  const all = BROKEN.length + 1_000_000;
  await eventually(
    () => served.bytesRead === all,
    60_000,
    () => `${served.bytesRead} bytes`,
  );
  assert.equal(errors, 1);
});
