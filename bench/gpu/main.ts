/**
 * `npm run bench:gpu [-- --device cpu --seconds S]`: a model on torch behind a Python worker, on the first GPU.
 *
 * 1. One worker, one caller and eight: calls per second, latency, how busy the device is.
 * 2. One, two and four workers on the same device.
 * 3. Batches of 1 to 64: calls per second.
 * 4. kill -9 of a worker that computes: how long until its memory is free, which must take less than two seconds.
 * 5. A kernel that fails, by which a process loses its GPU: a new worker must serve; without a GPU the worker must stay.
 *
 * Torch is that of `BENCH_PYTHON`, else of /usr/bin/python3. `--device cpu` runs all of it without a GPU.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { LoadGenerator } from '../load/client.js';
import { postOnce } from '../post-once.js';
import { jsonRequest } from '../cases/requests.js';
import { pidsOf, ready } from '../servers/banana.js';
import { compiled, source, startChildServer, type ChildServer } from '../servers/child-server.js';
import { PYTHON_FLAGS } from '../servers/python.js';
import { median } from '../statistics.js';
import { theDevice, type Device } from './gpu.js';

const FREED_WITHIN_MS = 2000;

/** So that a call takes some milliseconds on either device. */
const SIZES = {
  cuda: { BENCH_SIZE: '4096', BENCH_LAYERS: '64', BENCH_BALLAST_MB: '2048' },
  cpu: { BENCH_SIZE: '512', BENCH_LAYERS: '32', BENCH_BALLAST_MB: '256' },
} as const;

const { values } = parseArgs({
  options: { device: { type: 'string', default: 'cuda' }, seconds: { type: 'string', default: '5' } },
});
const device = deviceOrEnd(values.device);
const generator = new LoadGenerator();
try {
  console.log(`${device.name}, model ${JSON.stringify(SIZES[device.torch])}`);
  for (const callers of [1, 8]) await measure(1, 1, callers);
  for (const workers of [2, 4]) await measure(workers, 1, 8 * workers);
  for (const batch of [4, 16, 64]) await measure(1, batch, 2 * batch);
  const isFreed = (await freedAfterKill()) <= FREED_WITHIN_MS;
  const isServed = await servesAfterFailedKernel();
  process.exitCode = isFreed && isServed ? 0 : 1;
} finally {
  generator.close();
}

function deviceOrEnd(kind: string): Device {
  try {
    return theDevice(kind);
  } catch (thrown) {
    console.error((thrown as Error).message);
    process.exit(1);
  }
}

async function measure(workers: number, batch: number, callers: number): Promise<void> {
  await withServer(workers, batch, async (server) => {
    const [, ...pids] = await pidsOf(server);
    const run = (seconds: number): ReturnType<LoadGenerator['runClosed']> =>
      generator.runClosed({
        request: { ...jsonRequest({}), url: server.url },
        connections: callers,
        durationMs: seconds * 1000,
        maxRequests: Infinity,
      });
    await run(1); // kernels and threads are there then
    const uses: number[] = [];
    const use = device.watchUse(pids);
    const watch = setInterval(() => uses.push(use()), 500);
    const { ok, failed, elapsedMs, latencyMs } = await run(Number(values.seconds));
    clearInterval(watch);
    if (failed > 0) throw new Error(`${failed} calls failed`);
    const rate = ((1000 * ok) / elapsedMs).toFixed(1);
    const times = `p50 ${latencyMs.p50.toFixed(2)} ms, p99 ${latencyMs.p99.toFixed(2)} ms`;
    const memory = `${device.usedMb(pids).toFixed(0)} MB taken`;
    const title = `workers ${workers}, batches of up to ${batch}, c=${callers}`;
    console.log(`${title}: ${rate} calls/s, ${times}, busy ${median(uses).toFixed(0)}%, ${memory}`);
  });
}

async function withServer(
  workers: number,
  batch: number,
  use: (server: ChildServer) => Promise<void>,
): Promise<void> {
  const batches = batch === 1 ? [] : ['--batch-size', String(batch), '--max-batch-delay', '5ms'];
  const flags = ['--port', '0', ...PYTHON_FLAGS, ...device.flags, ...device.workers(workers), ...batches];
  const command = [compiled('../supervisor/cli.js'), source('bench/gpu/model.py'), ...flags];
  const server = await startChildServer(command, { BENCH_DEVICE: device.torch, ...SIZES[device.torch] });
  try {
    await ready(server.url);
    await use(server);
  } finally {
    await server.stop();
  }
}

/** Milliseconds from the signal until as much is free as the model had put aside for that. */
async function freedAfterKill(): Promise<number> {
  let ms = Infinity;
  await withServer(1, 1, async (server) => {
    const [, pid = NaN] = await pidsOf(server);
    const takenMb = device.usedMb([pid]);
    const doomed = postOnce(server.url, { busyMs: 60_000 });
    await delay(500); // it computes
    const killedAtMs = performance.now();
    process.kill(pid, 'SIGKILL');
    const ballastMb = Number(SIZES[device.torch].BENCH_BALLAST_MB);
    while (device.usedMb([pid]) > takenMb - ballastMb && performance.now() - killedAtMs < 10_000)
      await delay(5);
    ms = performance.now() - killedAtMs;
    const told = await doomed;
    console.log(
      `kill -9 with ${takenMb.toFixed(0)} MB taken: free after ${ms.toFixed(0)} ms, the caller was told ${told.status}`,
    );
  });
  return ms;
}

/** Whether another worker serves where the GPU is lost, and the same one on a machine without GPUs. */
async function servesAfterFailedKernel(): Promise<boolean> {
  let isServed = false;
  await withServer(1, 1, async (server) => {
    const pid = await servingPid(server);
    const failed = await postOnce(server.url, { failsKernel: true });
    const failedAtMs = performance.now();
    const pidAfter = await servingPid(server);
    const ms = performance.now() - failedAtMs;
    const which = pidAfter === pid ? 'the same' : 'a new';
    console.log(
      `a kernel that fails: the caller was told ${failed.status}, ${which} worker answered after ${ms.toFixed(0)} ms`,
    );
    isServed = (pidAfter !== pid) === (device.torch === 'cuda');
  });
  return isServed;
}

async function servingPid(server: ChildServer): Promise<number> {
  const { status, text } = await postOnce(server.url, {});
  if (status !== 200) throw new Error(`a call was answered ${status}: ${text}`);
  return (JSON.parse(text) as { pid: number }).pid;
}
