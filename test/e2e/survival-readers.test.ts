/** Clients that read their answers slowly, or never, take no more memory than their limit and harm no other client. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ask, logLines } from '../helpers/ask.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { call, startServer, type Server } from '../helpers/server.js';
import { UnreadAnswer } from '../helpers/unread.js';

const LIMIT = { timeout: 240_000 };
const MB = 1_000_000;
const BYTES = 20 * MB;

/** Ids of the requests whose answers were cut off, in this order. */
function cutOff(server: Server): unknown[] {
  return logLines(server)
    .filter(({ code }) => code === 'SERVE_SLOW_READER')
    .map(({ requestId }) => requestId);
}

withOneRuntime(({ app }) => {
  const APP = app('large-answers');

  test(
    'answers that are not read stay within --unsent-bytes: the slowest reader is cut off, one at a time',
    LIMIT,
    async (t) => {
      const args = ['--unsent-bytes', '64mb', '--access-log', '--log-format', 'json'];
      const server = await startServer(APP, { t, args: [...args, '--max-output', '20mb'] });
      await server.until(({ state }) => state === 'ready');
      const readers: UnreadAnswer[] = [];
      for (let i = 0; i < 8; i += 1) {
        readers.push(await UnreadAnswer.ask(t, server, { input: { bytes: BYTES }, id: `reader-${i}` }));
        const { unsent } = await server.until(
          ({ unsent: { clients }, replies }) =>
            clients + (replies['SERVE_SLOW_READER'] ?? 0) === i + 1 && clients <= 3,
        );
        assert.ok(unsent.bytes >= Math.min(i + 1, 3) * BYTES, `${unsent.bytes} bytes are counted`);
        assert.ok(unsent.bytes <= unsent.maxBytes, `${unsent.bytes} bytes are held`);
      }
      await server.until(() => cutOff(server).length === 5);
      assert.deepEqual(cutOff(server), ['reader-0', 'reader-1', 'reader-2', 'reader-3', 'reader-4']);

      const whole = await ask(server, { bytes: BYTES }, { id: 'reads' });
      assert.equal(whole.text.length, BYTES);
      await server.until(({ replies }) => replies['SERVE_SLOW_READER'] === cutOff(server).length);
      assert.ok(!cutOff(server).includes('reads'));

      for (const [i, reader] of readers.entries()) {
        const isCut = cutOff(server).includes(`reader-${i}`);
        const { bytes, isOpen } = await reader.rest(BYTES);
        assert.equal(isOpen, !isCut);
        assert.equal(bytes >= BYTES, !isCut, `reader-${i} got ${bytes} bytes`);
      }
      assert.ok(!cutOff(server).includes('reader-7'));
      const { replies } = await server.until(
        ({ unsent: { clients, bytes } }) => clients === 0 && bytes === 0,
      );
      assert.equal((replies['ok'] ?? 0) + (replies['SERVE_SLOW_READER'] ?? 0), 9);
      await server.stop();
    },
  );

  test(
    'the memory of answers that were cut off is given back, also without further calls',
    LIMIT,
    async (t) => {
      const server = await startServer(APP, { t, args: ['--stall-timeout', '8s'] });
      await server.until(({ state }) => state === 'ready');
      const count = 5;
      const asks = Array.from({ length: count }, () =>
        UnreadAnswer.ask(t, server, { input: { bytes: BYTES } }),
      );
      await Promise.all(asks);
      const full = await server.until(({ unsent }) => unsent.bytes >= count * BYTES);
      const mostBytes = full.front.rssBytes - 0.6 * count * BYTES;
      await server.until(({ unsent, front }) => unsent.bytes === 0 && front.rssBytes < mostBytes);
      await server.stop();
    },
  );

  test('every kind of answer is counted, and cut off after --stall-timeout', LIMIT, async (t) => {
    const server = await startServer(APP, { t, args: ['--stall-timeout', '6s'] });
    const bytes = BYTES;
    const job = await call(`${server.url}/job`, JSON.stringify({ bytes }));
    await server.until(({ replies }) => replies['ok'] === 1);
    const jobResult = `/_k/jobs/${job.headers.get('x-banana-job-id')}/result`;
    const input = { bytes };
    const modelInputs = { bytes, asJson: true };
    const kinds = {
      // Taken from the job in pieces, as the client reads.
      'the result of a background job': { requests: [{ method: 'GET', path: jobResult }], leastBytes: 1 },
      "a gateway's reply": { requests: [{ path: '/start/v4/', input: { modelInputs } }], leastBytes: bytes },
      'answers behind one that is not read': {
        requests: [{ input }, { input }, { input }],
        leastBytes: 3 * bytes,
      },
    } as const;
    let cut = 0;
    for (const [kind, { requests, leastBytes }] of Object.entries(kinds)) {
      await t.test(kind, async () => {
        const unread = await UnreadAnswer.ask(t, server, ...requests);
        await server.until(({ unsent }) => unsent.clients === 1 && unsent.bytes >= leastBytes);
        cut += requests.length;
        await server.until(
          ({ unsent, replies }) => unsent.bytes === 0 && replies['SERVE_SLOW_READER'] === cut,
        );
        assert.ok((await unread.rest()).bytes < bytes);
      });
    }
    await server.stop();
  });

  test(
    'readers of one result share a copy, which counts for --unsent-bytes until the last of them has gone',
    LIMIT,
    async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'banana-readers-'));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      const args = ['--jobs', `local:${folder}`, '--unsent-bytes', '64mb', '--max-output', '20mb'];
      const server = await startServer(APP, { t, args });
      const results: string[] = [];
      for (let i = 1; i <= 4; i += 1) {
        const { headers } = await call(`${server.url}/job`, JSON.stringify({ bytes: BYTES }));
        results.push(`/_k/jobs/${headers.get('x-banana-job-id')}/result`);
        await server.until(({ replies }) => replies['ok'] === i);
      }
      const [first = '', ...others] = results;
      const readers = await Promise.all(
        Array.from({ length: 10 }, () => UnreadAnswer.ask(t, server, { method: 'GET', path: first })),
      );
      const { unsent } = await server.until(
        ({ unsent: { clients, bytes } }) => clients === 10 && bytes >= BYTES,
      );
      assert.ok(unsent.bytes < 2 * BYTES, `${unsent.bytes} bytes are counted`);

      for (const path of others) readers.push(await UnreadAnswer.ask(t, server, { method: 'GET', path }));
      const { unsent: bound } = await server.until(({ replies }) => (replies['SERVE_SLOW_READER'] ?? 0) > 0);
      assert.ok(bound.bytes <= bound.maxBytes, `${bound.bytes} bytes are held`);

      await Promise.all(readers.map((reader) => reader.rest(0)));
      await server.until(({ unsent: { clients, bytes } }) => clients === 0 && bytes === 0);
      await server.stop();
    },
  );

  test(
    '--stall-timeout is for whole answers too, and judges by bytes: a slow reader is not cut',
    LIMIT,
    async (t) => {
      const args = ['--stall-timeout', '6s', '--access-log', '--log-format', 'json'];
      const server = await startServer(APP, { t, args });
      const slow = await UnreadAnswer.ask(t, server, { input: { bytes: BYTES }, id: 'slow' });
      slow.readSlowly(400_000);
      for (const id of ['never-1', 'never-2']) {
        const never = await UnreadAnswer.ask(t, server, { input: { bytes: BYTES }, id });
        await server.until(() => cutOff(server).includes(id));
        assert.ok((await never.rest()).bytes < BYTES);
      }
      const { unsent } = await server.status();
      assert.equal(unsent.clients, 1, 'the front still holds a part of the slow answer');
      assert.ok((await slow.rest(BYTES)).bytes > BYTES);
      assert.deepEqual(cutOff(server), ['never-1', 'never-2']);
      await server.stop();
    },
  );
});
