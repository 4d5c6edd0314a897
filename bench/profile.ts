/**
 * `node dist/bench/profile.js [c1|c32|..] [small|service|json|echo|batch]`: where the time of a call goes, in front and worker.
 * Prints self time per area and per function, in microseconds per request. It is time on the clock: on a machine
 * with more to run than cores, a function that was interrupted is charged for the interruption.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { bigBytesRequest, bigJsonRequest, jsonRequest, smallJsonRequest } from './cases/requests.js';
import { readProfile, type SelfTimes } from './cpu-profile.js';
import { LoadGenerator } from './load/client.js';
import type { RequestSpec } from './load/plan.js';
import { pidsOf, startBanana } from './servers/banana.js';
import { compiled, source } from './servers/child-server.js';

const SECONDS = 4;
const TOP = 25;

interface Workload {
  readonly app: string;
  /** Called in place of `/`. */
  readonly path?: string;
  readonly request: () => Omit<RequestSpec, 'url'>;
  readonly env?: Readonly<Record<string, string>>;
}

/** The apps and the requests that they get. */
const WORKLOADS: Readonly<Record<string, Workload>> = {
  small: { app: 'bench/apps/small.mjs', request: smallJsonRequest },
  json: { app: 'bench/apps/echo.mjs', request: bigJsonRequest },
  echo: { app: 'bench/apps/echo.mjs', request: bigBytesRequest },
  service: { app: 'bench/apps/service.mjs', path: '/predictions/service', request: smallJsonRequest },
  // Runs that cost nothing, in batches: what is left is the price of a call in a batch.
  batch: {
    app: 'bench/apps/batch.mjs',
    request: () => jsonRequest({}),
    env: { RUN_MS: '0', ITEM_MS: '0', BANANA_BATCH_SIZE: '32', BANANA_MAX_BATCH_DELAY: '5ms' },
  },
};

const [, , load = 'c32', workload = 'small'] = process.argv;
if (!/^c\d+$/.test(load))
  throw new RangeError(`"${load}" is not a load: c1, c32 or another number of callers`);
if (!Object.hasOwn(WORKLOADS, workload))
  throw new RangeError(`"${workload}" is not ${Object.keys(WORKLOADS).join(', ')}`);
await profile(Number(load.slice(1)), WORKLOADS[workload] as Workload);

async function profile(connections: number, { app, path = '/', request, env = {} }: Workload): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'profile-'));
  const server = await startBanana(source(app), {
    preload: 'servers/preload-profile.js',
    cli: compiled('../supervisor/cli.js'), // its modules, by whose folders the areas are told apart
    env: { ...env, BENCH_PROFILE_DIR: folder },
  });
  const generator = new LoadGenerator();
  try {
    const [front = NaN, worker = NaN] = await pidsOf(server);
    const plan = {
      request: { ...request(), url: `${server.url}${path}` },
      connections,
      maxRequests: Infinity,
    };
    await generator.runClosed({ ...plan, durationMs: 2000 }); // warm-up
    await toggleProfiles([front, worker]);
    const { ok, elapsedMs } = await generator.runClosed({ ...plan, durationMs: SECONDS * 1000 });
    await toggleProfiles([front, worker]);
    console.log(`c=${connections}: ${((ok / elapsedMs) * 1000).toFixed(0)} req/s while profiled\n`);
    for (const [who, pid] of [
      ['front', front],
      ['worker', worker],
    ] as const) {
      const text = readFileSync(join(folder, `${pid}.cpuprofile`), 'utf8');
      print(who, readProfile(text), ok);
    }
  } finally {
    generator.close();
    await server.stop();
    rmSync(folder, { recursive: true });
  }
}

async function toggleProfiles(pids: readonly number[]): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGUSR2');
  await delay(1000);
}

function print(who: string, { idleUs, busyUs, byFunction, byArea }: SelfTimes, requests: number): void {
  const line = ([name, us]: [string, number]): string =>
    `${(us / requests).toFixed(2).padStart(8)} us ${((100 * us) / busyUs).toFixed(1).padStart(5)}%  ${name}`;
  const idle = (100 * idleUs) / (idleUs + busyUs);
  console.log(
    `${who}: ${(busyUs / requests).toFixed(1)} us per request, idle ${idle.toFixed(0)}% of the time`,
  );
  console.log(byArea.map(line).join('\n'));
  console.log(`  top ${TOP} functions by self time:`);
  console.log(`${byFunction.slice(0, TOP).map(line).join('\n')}\n`);
}
