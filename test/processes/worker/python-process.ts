/** A Python worker with the test as its front, and an app written for one test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { ROOT } from '../../helpers/server.js';
import { appFolder } from '../../worker/app-folder.js';
import type { StartSpec } from '../../../protocol/wire/messages.js';
import { WorkerProcess } from './worker-process.js';

/** Compiled Python files are kept for the other workers of this test file: compiling takes half of a start. */
const CACHE = mkdtempSync(join(tmpdir(), 'banana-pycache-'));
process.on('exit', () => rmSync(CACHE, { recursive: true, force: true }));

const COMMAND = [
  ...['env', '-u', 'PYTHONDONTWRITEBYTECODE', `PYTHONPYCACHEPREFIX=${CACHE}`],
  ...['python3', '-u', `${ROOT}worker/python/banana_worker/__main__.py`],
];

/** A worker whose app is this Python; not started yet. */
export function pythonWorkerOf(t: TestContext, source: string): { worker: WorkerProcess; app: string } {
  const folder = appFolder(t, { 'app.py': source });
  return { worker: new WorkerProcess(t, COMMAND), app: join(folder, 'app.py') };
}

export async function startedPython(
  t: TestContext,
  source: string,
  spec: Partial<StartSpec> = {},
): Promise<WorkerProcess> {
  const { worker, app } = pythonWorkerOf(t, source);
  await worker.start(app, spec);
  return worker;
}
