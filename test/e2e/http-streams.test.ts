/** Streams next to other requests on the same connection. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeCues } from '../helpers/cues.js';
import { RawConnection } from '../helpers/raw-http.js';
import { fixture, startServer } from '../helpers/server.js';

const LIMIT = { timeout: 60_000 };

test('nonsense behind a running stream cuts it; no error is written into its midst', LIMIT, async (t) => {
  const cues = makeCues(t);
  const server = await startServer(fixture('streams.mjs'), { t, env: cues.env });
  const connection = await RawConnection.open(server);
  connection.post('{"chunks":1000000,"bytes":10,"everyMs":5}');
  await connection.received('\r\naaaaaaaaaa\r\n');
  connection.send('NONSENSE\r\n\r\n');
  await connection.closed();
  assert.doesNotMatch(connection.rest, /HTTP\/1\.1 4|SERVE_/);
  await cues.untilNoted('closed');
  await server.stop();
});

test('headers that stop arriving behind a running stream cut it in the same way', LIMIT, async (t) => {
  const cues = makeCues(t);
  const args = ['--header-timeout', '200ms'];
  const server = await startServer(fixture('streams.mjs'), { t, env: cues.env, args });
  const connection = await RawConnection.open(server);
  connection.post('{"chunks":1000000,"bytes":10,"everyMs":5}');
  await connection.received('\r\naaaaaaaaaa\r\n');
  connection.send('POST / HTTP/1.1\r\nHo');
  await connection.closed();
  assert.doesNotMatch(connection.rest, /HTTP\/1\.1 4|SERVE_/);
  await cues.untilNoted('closed');
  await server.stop();
});
