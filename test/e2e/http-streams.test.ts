/** Streams next to other requests on the same connection. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { makeCues } from '../helpers/cues.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startServer } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

withOneRuntime(({ app }) => {
  /** A stream of 100 chunks with `tail` behind its request; returns what was received when the connection has ended. */
  async function streamBefore(t: TestContext, tail: string, args: readonly string[] = []): Promise<string> {
    const cues = makeCues(t);
    const server = await startServer(app('streams'), { t, env: cues.env, args });
    const connection = await RawConnection.open(server);
    connection.post('{"chunks":100,"bytes":12,"everyMs":30}');
    await connection.received('aaaaaaaaaaaa\r\n');
    connection.send(tail);
    await connection.closed();
    await server.stop();
    return connection.rest;
  }

  describe('behind a running stream', { ...LIMIT, concurrency: 2 }, () => {
    for (const [what, tail, status, args] of [
      ['nonsense', 'NONSENSE\r\n\r\n', 400, []],
      ['headers that stop arriving', 'POST / HTTP/1.1\r\nHo', 408, ['--header-timeout', '2s']],
    ] as const) {
      test(`${what}: the stream goes on to its end, then comes the ${status}`, LIMIT, async (t) => {
        const received = await streamBefore(t, tail, args);
        const [stream = '', refusal = ''] = received.split('0\r\n\r\n');
        assert.equal(stream.match(/a{12}/g)?.length, 100, 'two that leave at once are one chunk of HTTP');
        assert.doesNotMatch(stream, /HTTP\/1\.1 4|SERVE_/);
        assert.match(refusal, new RegExp(`^HTTP/1\\.1 ${status} `));
      });
    }
  });
});
