/** Bytes that are no HTTP behind calls that are: the calls are answered first, in order, and only the rest is refused. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { makeCues } from '../helpers/cues.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startServer, type Server } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const TRIES = 50;

interface Tail {
  readonly what: string;
  readonly bytes: string;
  readonly status: number;
  readonly code: string;
}

const TAILS: readonly Tail[] = [
  { what: 'bytes that are no HTTP', bytes: '\0\x01garbage\r\n\r\n', status: 400, code: 'SERVE_BAD_REQUEST' },
  {
    what: 'a request with too large headers',
    bytes: `POST / HTTP/1.1\r\nHost: x\r\nX-Big: ${'x'.repeat(20_000)}\r\n\r\n`,
    status: 431,
    code: 'SERVE_HEADERS_TOO_LARGE',
  },
  {
    what: 'a call whose body turns into nonsense',
    bytes: 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n',
    status: 400,
    code: 'SERVE_BAD_REQUEST',
  },
  {
    what: 'a CONNECT',
    bytes: 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n',
    status: 405,
    code: 'SERVE_METHOD_NOT_ALLOWED',
  },
];

const TRICKLE = 'and more\r\n\r\n';

function callText(body: string, headers: readonly string[] = []): string {
  const lines = ['POST / HTTP/1.1', 'Host: x', `Content-Length: ${body.length}`, ...headers];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

async function expectCall(connection: RawConnection, input: string): Promise<void> {
  const { status, body } = await connection.reply();
  assert.equal(status, 200, body);
  assert.deepEqual((JSON.parse(body) as { input: unknown }).input, JSON.parse(input));
}

async function expectTail(connection: RawConnection, { status, code }: Tail): Promise<void> {
  const reply = await connection.reply();
  const { error } = JSON.parse(reply.body) as { error: { code: string } };
  assert.deepEqual([reply.status, error.code, reply.headers['connection']], [status, code, 'close']);
  await connection.closed();
  assert.equal(connection.rest, '');
}

/** Everything that was sent before has been read by the server when this resolves. */
async function untilRead(server: Server): Promise<void> {
  await server.status();
}

withOneRuntime(({ app }) => {
  describe('one server', LIMIT, () => {
    const shared = shareServer(app('works'));

    for (const tail of TAILS) {
      test(`behind calls that run, ${tail.what} is refused after their answers`, LIMIT, async (t) => {
        const { server, cues } = shared;
        const connection = await RawConnection.open(server);
        t.after(() => connection.destroy());
        const first = '{"until":"go on"}';
        connection.send(callText(first, ['X-Request-Id: first']) + callText('"second"') + tail.bytes);
        await cues.untilNoted('begun first');
        connection.send(TRICKLE);
        await untilRead(server);
        assert.equal(connection.rest, '');
        cues.give('go on');
        await expectCall(connection, first);
        await expectCall(connection, '"second"');
        await expectTail(connection, tail);
        assert.equal(
          cues.notes().filter((note) => note.startsWith('begun')).length,
          2,
          'only whole calls ran',
        );
      });
    }

    test(
      'a client that sends half a request behind a call, and ends, gets the answer of its call',
      LIMIT,
      async (t) => {
        const { server, cues } = shared;
        const connection = await RawConnection.open(server, true);
        t.after(() => connection.destroy());
        connection.send(`${callText('{"until":"go on"}', ['X-Request-Id: first'])}POST / HT`);
        await cues.untilNoted('begun first');
        connection.socket.end();
        await untilRead(server);
        cues.give('go on');
        await expectCall(connection, '{"until":"go on"}');
        assert.equal((await connection.reply()).status, 400);
        await connection.closed();
      },
    );
  });

  test('a stream is whole before the bytes behind its call are refused', LIMIT, async (t) => {
    const server = await startServer(app('streams'), { t, env: makeCues(t).env });
    const connection = await RawConnection.open(server);
    t.after(() => connection.destroy());
    connection.send(callText('{"chunks":30,"bytes":1000,"everyMs":10}'));
    await connection.received('aaa');
    connection.send(TRICKLE);
    await connection.closed();
    const [stream = '', refusal] = connection.rest.split('\r\n0\r\n\r\n');
    assert.equal(stream.split('a'.repeat(1000)).length - 1, 30);
    assert.match(refusal ?? '', /^HTTP\/1.1 400 Bad Request\r\n/);
    await server.stop();
  });

  describe(`${TRIES} times each, in one write`, LIMIT, () => {
    let server: Server;
    before(async () => {
      server = await startServer(app('echoes'));
      await server.until(({ state }) => state === 'ready');
    });
    after(() => server.stop());

    test('bytes behind `Connection: close` do not cut off an answer that is on its way', LIMIT, async (t) => {
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
      t.after(() => socket.destroy());
      const input = `"${'x'.repeat(20_000_000)}"`;
      socket.write(callText(input, ['Connection: close']));
      await server.until(({ unsent }) => unsent.bytes > 1_000_000);
      socket.write(TRICKLE);
      await untilRead(server);
      const received: Buffer[] = [];
      for await (const chunk of socket) received.push(chunk as Buffer);
      const answer = Buffer.concat(received);
      const bodyBytes = answer.length - answer.indexOf('\r\n\r\n') - 4;
      assert.equal(bodyBytes, input.length);
      assert.equal(answer.toString('latin1', 0, 15), 'HTTP/1.1 200 OK');
    });

    for (const tail of TAILS) {
      test(`a call with ${tail.what} behind it is answered`, async () => {
        for (let i = 0; i < TRIES; i += 1) {
          const connection = await RawConnection.open(server);
          connection.send(callText(`{"input":${i}}`) + tail.bytes);
          await expectCall(connection, String(i));
          await expectTail(connection, tail);
        }
      });
    }

    test('a call with `Connection: close` and bytes behind it is answered, and the connection ends', async () => {
      for (let i = 0; i < TRIES; i += 1) {
        const connection = await RawConnection.open(server);
        connection.send(callText(`{"input":${i}}`, ['Connection: close']) + callText('"too late"'));
        await expectCall(connection, String(i));
        await connection.closed();
        assert.equal(connection.rest, '');
      }
    });
  });
});
