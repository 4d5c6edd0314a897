/** The page of a job and its events: what they hold in memory for those who read them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  MAX_INCLUDED_BYTES,
  describeJob,
  jobEvents,
} from '../../../../../supervisor/http/dialects/potassium/job-paths.js';
import type { RequestContext } from '../../../../../supervisor/http/request/request-context.js';
import type { JobRecord } from '../../../../../supervisor/jobs/job-record.js';
import { collectNow } from '../../../../../supervisor/memory/gc.js';

const MIB = 1024 * 1024;

function record(bytes: number, contentType: string): JobRecord {
  const head = { status: 200, contentType };
  const end = { endedAt: 0, runMs: 1, error: null, result: { head, bytes, isDropped: false } };
  return { id: '1', createdAt: 0, begunAt: 0, state: 'succeeded', attempts: 1, end } as unknown as JobRecord;
}

function contextOf(body: Buffer, job: JobRecord): RequestContext {
  const request = new IncomingMessage(new Socket());
  const jobs = {
    results: { hold: () => ({ body: Promise.resolve(body), release: () => {} }) },
    get: () => Promise.resolve(job),
    watchers: { add: () => () => {} },
  };
  return { backend: { jobs }, request, response: new ServerResponse(request) } as unknown as RequestContext;
}

/** V8 frees the memory of collected buffers on another thread. */
async function bufferBytes(): Promise<number> {
  for (let i = 0; i < 5; i += 1) {
    collectNow();
    await sleep(20);
  }
  return process.memoryUsage().arrayBuffers;
}

/** Growth of the memory, once that thread has done its work. */
async function grownBytes(before: number, limitBytes: number): Promise<number> {
  let grown = Infinity;
  for (const end = Date.now() + 60_000; grown >= limitBytes && Date.now() < end;) {
    grown = (await bufferBytes()) - before;
  }
  return grown;
}

test('nothing of a page stays in memory with the result that the store keeps', async () => {
  const kept = Array.from({ length: 32 }, (_, i) => Buffer.alloc(MAX_INCLUDED_BYTES, i));
  const before = await bufferBytes();
  for (const body of kept) {
    const job = record(body.length, 'application/octet-stream');
    const { pieces, bytes } = await describeJob(contextOf(body, job), job, true);
    const page = Buffer.concat([...pieces]);
    assert.equal(page.length, bytes);
    const { result } = JSON.parse(page.toString()) as { result: string };
    assert.ok(result === body.toString('base64'));
  }
  const grown = await grownBytes(before, 8 * MIB);
  assert.ok(grown < 8 * MIB, `${grown} bytes for ${kept.length} results`);
});

test('a client that does not read the event of a large result makes the front hold a part of it', async () => {
  const body = Buffer.from(`[${'\n'.repeat(MAX_INCLUDED_BYTES - 2)}]`);
  const job = record(body.length, 'application/json');
  const before = await bufferBytes();
  const streams = [];
  for (let i = 0; i < 32; i += 1) {
    const stream = jobEvents(contextOf(body, job), '1', true);
    await once(stream, 'readable');
    assert.equal(String(stream.read()), 'data: ');
    await once(stream, 'readable');
    streams.push(stream);
  }
  const grown = await grownBytes(before, 16 * MIB);
  assert.ok(grown < 16 * MIB, `${grown} bytes for ${streams.length} clients`);
  for (const stream of streams) stream.destroy();
});

test('the event of a result with line feeds is one line', async () => {
  const body = Buffer.from(`{\r\n"a": [${'1,\n'.repeat(100_000)}1]}`);
  const job = record(body.length, 'application/json');
  const text = Buffer.concat(await jobEvents(contextOf(body, job), '1', true).toArray()).toString();
  assert.match(text, /^data: [^\r\n]*\n\n$/);
  const { result } = JSON.parse(text.slice('data: '.length)) as { result: { a: number[] } };
  assert.equal(result.a.length, 100_001);
});
