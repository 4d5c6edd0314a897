/**
 * Makes the slots of one model and handles the events of their workers: it updates the queue, the health, the log and the
 * generations of the model, and passes on what concerns the whole server to the model's listener.
 */
import { ServeError } from '../../protocol/errors.js';
import type { LoadedInfo } from '../../protocol/wire/messages.js';
import type { Placement } from '../machine/placement.js';
import type { WorkerDeath } from '../processes/worker-death.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { LoadedLimits } from '../processes/worker-listener.js';
import { Slot, type SlotListener } from '../slots/slot.js';
import { newWebhookId } from '../webhooks/webhook.js';
import type { AppDescription } from './app-description.js';
import type { ModelParts } from './model-parts.js';
import type { OptionsApplier } from './options-applier.js';
import type { Scaler } from './scaler.js';
import { noneWantedError } from './slot-summary.js';
import type { Standbys } from './standbys.js';
import { startWorker, workerLimits } from './start-worker.js';

export class SlotFactory {
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
    const { generations, health, resources } = this.#model;
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
      spawn: (workerListener) => {
        const { spec, options, skipsWarmUp } = generations.newest;
        const place = { index, placement, skipsWarmUp };
        const worker = startWorker(spec, options, resources, place, workerListener);
        generations.started(worker);
        return worker;
      },
      othersServe: () => this.#model.slots.ready.length > 0,
      isModelDown: () => health.firstReadyAtMs !== null && this.#model.slots.ready.length === 0,
      makesRoom: (device) => resources.memory?.makeRoom(device, `${name}@${version}`) ?? false,
      onNotNeeded: (slot) => this.#scaler.withdraw(slot),
      listener: this.#listenerOf(index),
    });
  }

  #listenerOf(index: number): SlotListener {
    const { dispatcher, listener, log, resources } = this.#model;
    return {
      onLoaded: (worker, info) => this.#onLoaded(worker, info),
      onSlowWarmUp: (advice) => log.slowWarmUp(index, advice),
      onReady: (worker) => this.#onReady(index, worker),
      onFinished: (call, runMs) => {
        this.#model.noteIdle();
        dispatcher.finished(call, runMs);
      },
      onLost: (calls, error) => {
        this.#model.noteIdle();
        this.#refreshReady(); // before the dead worker is given anything
        dispatcher.lost(calls, error);
      },
      onLeaving: (worker, why) => log.leaving(index, worker.load, why),
      onFrozen: (isFrozen) => {
        log.frozen(index, isFrozen);
        this.#refreshReady();
        dispatcher.pump();
      },
      onAppLog: (level, message, fields, requestId) => log.appLine(index, level, message, fields, requestId),
      onMetrics: (metrics) => listener.onMetrics(index, metrics),
      onWebhook: (order, body, events) =>
        resources.webhooks.send({ ...order, id: newWebhookId(), body }, events),
      onCallError: (call, error) => log.callError(index, call.message, error),
      onTransition: (from, to, event) => {
        log.transition(index, from, to, event);
        this.#refreshReady();
      },
      onSlotChange: (slot, death) => this.#onSlotChange(slot, death),
    };
  }

  #onLoaded(worker: WorkerHandle, info: LoadedInfo): LoadedLimits {
    const { generations, resources } = this.#model;
    const app = generations.of(worker) as AppDescription;
    app.update(info);
    if (app === generations.inForce) this.#applier.apply();
    const { spec, options } = app;
    const limits = workerLimits(spec, options, resources.maxOutputBytes);
    return { ...limits, startBatchSize: spec.service === null ? Infinity : options.batchSize };
  }

  #onReady(index: number, worker: WorkerHandle): void {
    const { dispatcher, generations, health, listener, log, slots } = this.#model;
    const isFirst = health.onReady(worker.initMs);
    const isNew = generations.settle(worker);
    if (isNew) this.#applier.apply();
    this.#refreshReady();
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

  #refreshReady(): void {
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

  #onSlotChange(slot: Slot, death: WorkerDeath | null): void {
    if (death?.inWarmUp === true && !death.wanted) this.#model.generations.newest.skipWarmUp();
    if (death?.during === 'start' && !death.wanted && !slot.isSecondTry) this.#model.health.onFailedStart();
    this.#refreshReady();
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
