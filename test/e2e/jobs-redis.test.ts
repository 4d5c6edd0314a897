/** `--jobs redis://…`: jobs of many servers in one Redis that may be away, and what ends a start. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { RedisServer } from '../processes/worker/api/store/redis-server.js';
import { makeCertificate } from '../helpers/certificates.js';
import { makeCues } from '../helpers/cues.js';
import { holdPort } from '../helpers/held-port.js';
import { callAsync, cancelJob, jobEnd, jobPage, startAsync } from '../helpers/jobs.js';
import { needs } from '../helpers/needs.js';
import { withoutPackage } from '../helpers/without-package.js';
import { call, eventually, fixture, runCommand, startServer, type Server } from '../helpers/server.js';

const LIMIT = { skip: needs('redis-server'), timeout: 240_000 };
const JSON_BODY = { 'content-type': 'application/json' };

async function startRedis(t: TestContext, ...args: string[]): Promise<RedisServer> {
  const redis = await RedisServer.start(...args);
  t.after(() => redis.down());
  return redis;
}

function startOn(t: TestContext, url: string, env = {}): Promise<Server> {
  const args = ['--jobs', url, '--drain-lag', '0s', '--max-body', '32mb'];
  return startServer(fixture('jobs.mjs'), { t, args, env });
}

async function readiness({ url }: Server): Promise<[number, unknown]> {
  const response = await fetch(`${url}/readyz`);
  return [response.status, ((await response.json()) as { jobs?: string }).jobs];
}

// test/supervisor/jobs/redis/check-redis.test.ts has the other settings, and the kinds of Redis that are refused.
test(
  'a job of one server runs on another, and any of them shows and cancels it; 16 MiB is the largest body, unsafe settings are warned of',
  LIMIT,
  async (t) => {
    const redis = await startRedis(t);
    const cues = makeCues(t);
    const url = `redis://127.0.0.1:${redis.port}`;
    const [a, b] = [await startOn(t, url, cues.env), await startOn(t, url, cues.env)];
    const holds: string[] = [];
    for (const name of ['h1', 'h2'])
      holds.push(await startAsync(a, '/', { until: 'go on' }, { 'x-request-id': name }));
    await Promise.all(['h1', 'h2'].map((name) => cues.untilNoted(`begun ${name} 1`))); // each server has one worker
    const cancelled = await startAsync(a, '/', { until: 'never' });
    assert.equal((await cancelJob(b, cancelled)).status, 204);
    const ends = holds.flatMap((id) => [a, b].map((server) => jobPage(server, id, '?wait=30s')));
    cues.give('go on');
    assert.deepEqual(
      (await Promise.all(ends)).map(({ state }) => state),
      ['succeeded', 'succeeded', 'succeeded', 'succeeded'],
    );
    const aborted = await startAsync(a, '/', { until: 'never' }, { 'x-request-id': 'aborted' });
    await cues.untilNoted('begun aborted 1');
    for (const one of [a, b])
      if ((await jobPage(one, aborted)).state !== 'cancelled') await cancelJob(one, aborted);
    assert.equal((await jobEnd(b, aborted)).state, 'cancelled');
    const large = await callAsync(a, '/', JSON.stringify({ x: 'x'.repeat(17 * 1024 ** 2) }));
    assert.deepEqual([large.status, /at most 16/.test(large.text)], [413, true], large.text.slice(0, 200));
    assert.match(b.stderr(), /appendonly yes, appendfsync always.*may lose accepted jobs/);
    const waiting = await startAsync(a, '/', {}, { 'x-banana-job-delay-seconds': '3' });
    await a.stop();
    assert.equal(
      (await jobEnd(b, waiting)).state,
      'succeeded',
      'a server that ends leaves its jobs to the others',
    );
    await b.stop();
  },
);

test('Redis away, at the start or later: jobs are refused, calls go on, all recovers', LIMIT, async (t) => {
  const redis = await startRedis(t, '--requirepass', 'secret-word');
  await redis.down();
  const cues = makeCues(t);
  const server = await startOn(t, `redis://:secret-word@127.0.0.1:${redis.port}`, cues.env);
  await server.until(({ model }) => model.state === 'ready');
  for (const round of ['start', 'later']) {
    await eventually(
      async () => (await readiness(server))[1] === 'unavailable',
      60_000,
      () => round,
    );
    assert.deepEqual(await readiness(server), [200, 'unavailable'], round);
    const refused = await callAsync(server, '/', '{}');
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '5'], refused.text);
    assert.equal((await call(`${server.url}/`, '{"result":1}', JSON_BODY)).status, 200);
    await redis.up();
    await eventually(
      async () => (await readiness(server))[1] === undefined,
      60_000,
      () => 'not well again',
    );
    const id = await startAsync(server, '/', {});
    assert.equal((await jobEnd(server, id)).state, 'succeeded');
    await redis.down();
  }
  assert.doesNotMatch(server.stderr(), /secret-word/);
  await server.stop();
});

test('what cannot work ends the start with 2 and the reason, without the password', LIMIT, async (t) => {
  const guarded = await startRedis(t, '--requirepass', 'right');
  for (const [url, reason] of [
    [`redis://:secret-word@127.0.0.1:${guarded.port}`, /--jobs: Redis at 127\.0\.0\.1:\d+: WRONGPASS/],
    [`redis://127.0.0.1:${guarded.port}`, /--jobs: Redis at 127\.0\.0\.1:\d+: NOAUTH/],
    ['redis-sentinel://:secret-word@127.0.0.1:1', /--jobs: this value is not allowed/],
  ] as const) {
    const command = runCommand([fixture('jobs.mjs'), '--port', '0', '--jobs', url], { t });
    assert.deepEqual(await command.ended, { code: 2, signal: null }, command.stderr());
    assert.match(command.stderr(), reason);
    assert.doesNotMatch(command.stderr(), /secret-word/);
  }
});

test('without its packages the start ends with 2, and says what to install', LIMIT, async (t) => {
  const command = withoutPackage(t, 'bullmq');
  const args = [fixture('jobs.mjs'), '--port', '0', '--jobs', 'redis://127.0.0.1:1'];
  const { ended, stderr } = runCommand(args, { t, command });
  assert.deepEqual(await ended, { code: 2, signal: null }, stderr());
  assert.match(stderr(), /needs the packages redis and bullmq: npm install redis bullmq@6\.7/);
});

test('TLS, by rediss://', { ...LIMIT, skip: LIMIT.skip || needs('openssl') }, async (t) => {
  const { certPath, keyPath } = makeCertificate(t);
  const tlsPort = await holdPort();
  await startRedis(
    t,
    ...['--tls-port', String(tlsPort), '--tls-cert-file', certPath, '--tls-key-file', keyPath],
    ...['--tls-auth-clients', 'no', '--requirepass', 'word'],
  );
  const server = await startOn(t, `rediss://:word@localhost:${tlsPort}`, {
    NODE_EXTRA_CA_CERTS: certPath,
    ...makeCues(t).env,
  });
  assert.equal((await jobEnd(server, await startAsync(server, '/', {}))).state, 'succeeded');
  await server.stop();
});
