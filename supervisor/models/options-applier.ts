/**
 * Makes what is in force hold where it matters: the options of the operator and the app, in the queue and in the workers;
 * the app's routes, for the calls that wait.
 * Before: the generations say what is in force. After: the dispatcher and the workers follow it.
 */
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { Routes } from './app-description.js';
import { dispatchLimits, fits } from './dispatch-rules.js';
import type { Generations } from './generations.js';
import type { ModelHealth } from './model-health.js';
import type { SlotSet } from './slot-set.js';
import { workerLimits } from './start-worker.js';

export interface RuledModel {
  readonly generations: Generations;
  readonly dispatcher: Dispatcher;
  readonly health: ModelHealth;
  readonly slots: SlotSet;
  readonly maxOutputBytes: number;
}

export class OptionsApplier {
  readonly #model: RuledModel;

  constructor(model: RuledModel) {
    this.#model = model;
  }

  /** Other limits may hold for the queue. */
  applyQueueLimits(): void {
    const { dispatcher, generations, health } = this.#model;
    dispatcher.limits = dispatchLimits(generations.inForce.options, health.refusesCalls);
  }

  /** Other limits may hold for the queue and for the workers that there are. */
  applyLimits(): void {
    const { dispatcher, generations, slots, maxOutputBytes } = this.#model;
    this.applyQueueLimits();
    const { spec, options } = generations.inForce;
    const limits = workerLimits(spec, options, maxOutputBytes);
    for (const worker of slots.workers) worker.limits = limits;
    dispatcher.pump();
  }

  /** What the app in force has said holds from now on; calls that wait for a route that it lacks are failed. */
  apply(): void {
    const { dispatcher, generations, health } = this.#model;
    this.applyQueueLimits();
    dispatcher.dropUnfit((job) => fits(job, generations.inForce.routes as Routes));
    health.wake();
  }
}
