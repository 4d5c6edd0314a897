/**
 * Preloaded into a front and its workers: the first SIGUSR2 starts a CPU profile, the second writes it to
 * `BENCH_PROFILE_DIR/PID.cpuprofile`. Start-up is left out, unlike with `--cpu-prof`.
 */
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';

const SAMPLING_INTERVAL_US = 200;

let session: Session | null = null;

process.on('SIGUSR2', () => {
  const toggled = session === null ? start() : stop(session);
  toggled.catch((thrown: unknown) => process.stderr.write(`profiler: ${String(thrown)}\n`));
});

async function start(): Promise<void> {
  session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLING_INTERVAL_US });
  await session.post('Profiler.start');
}

async function stop(running: Session): Promise<void> {
  const { profile } = await running.post('Profiler.stop');
  writeFileSync(
    join(process.env['BENCH_PROFILE_DIR'] ?? '.', `${process.pid}.cpuprofile`),
    JSON.stringify(profile),
  );
  running.disconnect();
  session = null;
}
