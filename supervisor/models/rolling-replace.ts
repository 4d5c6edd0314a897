/**
 * Replaces the workers of a model by workers of its newest generation, one slot after the other, so that no call is lost
 * and the other workers serve meanwhile.
 *
 * The replacement stops at the first worker that dies before it is ready. If no worker of the generation was ready until
 * then, the spec is taken back. Otherwise the remaining slots keep their workers.
 */
import type { ServeError } from '../../protocol/errors.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import type { Slot } from '../slots/slot.js';
import { startError } from '../slots/start-error.js';
import type { ModelCore } from './model-resources.js';
import { hasStarted } from './slot-summary.js';

/** Resolves with the reason why a worker of the newest generation could not start; null if all did, or if another change overtook this one. */
export async function rollingReplace(model: ModelCore, limits: RetireLimits): Promise<ServeError | null> {
  const { crew, generations, health } = model;
  const app = generations.newest;
  const isOvertaken = (): boolean => generations.newest !== app || health.isDraining;
  const isNew = (slot: Slot): boolean => generations.of(slot.worker) === app;
  for (const slot of crew.kept) {
    if (isOvertaken()) return null;
    if (!slot.isKept || isNew(slot)) continue;
    slot.renew(limits);
    await health.until(() => isOvertaken() || !slot.isKept || hasStarted(slot));
    if (isOvertaken()) return null;
    if (!slot.isKept || (isNew(slot) && slot.failure === null)) continue;
    const error = slot.lastDeath === null ? null : startError(slot.lastDeath);
    takeBackIfUntried(model, limits);
    return error;
  }
  if (!isOvertaken()) generations.settleUntried();
  return null;
}

function takeBackIfUntried({ crew, generations }: ModelCore, limits: RetireLimits): void {
  if (!generations.isUntried) return;
  generations.takeBack();
  for (const slot of crew.kept) {
    if (generations.of(slot.worker) !== generations.inForce) slot.replace(limits);
  }
}
