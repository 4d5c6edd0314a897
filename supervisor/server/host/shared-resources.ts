/** Builds the resources that all models of a server share: devices, memory for bodies, log, output of workers, jobs, webhooks. */
import { ByteBudget } from '../../dispatch/arrivals.js';
import type { ServerResources } from '../../models/model-resources.js';
import { OutputRelay } from '../../observe/output-relay.js';
import { PrintCopies } from '../../observe/print-copies.js';
import type { ServerOptions } from '../../options/resolve.js';
import { retireLimits } from '../../processes/worker-stop.js';
import { SpawnGate } from '../../slots/spawn-gate.js';
import type { ServerLogs } from './logs.js';
import { chooseStartReporter } from './start-progress.js';

/** The parts that are made already, by their names among the resources. */
type HostParts = Pick<
  ServerResources,
  'devices' | 'guard' | 'spares' | 'memory' | 'log' | 'webhooks' | 'jobs' | 'sendAhead' | 'measuresLoad'
>;

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
  { writers, printFiles, recent }: ServerLogs,
  parts: HostParts,
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
