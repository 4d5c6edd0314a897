/**
 * Makes the slots of one model, and does what follows from the events of their workers: for the slot, the queue, the health,
 * the log and the generations of the model; what concerns the whole server goes to the host.
 *
 * A worker dies in three moments. Sign (`#refresh`): it gets no more calls, readiness falls, one that stands by steps in. Dead
 * (`#lost`): its calls go back or fail. Gone (`#gone`): its slot decides what follows, then log, report, memory.
 */
import { ServeError } from '../../protocol/errors.js';
import type { Hello, LoadedInfo } from '../../protocol/wire/messages.js';
import type { Call } from '../dispatch/call.js';
import type { Placement } from '../machine/placement.js';
import type { WorkerDeath } from '../processes/worker-death.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { LoadedLimits, WorkerEvent } from '../processes/worker-listener.js';
import { Slot } from '../slots/slot.js';
import { newWebhookId } from '../webhooks/webhooks.js';
import { applyApp } from './apply-options.js';
import type { Generation } from './generations.js';
import type { ModelCore } from './model-resources.js';
import type { Sizing } from './sizing.js';
import { noneWantedError } from './slot-summary.js';
import { slowStarts, startingWorkers } from './slow-starts.js';
import { startWorker, workerLimits } from './start-worker.js';

export class WorkerEvents {
  readonly #model: ModelCore;
  readonly #sizing: Sizing;
  /** Looks for slow starts. */
  readonly #noteStarts: () => void;

