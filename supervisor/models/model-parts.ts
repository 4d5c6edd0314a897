/** The parts of one model. `model.ts` makes them; the others use each other through this record. */
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { Generations } from './generations.js';
import type { ModelHealth } from './model-health.js';
import type { ModelLog } from './model-log.js';
import type { ModelListener, ServerResources } from './model-resources.js';
import type { SlotSet } from './slot-set.js';
import type { SlowStarts } from './slow-starts.js';

export interface ModelParts {
  readonly resources: ServerResources;
  readonly listener: ModelListener;
  readonly generations: Generations;
  readonly dispatcher: Dispatcher;
  readonly slots: SlotSet;
  readonly health: ModelHealth;
  readonly log: ModelLog;
  readonly slowStarts: SlowStarts;
  /** See `Model.runningWorkers`. */
  runningWorkers(): number;
  /** Whether workers are being replaced. */
  isReplacing(): boolean;
  /** Whether the model itself was closed, and not only its slots. */
  isClosed(): boolean;
  /** Whether no call is waiting, arriving or running. */
  isQuiet(): boolean;
  /** See `Model.idleSinceMs`. */
  idleSinceMs(): number;
  /** Notes that a call has ended in a worker, or that a worker is back. */
  noteIdle(): void;
}
