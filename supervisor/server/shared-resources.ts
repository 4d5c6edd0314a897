/** Builds the resources that all models of a server share: devices, memory for bodies, log, output of workers, jobs, webhooks. */
import type { MemoryBudget } from '../budget/memory-budget.js';
import { ByteBudget } from '../dispatch/byte-budget.js';
import type { SendAhead } from '../dispatch/send-ahead.js';
import type { KeptJobs } from '../jobs/kept-jobs.js';
import type { Devices } from '../machine/devices.js';
import type { ServerResources } from '../models/model-resources.js';
import type { LogFile } from '../observe/log-file.js';
import type { Log } from '../observe/log.js';
import { OutputRelay } from '../observe/output-relay.js';
import type { OutputWriter } from '../observe/output-writer.js';
import { PrintCopies } from '../observe/print-copies.js';
import type { PrintReceiver } from '../observe/prints.js';
import type { ServerOptions } from '../options/resolve.js';
import type { OrphanGuard } from '../processes/orphan-guard.js';
import type { SpareProcesses } from '../processes/spare-processes.js';
import { retireLimits } from '../processes/worker-stop.js';
import { SpawnGate } from '../slots/spawn-gate.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import { chooseStartReporter } from './start-progress.js';

export interface SharedParts {
  readonly devices: Devices;
  readonly guard: OrphanGuard;
  readonly spares: SpareProcesses;
  /** Null: none was given. */
  readonly memory: MemoryBudget | null;
  readonly log: Log;
  readonly webhooks: Webhooks;
  readonly jobs: KeptJobs;
  readonly writers: { readonly stdout: OutputWriter; readonly stderr: OutputWriter };
  /** Files that get a copy of the workers' output. */
  readonly printFiles: readonly LogFile[];
  /** The last lines, for the page; null without a page. */
  readonly recent: PrintReceiver | null;
  readonly sendAhead: SendAhead | undefined;
  readonly measuresLoad: boolean;
}

export function sharedResources(
  {
    logFormat,
    logPrefix,
    queueBytes,
    spawnConcurrency,
    maxOutput,
    withholdEnv,
    drainTimeout,
    watch,
  }: ServerOptions,
  { writers, printFiles, recent, ...parts }: SharedParts,
): Omit<ServerResources, 'labelOf' | 'isDefault'> {
  const receivers = [
    ...(printFiles.length === 0 ? [] : [new PrintCopies(logFormat, printFiles)]),
    ...(recent === null ? [] : [recent]),
  ];
  const printFormat = logFormat === 'text' && logPrefix === 'potassium' ? logPrefix : logFormat;
  return {
    ...parts,
    watch,
    gate: new SpawnGate(spawnConcurrency, parts.memory ?? undefined),
    budget: new ByteBudget(queueBytes),
    relay: new OutputRelay(printFormat, () => parts.devices.slots, writers, receivers),
    startReporter: chooseStartReporter(logFormat, parts.log, writers),
    attributePrints: printFormat !== 'text',
    maxOutputBytes: maxOutput,
    withheldEnv: withholdEnv,
    retireLimits: retireLimits(drainTimeout),
  };
}
