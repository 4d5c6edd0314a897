/** A Potassium app: handlers, background jobs and the status that the platform reads. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorOf } from '../helpers/ask.js';
import { endOf, jobOf, post, potassiumStatus, startJob } from '../helpers/potassium.js';
import { call, fixture } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

const JSON_TYPE = { 'content-type': 'application/json' };

interface Seen {
  readonly id: string;
  readonly json: unknown;
  readonly query: string | null;
  readonly calls: number;
}

describe('a Potassium app', { timeout: 240_000 }, () => {
  const shared = shareServer(fixture('potassium.mjs'));

  test('a handler gets the JSON, the query and the id of its call, and the context of its worker', async () => {
    const seen = (await post(shared.server, '/?q=1', { a: 'é' }, 'my-id')).json<Seen>();
    assert.deepEqual([seen.id, seen.json, seen.query], ['my-id', { a: 'é' }, '1']);
    const next = (await post(shared.server, '/', {})).json<Seen>();
    assert.equal(next.calls, seen.calls + 1, 'the context stays');
  });

  for (const [kind, status, text] of [
    ['a status', 201, '{"made":true}'],
    ['text', 200, 'text'],
    ['chunks', 200, 'é\u0001c'],
    ['late chunks', 203, 'ab'],
    ['an empty status', 204, ''],
    ['a thrown Response', 404, '{"message":"no such model"}'],
  ] as const)
    test(`a handler that answers with ${kind}: ${status}`, async () => {
      const answer = await post(shared.server, '/answer', kind);
      assert.deepEqual([answer.status, answer.text.trim()], [status, text]);
    });

  test('a throw is 500 without its text, which is in the log', async () => {
    const answer = await post(shared.server, '/answer', 'a throw');
    assert.equal(answer.status, 500);
    assert.doesNotMatch(answer.text, /secret/);
    await shared.server.untilPrinted('secret detail');
  });

  for (const [condition, path, body, headers, status, code] of [
    ['malformed JSON', '/', '{"a":', JSON_TYPE, 400, 'SERVE_BAD_BODY'],
    ['another content type', '/', '{}', { 'content-type': 'text/plain' }, 400, 'SERVE_BAD_REQUEST'],
    ['an unknown route', '/nowhere', '{}', JSON_TYPE, 404, 'SERVE_NOT_FOUND'],
  ] as const)
    test(`${condition} is ${status} ${code}`, async () => {
      const answer = await call(shared.server.url + path, body, headers);
      assert.deepEqual([answer.status, errorOf(answer).code], [status, code]);
    });

  test('a background call is answered at once; its job is queued, running, then keeps the result', async () => {
    const first = await startJob(shared.server, '/later', { until: 'go', result: { a: 'é' } }, 'first');
    const second = await startJob(shared.server, '/later', {}, 'second');
    await shared.cues.untilNoted('begun first');
    assert.equal((await jobOf(shared.server, first)).state, 'running');
    assert.equal((await jobOf(shared.server, second)).state, 'queued');
    shared.cues.give('go');
    const ended = await endOf(shared.server, first);
    assert.deepEqual([ended.state, ended.result, ended.requestId], ['succeeded', { a: 'é' }, 'first']);
    assert.equal((await endOf(shared.server, second)).state, 'succeeded');
  });

  test('a background function that throws fails its job', async () => {
    const job = await endOf(shared.server, await startJob(shared.server, '/later', { throws: 'secret' }));
    assert.deepEqual([job.state, job.error?.code], ['failed', 'SERVE_INFERENCE_FAILED']);
    assert.doesNotMatch(job.error?.message ?? '', /secret/);
  });

  test('the status counts each POST once, and shows whether the worker is busy', async () => {
    const before = await potassiumStatus(shared.server);
    assert.equal(before.gpu_available, true);
    const held = post(shared.server, '/work', { until: 'go' }, 'held');
    await shared.cues.untilNoted('begun held');
    const during = await potassiumStatus(shared.server, '/__status__');
    assert.deepEqual([during.gpu_available, during.in_flight], [false, 1]);
    shared.cues.give('go');
    assert.equal((await held).status, 200);
    const after = await potassiumStatus(shared.server);
    assert.equal(after.sequence_number, before.sequence_number + 1);
  });

  test('a warm-up is answered with 200', async () => {
    const answer = await call(`${shared.server.url}/_k/warmup`, '{}', JSON_TYPE);
    assert.equal(answer.status, 200, answer.text);
  });
});
