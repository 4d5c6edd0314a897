/** What errors that clients read call the option behind a limit. */
import type { NamedLimit } from '../machine/limit-timer.js';
import type { ResolvedModelOptions } from './resolve.js';
import { OPTIONS } from './table.js';

/** By these names requests to the management API set options of a model. */
export const MANAGEMENT_NAMES = {
  batchSize: 'batch_size',
  maxBatchDelay: 'max_batch_delay',
  runTimeout: 'response_timeout',
  initTimeout: 'startup_timeout',
} as const;

/** Where else the option stands, such as in a file of the server, is no client's business: then it is named by its flag. */
export function limitOf(
  name: 'runTimeout' | 'initTimeout',
  ms: number,
  { explicit }: Pick<ResolvedModelOptions, 'explicit'>,
): NamedLimit {
  const managed = MANAGEMENT_NAMES[name];
  return { ms, name: explicit.get(name) === managed ? managed : OPTIONS[name].flag };
}
