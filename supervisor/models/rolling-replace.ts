/**
 * Replaces the workers of a model by those of its newest generation, one slot after the other, so that no call is lost
 * and the others serve meanwhile.
 *
 * The first worker that dies before it is ready ends it. If none of the generation was ready until then, the spec is
 * taken back: everything goes on as before. Else the slots that are left keep their workers.
 */
import type { ServeError } from '../../protocol/errors.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import type { Slot } from '../slots/slot.js';
import { startError } from '../slots/start-error.js';
import type { Generations } from './generations.js';
import type { ModelHealth } from './model-health.js';
import { hasStarted } from './slot-summary.js';
import type { SlotSet } from './slot-set.js';

export interface Rolled {
  readonly generations: Generations;
  readonly slots: SlotSet;
  readonly health: ModelHealth;
}

/** Resolves with why a worker of the newest generation could not start; null if all did, or if this was overtaken. */
export async function rollingReplace(
  { generations, slots, health }: Rolled,
  limits: RetireLimits,
): Promise<ServeError | null> {
  const word = generations.newest;
  const isOvertaken = (): boolean => generations.newest !== word || health.isDraining;
  const isNew = (slot: Slot): boolean => generations.of(slot.worker) === word;
  for (const slot of slots.kept) {
    if (isOvertaken()) return null;
    if (!slot.isKept || isNew(slot)) continue;
    slot.renew(limits);
    await health.until(() => isOvertaken() || !slot.isKept || hasStarted(slot));
    if (isOvertaken()) return null;
    if (!slot.isKept || (isNew(slot) && slot.state.name === 'live')) continue;
    const error = slot.lastDeath === null ? null : startError(slot.lastDeath);
    takeBackIfUntried({ generations, slots, health }, limits);
    return error;
  }
  if (!isOvertaken()) generations.settleUntried();
  return null;
}

function takeBackIfUntried({ generations, slots }: Rolled, limits: RetireLimits): void {
  if (!generations.isUntried) return;
  generations.takeBack();
  for (const slot of slots.kept) {
    if (generations.of(slot.worker) !== generations.inForce) slot.replace(limits);
  }
}
