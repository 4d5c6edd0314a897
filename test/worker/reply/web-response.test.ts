import assert from 'node:assert/strict';
import { test } from 'node:test';
import { responseBody, responseHead } from '../../../worker/reply/reply-of.js';
import { deferred, nextTurn } from '../../protocol/streams.js';
import { serveError } from '../refusals.js';

for (const [what, response, head] of [
  ['text', new Response('hi'), [200, 'text/plain;charset=UTF-8', '']],
  ['JSON', Response.json({ a: 1 }), [200, 'application/json', '']],
  ['bytes without a type', new Response(new Uint8Array(1)), [200, 'application/octet-stream', '']],
  ['no body', new Response(null, { status: 204 }), [204, '', '']],
  ['a redirect', Response.redirect('http://localhost/x', 303), [303, '', 'location\nhttp://localhost/x']],
  [
    'its own headers',
    new Response('', { headers: { 'X-Model': 'v2', 'Content-Type': 'a/b' } }),
    [200, 'a/b', 'x-model\nv2'],
  ],
  ['two cookies', twoCookies(), [200, '', 'set-cookie\na=1\nset-cookie\nb=2']],
  [
    "headers of the hop, which are the front's own",
    new Response(null, {
      headers: { 'content-length': '99', connection: 'close', 'transfer-encoding': 'chunked' },
    }),
    [200, '', ''],
  ],
] as const) {
  test(`responseHead keeps status, type and headers of a Response with ${what}`, () => {
    const { status, contentType, headers } = responseHead(response);
    assert.deepEqual([status, contentType, headers], head);
  });
}

function twoCookies(): Response {
  const headers = new Headers();
  headers.append('Set-Cookie', 'a=1');
  headers.append('Set-Cookie', 'b=2');
  return new Response(null, { headers });
}

for (const [what, statusText, phrase] of [
  ['one of its own', 'Found a Face', 'Found a Face'],
  ['none', '', ''],
  ['one that is too long for a status line', 'x'.repeat(201), ''],
] as const) {
  test(`responseHead keeps the phrase of a Response with ${what}`, () => {
    assert.equal(responseHead(new Response(null, { statusText })).phrase, phrase);
  });
}

test('responseHead refuses Response.error(), which has no status', () => {
  assert.throws(
    () => responseHead(Response.error()),
    serveError('SERVE_OUTPUT_INVALID', /Response\.error\(\)/),
  );
});

test('responseHead refuses headers that are too long for any client', () => {
  const response = new Response(null, { headers: { 'x-big': 'x'.repeat(100_000) } });
  assert.throws(
    () => responseHead(response),
    serveError('SERVE_OUTPUT_INVALID', /headers are 100006 characters/),
  );
});

test('responseHead counts the content type among the headers', () => {
  const response = new Response('x', { headers: { 'content-type': `text/${'x'.repeat(100_000)}` } });
  assert.throws(
    () => responseHead(response),
    serveError('SERVE_OUTPUT_INVALID', /headers are 100005 characters/),
  );
});

const twelveMegabytes = Buffer.alloc(12_000_000, 7);

for (const [what, response, body] of [
  ['text', new Response('hé'), Buffer.from('hé')],
  ['JSON', Response.json({ a: 1 }), Buffer.from('{"a":1}')],
  ['bytes', new Response(new Uint8Array([1, 2])), Buffer.from([1, 2])],
  ['many bytes', new Response(twelveMegabytes), twelveMegabytes],
  ['a form', new Response(new URLSearchParams({ a: '1' })), Buffer.from('a=1')],
  ['an empty string', new Response(''), Buffer.alloc(0)],
  ['no body', new Response(null), Buffer.alloc(0)],
] as const) {
  test(`a Response of ${what} is answered whole`, async () => {
    const read = await responseBody(response);
    assert.equal(read.kind, 'bytes');
    assert.ok(read.kind === 'bytes' && Buffer.from(read.bytes).equals(body));
  });
}

async function chunksOf(response: Response): Promise<unknown[]> {
  const read = await responseBody(response);
  assert.equal(read.kind, 'stream');
  const chunks: unknown[] = [];
  if (read.kind === 'stream') {
    for (let step = await read.iterator.next(); step.done !== true; step = await read.iterator.next()) {
      chunks.push(step.value);
    }
  }
  return chunks;
}

test('a Response that is still being made streams, first chunk included', async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const first = writer.write(Buffer.from('a'));
  const chunks = chunksOf(new Response(readable));
  await first;
  await nextTurn();
  await writer.write(Buffer.from('b'));
  await writer.close();
  assert.equal(Buffer.concat((await chunks) as Buffer[]).toString(), 'ab');
});

test('a Response whose stream holds text, against the standard, still arrives as that text', async () => {
  const readable = new ReadableStream({
    start(controller) {
      controller.enqueue('one');
      controller.close();
    },
  });
  assert.deepEqual(await chunksOf(new Response(readable)), ['one']);
});

test('a Response that fails before its first chunk, or right after it, rejects', async () => {
  const failing = (chunks: string[]): Response =>
    new Response(
      new ReadableStream({
        pull(controller) {
          const chunk = chunks.shift();
          if (chunk === undefined) controller.error(new Error('upstream died'));
          else controller.enqueue(Buffer.from(chunk));
        },
      }),
    );
  await assert.rejects(responseBody(failing([])), /upstream died/);
  await assert.rejects(responseBody(failing(['a'])), /upstream died/);
});

test('a Response that was read already rejects', async () => {
  const response = new Response('once');
  await response.text();
  await assert.rejects(responseBody(response), TypeError);
});

for (const steps of [0, 1, 2]) {
  test(`a stream that is returned after ${steps} chunks cancels its source`, async () => {
    const cancelled = deferred();
    let n = 0;
    const readable = new ReadableStream(
      {
        async pull(controller) {
          await nextTurn();
          controller.enqueue(Buffer.from(String((n += 1))));
        },
        cancel: () => cancelled.resolve(),
      },
      { highWaterMark: 0 },
    );
    const read = await responseBody(new Response(readable));
    assert.equal(read.kind, 'stream');
    if (read.kind !== 'stream') return;
    for (let step = 0; step < steps; step += 1) await read.iterator.next();
    await read.iterator.return?.();
    await cancelled.promise;
  });
}
