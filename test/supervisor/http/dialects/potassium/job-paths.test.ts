/** The pages of jobs: clients that leave while they wait, and who may read the list. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { KeptJobs } from '../../../../../supervisor/jobs/kept-jobs.js';
import { eventually } from '../../../../helpers/server.js';
import { countedJobs, fakeModel, onlyModel, serveHandler } from '../../serve-handler.js';

const LIMIT = { timeout: 60_000 };
const KEY = 's3cret';

async function open(t: TestContext, keys: readonly string[] = []): Promise<{ url: string; jobs: KeptJobs }> {
  const jobs = countedJobs();
  const models = onlyModel(fakeModel('model', { kind: 'background' }));
  const url = await serveHandler(t, { models, jobs, keys });
  const headers = { 'x-banana-api-key': KEY };
  assert.equal(
    (await readWhole(url, { method: 'POST', body: '{}', headers })).headers.get('x-banana-job-id'),
    '1',
  );
  return { url, jobs };
}

/** Reads the body too: a connection whose answer nobody has read leaves a timer of fetch behind. */
async function readWhole(url: string, init: RequestInit): Promise<Response> {
  const reply = await fetch(url, init);
  await reply.arrayBuffer();
  return reply;
}

function untilWatchers(jobs: KeptJobs, count: number): Promise<void> {
  return eventually(
    () => jobs.watchers.count === count,
    60_000,
    () => `${jobs.watchers.count} watchers`,
  );
}

const SSE = { accept: 'text/event-stream' };

for (const [what, path, headers] of [
  ['for its end', '/_k/jobs/1?wait=50s', {}],
  ['for its result', '/_k/jobs/1/result?wait=50s', {}],
  ['for its events', '/_k/jobs/1', SSE],
] as const)
  test(`a client that waits ${what} and leaves is forgotten`, LIMIT, async (t) => {
    const { url, jobs } = await open(t);
    const leaving = new AbortController();
    const asked = fetch(url + path, { headers, signal: leaving.signal }).then((reply) => reply.text());
    await untilWatchers(jobs, 1);
    leaving.abort();
    await assert.rejects(asked, { name: 'AbortError' });
    await untilWatchers(jobs, 0);
  });

test('a wait above 50 s is refused, and told so', LIMIT, async (t) => {
  const { url } = await open(t);
  for (const wait of ['51s', 'long']) {
    const reply = await fetch(`${url}/_k/jobs/1?wait=${wait}`);
    assert.equal(reply.status, 400);
    assert.match(await reply.text(), /wait must be .*50s at most/);
  }
});

test('HEAD of events has their head, and watches nothing', LIMIT, async (t) => {
  const { url, jobs } = await open(t);
  const reply = await readWhole(`${url}/_k/jobs/1`, { method: 'HEAD', headers: SSE });
  assert.equal(reply.status, 200);
  assert.match(reply.headers.get('content-type') ?? '', /^text\/event-stream/);
  await untilWatchers(jobs, 0);
});

test(
  'the list is for those who have the key, without keys for programs of this machine',
  LIMIT,
  async (t) => {
    const [{ url: keyed }, { url: keyless }] = [await open(t, [KEY]), await open(t)];
    const proxied = { 'x-forwarded-for': '10.0.0.7' };
    for (const [url, headers, status] of [
      [keyed, {}, 401],
      [keyed, { 'x-banana-api-key': 'wrong' }, 401],
      [keyed, { 'x-banana-api-key': KEY, ...proxied }, 200],
      [keyless, {}, 200],
      [keyless, proxied, 403],
      [keyless, { origin: keyless }, 403],
    ] as const)
      assert.equal((await readWhole(`${url}/_k/jobs`, { headers })).status, status, JSON.stringify(headers));
  },
);
