/** Starts a worker for a slot: its spec and environment, the relay of its output, and the guard that ends it with the server. */
import { randomBytes } from 'node:crypto';
import { env } from 'node:process';
import { STREAM_WINDOW_BYTES } from '../../protocol/wire/limits.js';
import type { StartSpec } from '../../protocol/wire/messages.js';
import { limitOf, type ModelOptions } from '../options/resolve.js';
import { spawnWorker, type SpawnOptions, type WorkerProcess } from '../processes/spawn-worker.js';
import type { Placement } from '../machine/placement.js';
import type { WorkerProgram } from '../runtimes/runtime.js';
import { NO_TELEMETRY } from '../runtimes/onnx/find-onnxruntime.js';
import type { Slot } from '../slots/slot.js';
import type { ServerResources } from './model-resources.js';
import { asksForBatches, type ModelSpec } from './model-spec.js';
import { WorkerHandle } from '../processes/worker-handle.js';
import type { WorkerLimits, WorkerListener } from '../processes/worker-listener.js';
import { VERSION } from '../version.js';

/** @throws Error if the program cannot be started */
export function startWorker(
  model: ModelSpec,
  options: ModelOptions,
  resources: ServerResources,
  { index, placement }: Pick<Slot, 'index' | 'placement'>,
  skipsWarmUp: boolean,
  listener: WorkerListener,
): WorkerHandle {
  const { devices, relay, attributePrints, labelOf, maxOutputBytes } = resources;
  const { process, lateEnv } = startProcess(model, placement, resources);
  const mark = attributePrints ? randomBytes(8).toString('hex') : '';
  const spec: StartSpec = {
    app: model.app,
    ...(model.appPlace === '' ? {} : { appPlace: model.appPlace }),
    model: model.name,
    version: model.version,
    worker: index,
    device: { gpu: placement.gpu, threads: devices.threads },
    limits: { maxOutputBytes, streamWindowBytes: STREAM_WINDOW_BYTES },
    printMark: mark,
    batchSize: model.resolved.explicit.has('batchSize') ? options.batchSize : 0,
    ...(asksForBatches(model) ? { asksForBatches: true } : {}),
    ...(options.concurrency === null ? {} : { concurrency: options.concurrency }),
    ...(model.resolved.explicit.has('rawItems') ? { rawItems: options.rawItems } : {}),
    ...(skipsWarmUp ? { skipsWarmUp } : {}),
    serverVersion: VERSION,
    ...(model.service === null ? {} : { service: model.service }),
    ...(lateEnv === null ? {} : { env: lateEnv }),
  };
  const worker = new WorkerHandle(process, spec, workerLimits(model, options, maxOutputBytes), listener);
  const source = {
    label: () => labelOf(model),
    worker: index,
    mark,
    pid: () => worker.pid,
    runningRequestId: () => worker.lookUpRunningRequestId(),
    lastRequestId: () => worker.lookUpLastRequestId(),
  };
  relay.attach(worker.stdout, 'stdout', source);
  relay.attach(worker.stderr, 'stderr', source);
  return worker;
}

/**
 * Takes a spare process, or starts one. `lateEnv`: variables of the slot that a spare was started without, for the message
 * `start`; null if it has them. @throws Error if the program cannot be started
 */
function startProcess(
  { program }: ModelSpec,
  placement: Placement,
  { spares, guard, devices, withheldEnv }: ServerResources,
): { readonly process: WorkerProcess; readonly lateEnv: Readonly<Record<string, string>> | null } {
  const bare = bareProgram(program, withheldEnv);
  const env = { ...threadShares(program, devices.threads), ...placement.env };
  const spare = program.mayWait === true ? spares.take(bare) : null;
  if (spare !== null) return { process: spare, lateEnv: env };
  const process = spawnWorker({ ...bare, env: { ...bare.env, ...env } });
  guard.add(process.pid);
  return { process, lateEnv: null };
}

/** The program without what a slot adds to its environment; its telemetry is off unless the operator has set that. */
export function bareProgram(program: WorkerProgram, withheld: RegExp | null): SpawnOptions {
  const { command, env, stuckAt } = program;
  return {
    command,
    env: { ...unlessSet(NO_TELEMETRY), ...env },
    withheld,
    ...(stuckAt === undefined ? {} : { stuckAt }),
  };
}

/** Limits the threads of libraries to the worker's share, where neither operator nor runtime has set them. */
function threadShares({ threadVariables = [], env }: WorkerProgram, threads: number): Record<string, string> {
  const names = threadVariables.filter((name) => env[name] === undefined);
  return unlessSet(Object.fromEntries(names.map((name) => [name, String(threads)])));
}

/** Leaves out variables that the operator has set. */
function unlessSet(variables: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => env[name] === undefined));
}

/** `options`: those in force, which are the app's own where the operator has given none. */
export function workerLimits(
  { resolved }: Pick<ModelSpec, 'resolved'>,
  options: ModelOptions,
  maxOutputBytes: number,
): WorkerLimits {
  return {
    initTimeout: limitOf('initTimeout', options.initTimeout, resolved),
    runTimeout: limitOf('runTimeout', options.runTimeout, resolved),
    maxOutputBytes,
  };
}
