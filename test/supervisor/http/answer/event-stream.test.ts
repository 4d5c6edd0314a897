/** The stream of one viewer of the live data: nothing is queued for a client that does not read. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { EventStream } from '../../../../supervisor/http/dialects/web-page/page.js';
import type { RequestContext } from '../../../../supervisor/http/request/request-context.js';

class FakeResponse extends EventEmitter {
  readonly socket = {};
  readonly written: string[] = [];
  writableLength = 0;
  headersSent = false;
  destroyed = false;
  isEnded = false;

  writeHead(): void {
    this.headersSent = true;
  }

  write(bytes: Buffer): void {
    this.written.push(bytes.toString());
  }

  end(): void {
    this.isEnded = true;
  }

  destroy(): void {
    this.destroyed = true;
  }
}

function streamTo(client: string, hasKey = false): { stream: EventStream; response: FakeResponse } {
  const response = new FakeResponse();
  const request = { headers: { host: 'localhost' } };
  const backend = { end: { isNear: false } };
  const context = { response, request, client, hasKey, backend, dialect: {}, requestId: 'r' };
  return { stream: new EventStream(context as unknown as RequestContext), response };
}

test('bytes are sent once earlier ones are gone, and dropped before', () => {
  const { stream, response } = streamTo('127.0.0.1');
  assert.equal(stream.send(Buffer.from('1')), true);
  response.writableLength = 1;
  assert.equal(stream.send(Buffer.from('2')), false);
  response.writableLength = 0;
  assert.equal(stream.send(Buffer.from('3')), true);
  assert.deepEqual(response.written, ['1', '3']);
});

test('the end is sent to a client that reads, and cuts one that does not', () => {
  const reading = streamTo('127.0.0.1');
  reading.stream.end(Buffer.from('end'));
  assert.deepEqual([reading.response.written, reading.response.isEnded], [['end'], true]);
  const other = streamTo('127.0.0.1');
  other.response.writableLength = 1;
  other.stream.end(Buffer.from('end'));
  assert.deepEqual([other.response.written, other.response.destroyed], [[], true]);
});

for (const [what, client, hasKey, leavesFirst] of [
  ['another machine without a key', '10.0.0.7', false, true],
  ['another machine with a key', '10.0.0.7', true, false],
  ['this machine', '::1', false, false],
  ['a unix socket', 'unix', false, false],
] as const) {
  test(`a viewer from ${what} ${leavesFirst ? 'leaves first' : 'stays'} when there are too many`, () => {
    assert.equal(streamTo(client, hasKey).stream.leavesFirst, leavesFirst);
  });
}
