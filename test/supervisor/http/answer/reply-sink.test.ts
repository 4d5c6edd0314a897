/** ReplySink writes the status line and the headers of an answer. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { ReplyHead } from '../../../../protocol/wire/messages.js';
import type { Call } from '../../../../supervisor/dispatch/call.js';
import type { RequestContext } from '../../../../supervisor/http/request/request-context.js';
import { ReplySink } from '../../../../supervisor/http/answer/reply-sink.js';
import { RawConnection } from '../../../helpers/raw-http.js';

const JOB = { queueMs: () => 1, runMs: 2 } as unknown as Call;

for (const [phrase, line] of [
  ['', 'HTTP/1.1 404 Not Found'],
  ['Nobody Here', 'HTTP/1.1 404 Nobody Here'],
] as const) {
  test(`the phrase ${JSON.stringify(phrase)} makes the status line ${line}`, async (t) => {
    const server = createServer((request, response) => {
      const backend = { end: { isNear: false }, observer: { settled: () => {} } };
      const context = {
        backend,
        request,
        response,
        requestId: 'id',
        dialect: {},
      } as unknown as RequestContext;
      const head: ReplyHead = { status: 404, contentType: 'text/plain', headers: '', phrase };
      new ReplySink(context, { giveUp: () => {} }).reply(JOB, head, [Buffer.from('no')], 2, () => {});
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { statusLine, body, headers } = await RawConnection.ask(
      { url },
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );
    assert.deepEqual(
      [statusLine, body, headers['server-timing']],
      [line, 'no', 'queue;dur=1.00, run;dur=2.00'],
    );
  });
}
