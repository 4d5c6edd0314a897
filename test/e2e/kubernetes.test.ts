/** The YAML of docs/deploy.md, with a real server: the answers to its probes, and whether its numbers suit the defaults. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { OPTIONS } from '../../supervisor/options/table.js';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { ROOT, isAlive, startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const PAGE = readFileSync(`${ROOT}docs/deploy.md`, 'utf8');
const YAML = /```yaml\n([\s\S]*?)```/.exec(PAGE)?.[1] ?? '';
const READINESS = probeOf('readinessProbe');
const LIVENESS = probeOf('livenessProbe');

interface Probe {
  readonly path: string;
  readonly port: number;
}

function probeOf(name: string): Probe {
  const [, path, port] = new RegExp(`${name}:\\s+httpGet: { path: (\\S+), port: (\\d+) }`).exec(YAML) ?? [];
  assert.ok(path !== undefined, `the page has a ${name}`);
  return { path, port: Number(port) };
}

function numberOf(name: string): number {
  const found = new RegExp(`${name}: (\\d+)`).exec(YAML)?.[1];
  assert.ok(found !== undefined, `the page has a ${name}`);
  return Number(found);
}

/** The results of a kubelet's two probes, which send no key. */
async function probed(server: Server): Promise<{ ready: boolean; alive: boolean }> {
  const passes = async ({ path }: Probe): Promise<boolean> => {
    const { status } = await fetch(server.url + path);
    return status >= 200 && status < 400;
  };
  return { ready: await passes(READINESS), alive: await passes(LIVENESS) };
}

test('the port is the one on which a server and its image listen', () => {
  const port = numberOf('containerPort');
  const image = readFileSync(`${ROOT}templates/new/Dockerfile.template`, 'utf8');
  const exposed = Number(/^EXPOSE (\d+)$/m.exec(image)?.[1]);
  assert.deepEqual([port, READINESS.port, LIVENESS.port, exposed], Array(4).fill(OPTIONS.port.default));
});

test('the grace period is longer than a drain, and the page names both and the lag', () => {
  const graceSeconds = numberOf('terminationGracePeriodSeconds');
  const drainSeconds = OPTIONS.drainTimeout.default / 1000;
  const lagSeconds = OPTIONS.drainLag.default / 1000;
  assert.ok(graceSeconds > drainSeconds);
  assert.ok(
    PAGE.includes(`The default grace of ${graceSeconds} seconds covers the drain of ${drainSeconds};`),
  );
  assert.ok(PAGE.includes(`After SIGTERM calls are taken for ${lagSeconds} more seconds (\`--drain-lag\`)`));
});

withOneRuntime(({ app }) => {
  test(
    'the probes follow a server from its start to its end; a pod is never restarted meanwhile',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      cues.give('init may not end');
      const server = await startServer(app('works'), {
        t,
        env: cues.env,
        key: 'k',
        args: ['--api-key', 'k'],
      });
      const withKey = { headers: { 'x-banana-api-key': 'k' } };
      const pidNow = async (): Promise<number> => (await server.status()).model.workers[0]?.pid as number;

      await server.until(({ model }) => model.workers[0]?.state === 'initializing');
      assert.deepEqual(await probed(server), { ready: false, alive: true }, 'starting');

      cues.give('init may end');
      await server.until(({ state }) => state === 'ready');
      assert.deepEqual(await probed(server), { ready: true, alive: true }, 'ready');

      rmSync(join(cues.folder, 'init may end'));
      const killed = await pidNow();
      process.kill(killed, 'SIGKILL');
      await server.until(({ model }) => model.workers[0]?.restarts === 1 && !isAlive(killed));
      const held = ask(server, {}, { id: 'held', ...withKey });
      assert.deepEqual(await probed(server), { ready: false, alive: true }, 'its only worker is replaced');
      cues.give('init may end');
      assert.equal((await held).status, 200, 'a call is held meanwhile');
      assert.deepEqual(await probed(server), { ready: true, alive: true }, 'ready again');

      const running = ask(server, { until: 'go on' }, { id: 'running', ...withKey });
      await cues.untilNoted('begun running');
      assert.deepEqual(await probed(server), { ready: true, alive: true }, 'its only worker is busy');

      server.process.kill('SIGTERM');
      await server.until(({ state }) => state === 'draining');
      assert.deepEqual(await probed(server), { ready: false, alive: true }, 'draining');
      cues.give('go on');
      assert.equal((await running).status, 200);
      assert.deepEqual(await server.ended, { code: 0, signal: null });
    },
  );

  test(
    'a pod whose workers cannot start again is not ready, and is not restarted for it',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--restart-limit', '0', '--on-crash-loop', 'stay'];
      cues.give('intact');
      const server = await startServer(app('throws-in-init'), { t, env: cues.env, args });
      const { model } = await server.until(({ state }) => state === 'ready');
      cues.give('broken');
      process.kill(model.workers[0]?.pid as number, 'SIGKILL');
      await server.until(({ state }) => state === 'failing');
      assert.deepEqual(await probed(server), { ready: false, alive: true });
      server.process.kill('SIGINT');
      await server.ended;
    },
  );
});
