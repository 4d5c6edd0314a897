/** Answers to requests that the parser refuses. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { LateHandler, createHttpServer } from '../../../../supervisor/http/socket/http-server.js';
import { InputTurns } from '../../../../supervisor/http/socket/input-turns.js';

const BROKEN = 'Host: x\r\nno colon\r\n\r\n';

async function answerTo(t: TestContext, input: string): Promise<string> {
  const late = new LateHandler();
  const body = Buffer.from('{"error":1}');
  late.arrive({ request: () => {}, upgrade: () => false, fail: () => ({ status: 400, headers: {}, body }) });
  const server = createHttpServer(10_000, late, ServerResponse, new InputTurns());
  server.listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(input);
  return text(socket);
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
    assert.match(answer, /^HTTP\/1.1 400 /);
    assert.equal(answer.endsWith('{"error":1}'), hasBody, answer);
  });
