/** The front reads large bodies and results in slices: small requests that come meanwhile are answered first. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MAX_INCLUDED_BYTES } from '../../supervisor/http/dialects/potassium/job-paths.js';
import { endOf, post, startJob } from '../helpers/potassium.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { eventually, type Server } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const MANY = 30_000_000;
const GET_LIVEZ = 'GET /livez HTTP/1.1\r\nHost: test\r\n\r\n';

/** The server finds all that is sent meanwhile in one turn, however slow this process is. */
function sendTogether(server: Server, send: () => void): void {
  server.process.kill('SIGSTOP');
  send();
  server.process.kill('SIGCONT');
}

/**
 * Sends large requests on connections of their own, and a small one right behind; returns which is answered first as a whole. A
 * large answer has so many bytes at least.
 */
async function firstAnswered(server: Server, requests: readonly string[], bytes: number): Promise<string> {
  const open = (): Promise<RawConnection> => RawConnection.open(server);
  const small = await open();
  const large = await Promise.all(requests.map(open));
  const answered: string[] = [];
  small.socket.once('data', () => answered.push('small'));
  for (const { socket } of large) {
    socket.removeAllListeners('data'); // the answers have 240 MB together
    let left = bytes;
    socket.on('data', (part: Buffer) => {
      if (left > 0 && (left -= part.length) <= 0) answered.push('large');
    });
  }
  sendTogether(server, () => {
    large.forEach((connection, i) => connection.send(requests[i] as string));
    small.send(GET_LIVEZ);
  });
  await eventually(
    () => answered.length === requests.length + 1,
    60_000,
    () => answered.join(),
  );
  for (const connection of [small, ...large]) connection.destroy();
  return answered[0] as string;
}

/** Calls that the model has answered. */
async function answered(server: Server): Promise<number> {
  return (await server.status()).replies['ok'] ?? 0;
}

withOneRuntime(({ app }) => {
  describe('one server', LIMIT, () => {
    const shared = shareServer(app('large-results'));

    test(
      'eight GETs of jobs with results as large as a page includes do not hold up a small one',
      LIMIT,
      async () => {
        const { server } = shared;
        const bytes = MAX_INCLUDED_BYTES - 2; // in quotes
        const before = await answered(server);
        const id = await startJob(server, '/json', { bytes });
        await server.until(({ replies }) => replies['ok'] === before + 1);
        const get = `GET /_k/jobs/${id} HTTP/1.1\r\nHost: test\r\n\r\n`;
        assert.equal(await firstAnswered(server, Array<string>(8).fill(get), bytes), 'small');
        const { encoding, result } = await endOf(server, id);
        assert.deepEqual([encoding, (result as string).length], ['json', bytes]);
      },
    );

    test('eight checks of a large result at the gateway do not hold up a small one', LIMIT, async () => {
      const { server } = shared;
      const before = await answered(server);
      const started = await post(server, '/start/v2/', { modelInputs: { bytes: MANY } });
      const { callID } = started.json<{ callID: string }>();
      await server.until(({ replies }) => replies['ok'] === before + 1);
      const body = JSON.stringify({ callID });
      const check = `POST /check/v2/ HTTP/1.1\r\nHost: test\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
      assert.equal(await firstAnswered(server, Array<string>(8).fill(check), MANY), 'small');
      const { modelOutputs } = (await post(server, '/check/v2/', { callID })).json<{
        modelOutputs: string[];
      }>();
      assert.deepEqual([modelOutputs.length, modelOutputs[0]?.length], [1, MANY]);
    });

    test('a large body at the gateway does not hold up a small request', LIMIT, async () => {
      const { server } = shared;
      const start = await RawConnection.open(server);
      const small = await RawConnection.open(server);
      const answered: string[] = [];
      start.socket.once('data', () => answered.push('start'));
      small.socket.once('data', () => answered.push('small'));
      const body = JSON.stringify({ modelInputs: { bytes: 3, pad: 'x'.repeat(MANY) } });
      start.send(`POST /start/v2/ HTTP/1.1\r\nHost: test\r\nContent-Length: ${body.length}\r\n\r\n`);
      start.send(body.slice(0, -1));
      await server.until(({ model }) => model.queue.bytes === body.length - 1);
      sendTogether(server, () => {
        start.send(body.slice(-1));
        small.send(GET_LIVEZ);
      });
      const { body: reply } = await start.reply();
      assert.deepEqual([answered[0], (await small.reply()).status], ['small', 200]);
      const { callID } = JSON.parse(reply) as { callID: string };
      const result = await post(server, '/check/v2/', { callID, longPoll: true });
      assert.deepEqual(result.json<{ modelOutputs: string[] }>().modelOutputs, ['xxx']);
      for (const connection of [start, small]) connection.destroy();
    });

    test('a result of bytes is whole in base64, however many they are', LIMIT, async () => {
      const { server } = shared;
      for (const bytes of [0, 1, 2, 3, 1_000_000]) {
        const { encoding, result } = await endOf(server, await startJob(server, '/bytes', { bytes }));
        assert.equal(encoding, 'base64');
        assert.ok(result === Buffer.alloc(bytes, 7).toString('base64'), `${bytes} bytes`);
      }
    });
  });
});
