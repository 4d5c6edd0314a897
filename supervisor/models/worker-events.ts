/**
 * Makes the slots of one model, and does what follows from the events of their workers: for the slot, the queue, the health,
 * the log and the generations of the model; what concerns the whole server goes to the host.
 *
 * A worker dies in three moments. Sign (`#refresh`): it gets no more calls, readiness falls, one that stands by steps in. Dead
 * (`#lost`): its calls go back or fail. Gone (`#gone`): its slot decides what follows, then log, report, memory.
 */
import { ServeError } from '../../protocol/errors.js';
import type { LoadedInfo } from '../../protocol/wire/messages.js';
import type { Call } from '../dispatch/call.js';
import type { Placement } from '../machine/placement.js';
import type { WorkerDeath } from '../processes/worker-death.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { LoadedLimits, WorkerEvent } from '../processes/worker-listener.js';
import { Slot } from '../slots/slot.js';
import { newWebhookId } from '../webhooks/webhook.js';
import type { AppDescription } from './app-description.js';
import type { ModelParts } from './model-parts.js';
import type { OptionsApplier } from './options-applier.js';
import type { Scaler } from './scaler.js';
import { noneWantedError } from './slot-summary.js';
import type { Standbys } from './standbys.js';
import { startWorker, workerLimits } from './start-worker.js';

export class WorkerEvents {
  readonly #model: ModelParts;
  readonly #applier: OptionsApplier;
  readonly #scaler: Scaler;
  readonly #standbys: Standbys;

  constructor(model: ModelParts, applier: OptionsApplier, scaler: Scaler, standbys: Standbys) {
    this.#model = model;
    this.#applier = applier;
    this.#scaler = scaler;
    this.#standbys = standbys;
  }

  /** Makes a slot; the caller starts it. */
  newSlot(index: number, placement: Placement): Slot {
    const { generations, health, resources, slots } = this.#model;
    const { name, version } = generations.newest.spec;
    const wasReady = (): boolean => health.firstReadyAtMs !== null;
    return new Slot({
      index,
      device: placement.device,
      model: `${name}@${version}`,
      gate: resources.gate,
      rules: () => ({
        restartLimit: generations.inForce.options.restartLimit,
        // With --watch, what counts is the code as it is now. New code that was never ready is given up, and taken back.
        everReady: (resources.watch ? health.hasServed : wasReady()) && !generations.isUntried,
        awaitsChange: resources.watch,
      }),
      spawn: (slot) => this.#spawn(slot, placement),
      othersServe: () => slots.ready.length > 0,
      isModelDown: () => wasReady() && slots.ready.length === 0,
      makesRoom: (device) => resources.memory?.makeRoom(device, `${name}@${version}`) ?? false,
      onNotNeeded: (slot) => this.#scaler.withdraw(slot),
      onChange: (slot, death) => this.#onChange(slot, death),
    });
  }