  constructor(model: ModelCore, sizing: Sizing) {
    this.#model = model;
    this.#sizing = sizing;
    const { crew, generations, resources } = model;
    this.#noteStarts = slowStarts(
      resources.startReporter,
      () => startingWorkers(crew.all),
      () => generations.inForce.options.initTimeout,
      () => resources.labelOf(generations.newest.spec),
    );
  }

  /** Makes a slot; the caller starts it. */
  newSlot(index: number, placement: Placement): Slot {
    const { crew, generations, health, resources } = this.#model;
    const { name, version } = generations.newest.spec;
    const wasReady = (): boolean => health.firstReadyAtMs !== null;
    return new Slot({
      index,
      placement,
      model: `${name}@${version}`,
      gate: resources.gate,
      rules: () => ({
        restartLimit: generations.inForce.options.restartLimit,
        // With --watch, what counts is the code as it is now. New code that was never ready is given up, and taken back.
        everReady: (resources.watch ? health.hasServed : wasReady()) && !generations.isUntried,
        awaitsChange: resources.watch,
      }),
      spawn: (slot) => this.#spawn(slot),
      othersServe: () => crew.ready.length > 0,
      isModelDown: () => wasReady() && crew.ready.length === 0,
      makesRoom: () => resources.memory?.makeRoom(placement.device, `${name}@${version}`) ?? false,
      onNotNeeded: (slot) => this.#sizing.withdraw(slot),
      onChange: (slot, death) => this.#onChange(slot, death),
    });
  }

  #spawn(slot: Slot): WorkerHandle {
    const { crew, dispatcher, generations, resources } = this.#model;
    const { spec, options, skipsWarmUp } = generations.newest;
    const worker: WorkerHandle = startWorker(spec, options, resources, slot, skipsWarmUp, {
      loaded: (info, hello) => this.#loaded(worker, info, hello),
      finished: (call, runMs) => {
        this.noteIdle();
        worker.lastCallMs = crew.idleSinceMs;
        dispatcher.finished(call, runMs);
      },
      told: (event) => this.#told(slot, worker, event),
    });
    generations.started(worker);
    return worker;
  }

  /** A call has ended in a worker, or a worker is back. */
  noteIdle(): void {
    this.#model.crew.idleSinceMs = performance.now();
    this.#model.resources.memory?.nudge();
  }

  #told(slot: Slot, worker: WorkerHandle, event: WorkerEvent): void {
    const { log } = this.#model;
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
        if (event.isFrozen) log.worker(index, 'is frozen by a signal: it is not ready until SIGCONT', 'warn');
        else log.worker(index, 'continues');
        this.#refresh();
        return this.#model.dispatcher.pump();
      case 'leaving':
        log.worker(
          index,
          `gets no more calls, and ends after those that it holds (${worker.load}): ${event.why}`,
          'error',
        );
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
        return this.#model.tell({ type: 'metrics', worker: index, metrics: event.metrics });
      case 'webhook':
        return this.#webhook(event);
    }
  }

  #loaded(worker: WorkerHandle, info: LoadedInfo, hello: Hello): LoadedLimits {
    const { generations, resources } = this.#model;
    const app = generations.of(worker) as Generation;
    resources.checkApp?.(info, app.spec.program, hello);
    app.update(info);
    if (app === generations.inForce) applyApp(this.#model);
    const { spec, options } = app;
    const limits = workerLimits(spec, options, resources.maxOutputBytes);
    return { ...limits, startBatchSize: spec.service === null ? Infinity : options.batchSize };
  }

  #webhook({ order, body, events, drop }: WorkerEvent & { readonly type: 'webhook' }): void {
    const { webhooks } = this.#model.resources;
    if (!webhooks.send({ ...order, id: newWebhookId(), body }, events)) drop();
  }

  #ready(index: number, worker: WorkerHandle): void {
    const { crew, dispatcher, generations, health, log } = this.#model;
    const isFirst = health.onReady(worker.initMs);
    const isNew = generations.settle(worker);
    if (isNew) applyApp(this.#model);
    this.#refresh();
    this.#checkStandstill();
    log.ready(index, worker.pid, worker.initMs);
    this.#model.tell({ type: 'ready', worker: index, startMs: worker.uptimeMs });
    if (isFirst || isNew) this.#warnOfUnusedOptions();
    if (isFirst) this.#reviveLatched();
    if (isFirst) this.#model.tell({ type: 'firstReady' });
    else if (crew.callable.includes(worker)) this.noteIdle(); // a successor of one that died or was replaced
    dispatcher.pump();
    this.#sizing.started(worker.uptimeMs);
  }

  /** Its starts go on for ever now: also those of slots that were latched earlier, unless they never fit into memory. */
  #reviveLatched(): void {
    if (this.#model.resources.watch) return;
    for (const slot of this.#model.crew.kept)
      if (slot.state.name === 'latched' && !slot.state.neverFits) slot.startAgain();
  }

  #warnOfUnusedOptions(): void {
    const { log, generations } = this.#model;
    const { isBatchless, isSerial, options, spec } = generations.inForce;
    if (isBatchless) log.batchless(options.batchSize, spec.program.batchCure);
    if (isSerial) log.serial(options.concurrency as number);
  }

  /** The state of a worker or a slot has changed; after the first sign of a death, that of the dying worker. */
  #refresh(): void {
    const { crew, health, dispatcher } = this.#model;
    const hasStepIn = crew.refresh();
    this.#noteStarts();
    health.changes.wake();
    // What a dying worker has not begun came before what waits: it is given back within ms, and then all goes on.
    const givesBack = crew.workers.some(
      ({ state, heldBatches, places }) => state === 'killing' && heldBatches > places,
    );
    if (hasStepIn && !givesBack) dispatcher.pump();
  }

  /** A worker is dead. Nothing may be given to it any more when its calls go back, which does not wait for its end. */
  #lost(calls: readonly Call[], error: ServeError): void {
    this.noteIdle();
    this.#refresh();
    this.#model.dispatcher.lost(calls, error);
  }

  /** A worker is gone. */
  #gone(slot: Slot, worker: WorkerHandle, death: WorkerDeath): void {
    const { generations, resources } = this.#model;
    resources.guard.remove(death.pid);
    if (death.inWarmUp === true && !death.wanted) generations.newest.skipsWarmUp = true;
    slot.onGone(worker, death);
  }

  #onChange(slot: Slot, death: WorkerDeath | null): void {
    if (death?.during === 'start' && !death.wanted && !slot.isSecondTry) this.#model.health.isIdle = false;
    this.#refresh();
    if (death !== null) {
      this.#model.log.death(slot, death);
      this.#model.tell({ type: 'died', slot, death });
    }
    if (slot.state.name === 'closed') this.#onSlotClosed(slot);
    this.#checkStandstill();
    if (death === null) return;
    this.#sizing.ask();
    this.#model.resources.memory?.changed();
  }

  #onSlotClosed(slot: Slot): void {
    const { crew, dispatcher, health } = this.#model;
    crew.remove(slot);
    this.#sizing.keepStandbys(); // its GPU is free
    if (crew.all.length > 0) return;
    if (crew.isClosed) this.#model.tell({ type: 'closed' });
    if (!health.takesCalls) dispatcher.failQueued(noneWantedError());
    health.changes.wake();
  }

  #checkStandstill(): void {
    const { crew, dispatcher, generations, health } = this.#model;
    if (crew.isClosed) return; // its workers stop on request: what failed before is no reason to end
    if (generations.isUntried) return; // the previous generation is tried again
    const standstill = health.checkStandstill();
    if (standstill === null) return;
    dispatcher.failQueued(health.noWorkerError ?? new ServeError('SERVE_NOT_READY'));
    this.#model.tell({ type: 'standstill', standstill });
  }
}
