/** Starts a worker for a slot: its spec and environment, the relay of its output, and the guard that ends it with the server. */
import { randomBytes } from 'node:crypto';
import { STREAM_WINDOW_BYTES, type StartSpec } from '../../protocol/wire/messages.js';
import type { OutputRelay } from '../observe/output-relay.js';
import { limitOf } from '../options/limit-names.js';
import type { FullModelRef } from '../options/model-name.js';
import type { ModelOptions } from '../options/resolve.js';
import type { OrphanGuard } from '../processes/orphan-guard.js';
import type { Devices } from '../machine/devices.js';
import type { Placement } from '../machine/placement.js';
import type { WorkerProgram } from '../runtimes/runtime.js';
import { NO_TELEMETRY } from '../runtimes/telemetry.js';
import type { ModelSpec } from './model-spec.js';
import { WorkerHandle } from '../processes/worker-handle.js';
import type { WorkerLimits, WorkerListener } from '../processes/worker-listener.js';
import { VERSION } from '../version.js';

/** The parts that all workers of a server share. */
export interface WorkerResources {
  readonly guard: OrphanGuard;
  readonly devices: Pick<Devices, 'threads'>;
  readonly relay: OutputRelay;
  /** Whether prints are marked with their call, for the JSON log. */
  readonly attributePrints: boolean;
  /** Returns the name of a model in logs if the server has several; else an empty string. */
  labelOf(model: FullModelRef): string;
  /** The largest answer that is not a stream. */
  readonly maxOutputBytes: number;
  /** Pattern of the names of variables that no worker gets. */
  readonly withheldEnv: RegExp | null;
}

export interface SlotPlacement {
  readonly index: number;
  readonly placement: Placement;
}

export function startWorker(
  model: ModelSpec,
  options: ModelOptions,
  { guard, devices, relay, attributePrints, labelOf, maxOutputBytes, withheldEnv }: WorkerResources,
  { index, placement }: SlotPlacement,
  listener: WorkerListener,
): WorkerHandle {
  const { program } = model;
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
    ...(options.concurrency === null ? {} : { concurrency: options.concurrency }),
    ...(model.resolved.explicit.has('rawItems') ? { rawItems: options.rawItems } : {}),
    serverVersion: VERSION,
    ...(model.service === null ? {} : { service: model.service }),
  };
  const worker = new WorkerHandle(
    {
      command: program.command,
      cwd: program.cwd,
      env: { ...unlessSet(program, devices.threads), ...program.env, ...placement.env },
      withheld: withheldEnv,
      ...(program.stuckAt === undefined ? {} : { stuckAt: program.stuckAt }),
    },
    spec,
    workerLimits(model, options, maxOutputBytes),
    {
      ...listener,
      onGone: (death) => {
        guard.remove(death.pid);
        listener.onGone(death);
      },
    },
  );
  guard.add(worker.pid);
  const source = {
    label: () => labelOf(model),
    worker: index,
    mark,
    runningRequestId: () => worker.lookUpRunningRequestId(),
  };
  relay.attach(worker.stdout, 'stdout', source);
  relay.attach(worker.stderr, 'stderr', source);
  return worker;
}

/** Switches off telemetry, and limits threads to the worker's share; leaves out variables that the operator has set. */
function unlessSet({ threadVariables }: WorkerProgram, threads: number): Record<string, string> {
  const shares = threadVariables.map((name) => [name, String(threads)] as const);
  const all = [...Object.entries(NO_TELEMETRY), ...shares];
  return Object.fromEntries(all.filter(([name]) => process.env[name] === undefined));
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
