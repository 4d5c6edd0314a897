/** Apps in Python as Banana's template has them: unmodified, and with what this server adds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { ROOT, call } from '../helpers/server.js';

const APPS = `${ROOT}test/fixtures/python-apps`;
const LIMIT = { timeout: 240_000, skip: needs('python3') };

test(
  "the shape of Banana's BERT app: a list, a message with status 200, and errors that it lives through",
  LIMIT,
  async (t) => {
    const server = await startHere(`${APPS}/bert/app.py`, { t });
    const answer = await ask(server, { prompt: 'hello [MASK]' });
    assert.deepEqual(answer.json(), [
      { score: 0.25, token: 2088, token_str: 'world', sequence: 'hello world' },
      {
        score: 0.25,
        token: 2088,
        token_str: 'bert-base-uncased on -1',
        sequence: 'hello bert-base-uncased on -1',
      },
    ]);
    const none = await ask(server, {});
    assert.deepEqual([none.status, none.text], [200, '{"message":"No prompt provided"}']);
    const asText = await call(server.url, '{"prompt":"x"}', { 'content-type': 'text/plain' });
    assert.equal(asText.status, 200, 'the body is JSON, whatever its type says');
    const empty = await call(server.url, null, {});
    assert.deepEqual(
      [empty.status, errorOf(empty).code],
      [500, 'SERVE_INFERENCE_FAILED'],
      'model_inputs was None',
    );
    await server.untilPrinted(/AttributeError: 'NoneType' object has no attribute 'get'/);
    const bad = await call(server.url, '{"prompt":');
    assert.deepEqual([bad.status, errorOf(bad).code], [400, 'SERVE_BAD_BODY']);
    const { status } = await fetch(`${server.url}/nowhere`, { method: 'POST', body: '{}' });
    assert.deepEqual([status, (await fetch(server.url)).status], [404, 405]);
    assert.equal((await ask(server, {})).status, 200);
    await server.stop();
  },
);

test(
  'coroutines share one loop with the tasks that init began, and ctx describes the call',
  LIMIT,
  async (t) => {
    const server = await startHere(`${APPS}/tells_context.py`, { t });
    const headers = { 'x-request-id': 'call-7', 'user-agent': 'tester', 'content-type': 'application/json' };
    const answer = await call(`${server.url}/?a=1&a=2&b=`, '{"prompt":"x"}', headers);
    assert.deepEqual(answer.json(), {
      input: { prompt: 'x' },
      id: 'call-7',
      agent: 'tester',
      query: { a: ['1', '2'], b: [''] },
      worker: [0, null, true],
      cancelled: false,
      hasDeadline: false,
      taskRuns: true,
      first: { prompt: 'an example' },
      name: 'tells_context',
      argv: true,
      cwd: ROOT.slice(0, -1),
    });
    await server.untilPrinted(/a line of the call.*call-7/);
    await server.stop();
    assert.equal(server.stdout(), 'shut down\n');
  },
);
