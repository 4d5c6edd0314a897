/** Names of limits in the errors that clients read. */
import type { NamedLimit } from '../machine/limit-timer.js';
import type { ResolvedModelOptions } from './resolve.js';
import { OPTIONS } from './table.js';

/** Parameters of the management API, by the option that they set. */
export const MANAGEMENT_NAMES = {
  minWorkers: 'min_worker',
  maxWorkers: 'max_worker',
  idleTimeout: 'idle_timeout',
  targetWait: 'target_wait',
  standby: 'standby',
  batchSize: 'batch_size',
  maxBatchDelay: 'max_batch_delay',
  runTimeout: 'response_timeout',
  initTimeout: 'startup_timeout',
} as const;

/** Stands for an init timeout of 0, within which no worker can start. */
export const SHORTEST_START_MS = 1;

/** Names the limit by its management parameter if that set it, else by its flag: clients should not see the server's files. */
export function limitOf(
  name: 'runTimeout' | 'initTimeout',
  ms: number,
  { explicit }: Pick<ResolvedModelOptions, 'explicit'>,
): NamedLimit {
  const managed = MANAGEMENT_NAMES[name];
  return { ms, name: explicit.get(name) === managed ? managed : OPTIONS[name].flag };
}
