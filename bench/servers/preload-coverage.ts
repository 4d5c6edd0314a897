/**
 * Preloaded into a front and its workers: the first SIGUSR2 starts V8's precise coverage, the second writes the functions
 * that have run since then to `BENCH_COVERAGE_DIR/PID.json`. `PID.started` is there once it counts.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';

const path = join(process.env['BENCH_COVERAGE_DIR'] ?? '.', String(process.pid));
let session: Session | null = null;

process.on('SIGUSR2', () => {
  const toggled = session === null ? start() : stop(session);
  toggled.catch((thrown: unknown) => process.stderr.write(`coverage: ${String(thrown)}\n`));
});

async function start(): Promise<void> {
  session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  writeFileSync(`${path}.started`, '');
}

async function stop(running: Session): Promise<void> {
  const { result } = await running.post('Profiler.takePreciseCoverage');
  writeFileSync(`${path}.part`, JSON.stringify(result));
  renameSync(`${path}.part`, `${path}.json`);
  running.disconnect();
  session = null;
}