  #spawn(slot: Slot, placement: Placement): WorkerHandle {
    const { generations, resources } = this.#model;
    const { spec, options, skipsWarmUp } = generations.newest;
    const place = { index: slot.index, placement, skipsWarmUp };
    const worker: WorkerHandle = startWorker(spec, options, resources, place, {
      loaded: (info) => this.#loaded(worker, info),
      finished: (call, runMs) => this.#finished(call, runMs),
      told: (event) => this.#told(slot, worker, event),
    });
    generations.started(worker);
    return worker;
  }

  #told(slot: Slot, worker: WorkerHandle, event: WorkerEvent): void {
    const { listener, log } = this.#model;
    const { index } = slot;
    switch (event.type) {
      case 'state':
        log.transition(index, event.from, event.to, event.event);
        return this.#refresh();
      case 'slowWarmUp':
        return log.slowWarmUp(index, event.advice);
      case 'ready':
        slot.onReady(worker);
        return this.#ready(index, worker);
      case 'frozen':
        return this.#frozen(index, event.isFrozen);
      case 'leaving':
        log.leaving(index, worker.load, event.why);
        return slot.onLeaving(worker);
      case 'lost':
        return this.#lost(event.calls, event.error);
      case 'gone':
        return this.#gone(slot, worker, event.death);
      case 'callError':
        return log.callError(index, event.call.message, event.error);
      case 'log':
        return log.appLine(index, event.level, event.message, event.fields, event.requestId);
      case 'metrics':
        return listener.onMetrics(index, event.metrics);
      case 'webhook':
        return this.#webhook(event);
    }
  }

  #loaded(worker: WorkerHandle, info: LoadedInfo): LoadedLimits {
    const { generations, resources } = this.#model;
    const app = generations.of(worker) as AppDescription;
    app.update(info);
    if (app === generations.inForce) this.#applier.apply();
    const { spec, options } = app;
    const limits = workerLimits(spec, options, resources.maxOutputBytes);
    return { ...limits, startBatchSize: spec.service === null ? Infinity : options.batchSize };
  }

  #finished(call: Call, runMs: number | null): void {
    this.#model.noteIdle();
    this.#model.dispatcher.finished(call, runMs);
  }

  #webhook({ order, body, events, drop }: WorkerEvent & { readonly type: 'webhook' }): void {
    const { webhooks } = this.#model.resources;
    if (!webhooks.send({ ...order, id: newWebhookId(), body }, events)) drop();
  }

  #ready(index: number, worker: WorkerHandle): void {
    const { dispatcher, generations, health, listener, log, slots } = this.#model;
    const isFirst = health.onReady(worker.initMs);
    const isNew = generations.settle(worker);
    if (isNew) this.#applier.apply();
    this.#refresh();
    this.#checkStandstill();
    log.ready(index, worker.pid, worker.initMs);
    listener.onReady(index, worker.uptimeMs);
    if (isFirst || isNew) this.#warnOfUnusedOptions();
    if (isFirst) this.#reviveLatched();
    if (isFirst) listener.onFirstReady();
    else if (slots.callable.includes(worker)) this.#model.noteIdle(); // a successor of one that died or was replaced
    dispatcher.pump();
    this.#scaler.started(worker.uptimeMs);
    this.#standbys.keep();
  }

  /** Its starts go on for ever now: also those of slots that were latched earlier, unless they never fit into memory. */
  #reviveLatched(): void {
    if (this.#model.resources.watch) return;
    for (const slot of this.#model.slots.kept)
      if (slot.state.name === 'latched' && !slot.state.neverFits) slot.startAgain();
  }

  #warnOfUnusedOptions(): void {
    const { log, generations } = this.#model;
    const { isBatchless, isSerial, options, spec } = generations.inForce;
    if (isBatchless) log.batchless(options.batchSize, spec.program.batchCure);
    if (isSerial) log.serial(options.concurrency as number);
  }

  #frozen(index: number, isFrozen: boolean): void {
    this.#model.log.frozen(index, isFrozen);
    this.#refresh();
    this.#model.dispatcher.pump();
  }

  /** The state of a worker or a slot has changed; after the first sign of a death, that of the dying worker. */
  #refresh(): void {
    const { slots, slowStarts, health, dispatcher } = this.#model;
    const hasStepIn = slots.refresh();
    slowStarts.update();
    health.wake();
    // What a dying worker has not begun came before what waits: it is given back within ms, and then all goes on.
    const givesBack = slots.workers.some(
      ({ state, heldBatches, places }) => state === 'killing' && heldBatches > places,
    );
    if (hasStepIn && !givesBack) dispatcher.pump();
  }

  /** A worker is dead. Nothing may be given to it any more when its calls go back, which does not wait for its end. */
  #lost(calls: readonly Call[], error: ServeError): void {
    this.#model.noteIdle();
    this.#refresh();
    this.#model.dispatcher.lost(calls, error);
  }

  /** A worker is gone. */
  #gone(slot: Slot, worker: WorkerHandle, death: WorkerDeath): void {
    const { generations, resources } = this.#model;
    resources.guard.remove(death.pid);
    if (death.inWarmUp === true && !death.wanted) generations.newest.skipWarmUp();
    slot.onGone(worker, death);
  }

  #onChange(slot: Slot, death: WorkerDeath | null): void {
    if (death?.during === 'start' && !death.wanted && !slot.isSecondTry) this.#model.health.onFailedStart();
    this.#refresh();
    if (death !== null) {
      this.#model.log.death(slot, death);
      this.#model.listener.onDeath(slot, death);
    }
    if (slot.state.name === 'closed') this.#onSlotClosed(slot);
    this.#checkStandstill();
    if (death === null) return;
    this.#scaler.ask();
    this.#model.resources.memory?.changed();
  }

  #onSlotClosed(slot: Slot): void {
    const { dispatcher, health, listener, slots } = this.#model;
    slots.remove(slot);
    this.#standbys.keep(); // its GPU is free
    if (slots.all.length > 0) return;
    if (this.#model.isClosed()) listener.onClosed();
    if (!health.takesCalls) dispatcher.failQueued(noneWantedError());
    health.wake();
  }

  #checkStandstill(): void {
    const { dispatcher, generations, health, listener } = this.#model;
    if (this.#model.isClosed()) return; // its workers stop on request: what failed before is no reason to end
    if (generations.isUntried) return; // the previous generation is tried again
    const standstill = health.checkStandstill();
    if (standstill === null) return;
    dispatcher.failQueued(health.noWorkerError ?? new ServeError('SERVE_NOT_READY'));
    listener.onStandstill(standstill);
  }
}
