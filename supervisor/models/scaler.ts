/**
 * Lets the number of a model's workers follow its calls: gathers the facts, asks the policy of `scaling/`, adds and retires
 * slots. A model without bounds of its own is left alone: its number is what its operator sets.
 *
 * Before: the dispatcher reports calls that wait, slots report workers that are ready. After: slots start and stop workers.
 */
import { Alarm } from '../dispatch/alarm.js';
import type { CallWatch } from '../dispatch/dispatcher.js';
import { ScalingHistory } from '../scaling/history.js';
import {
  decide,
  type ScaledLine,
  type ScalingFacts,
  type ScalingRules,
  type Why,
} from '../scaling/policy.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import type { ModelOptions } from '../options/resolve.js';
import type { Slot } from '../slots/slot.js';
import { LoadPeak } from './load-peak.js';
import type { ModelParts } from './model-parts.js';
import { ownBounds, type WorkerBounds } from './bounds.js';
import { ScalingChanges, whyText, type ScalingWhy } from './scaling-changes.js';
import { countWorkers, startLeftMs } from './scaling-facts.js';
import type { Standbys } from './standbys.js';

/** Pause before the policy is asked again if no worker could leave, because none was free at that moment. */
const BUSY_PAUSE_MS = 1000;

/** Calls end within their own limits: so long is a timer at most. */
const UNTIL_ENDED_MS = 2 ** 31 - 1;

/** Someone who waits for a worker without a call in line: a call whose app is not loaded, a warm-up, a load order. */
interface Order {
  readonly sinceMs: number;
  readonly untilMs: number;
}

export class Scaler implements CallWatch {
  readonly changes = new ScalingChanges();
  readonly #model: ModelParts;
  readonly #standbys: Standbys;
  readonly #peak = new LoadPeak();
  readonly #orders = new Set<Order>();
  #lastOrder: Order = { sinceMs: -Infinity, untilMs: Infinity };
  readonly #alarm = new Alarm(() => this.ask());
  /** Kept from when the model first scales itself. */
  #history: ScalingHistory | null = null;
  /** Null: the number of workers is what the operator sets. */
  #bounds: WorkerBounds | null = null;
  #replayAtMs = 0;
  #isClosed = false;

  constructor(model: ModelParts, standbys: Standbys) {
    this.#model = model;
    this.#standbys = standbys;
    if (model.resources.measuresLoad) model.dispatcher.watch = this;
  }

  /** The bounds in force; null for a model that does not scale by itself. */
  get bounds(): WorkerBounds | null {
    return this.#bounds;
  }

  /** The most calls that were queued or running in the last minute. */
  get mostCalls(): number {
    return Math.max(this.#calls, this.#peak.most(performance.now()));
  }

  /** The rules in force; null for a model that does not scale by itself. */
  get rules(): ScalingRules | null {
    if (this.#bounds === null) return null;
    const { options, isBatchless } = this.#model.generations.inForce;
    return rulesOf(isBatchless ? { ...options, batchSize: 1 } : options, this.#bounds);
  }

  /** The bounds that the newest options say; null if the model does not scale by itself. @throws SERVE_CONFIG */
  findOwnBounds(): WorkerBounds | null {
    const { generations, resources } = this.#model;
    const { options } = generations.newest.spec.resolved;
    return ownBounds(options, () => resources.devices.firstCount(options));
  }

  /** Scales within these bounds from now on; null: not at all. */
  follow(bounds: WorkerBounds | null): void {
    this.#bounds = bounds;
    if (bounds !== null) {
      this.#history ??= new ScalingHistory(0);
      this.#model.dispatcher.watch = this;
    }
    this.ask();
  }

  came(): void {
    const nowMs = performance.now();
    this.#peak.note(this.#calls, nowMs);
    this.#history?.came(nowMs);
  }

  waits(): void {
    this.ask();
  }

  ran(runMs: number, calls: number): void {
    // A worker that runs several calls at once is for the policy one that is so many times as fast.
    const places = this.#model.generations.inForce.info?.concurrency ?? 1;
    this.#history?.ran(runMs / places, performance.now(), calls);
  }

  refused(): void {
    const order = this.#order(Infinity);
    this.ask();
    this.#orders.delete(order);
  }

  /** A worker is ready, `startMs` after its process was started. */
  started(startMs: number): void {
    this.#history?.started(startMs, performance.now());
    this.ask();
  }

  /** Expected time from the start of a process until its worker is ready. */
  get startMs(): number {
    return this.#history?.startMs ?? 0;
  }

  /** Estimated time until a worker is ready; null unless the model scales by itself and has none. */
  startsInMs(): number | null {
    const { slots } = this.#model;
    if (this.#bounds === null || slots.ready.length > 0) return null;
    return startLeftMs(slots.kept, this.startMs, performance.now());
  }

  /** Counts `wait` as a call in line that can wait until `untilMs`: at zero, it starts a worker. */
  async counting<T>(untilMs: number, wait: () => Promise<T>): Promise<T> {
    const order = this.#order(untilMs);
    this.ask();
    try {
      return await wait();
    } finally {
      this.#orders.delete(order);
    }
  }

  /** Asks the policy, and does what it says. */
  ask(): void {
    const { rules } = this;
    const { health, slots } = this.#model;
    const history = this.#history;
    if (
      rules === null ||
      history === null ||
      this.#isClosed ||
      health.standstill !== null ||
      !health.takesCalls
    )
      return;
    if (health.isDraining && slots.kept.length > 0) return; // only calls that are held are worth a start
    const decision = decide(this.#gather(rules, history), rules);
    const { wanted, why } = decision;
    // The policy looks back once a second, which is too rarely for shorter idle timeouts.
    const soonMs = performance.now() + rules.idleTimeoutMs;
    let againAtMs = decision.againAtMs === null ? null : Math.min(decision.againAtMs, soonMs);
    this.#replayAtMs = Math.min(decision.replayAtMs, soonMs);
    if (wanted > why.from) this.grow(wanted - why.from, why);
    else if (wanted < why.from && !this.#shrink(why.from - wanted, why) && againAtMs !== null)
      againAtMs = Math.max(againAtMs, performance.now() + BUSY_PAUSE_MS);
    this.#alarm.stop();
    if (againAtMs !== null) this.#alarm.set(againAtMs);
  }

  /** Lets workers that stand by take calls, and adds slots, as many as the maximum allows. */
  grow(count: number, why: ScalingWhy): void {
    const { health, slots, resources, generations, dispatcher } = this.#model;
    // On a GPU, whose memory may not hold two, a worker that ends must be gone first.
    const isGpuTaken = slots.all.some(({ isKept, device }) => !isKept && device !== 'cpu');
    const { standbys } = slots;
    const serving = slots.kept.length - standbys.length;
    const room = (this.#bounds?.max ?? 0) - serving;
    const more = Math.min(count, room, isGpuTaken ? standbys.length : Infinity);
    if (more <= 0) return;
    const { options } = generations.newest.spec.resolved;
    const placements = resources.devices.take(options, more - standbys.length);
    health.want(serving + more, true);
    const stayBehind = slots.standbys;
    const stepIn = standbys.filter((slot) => slot.failure === null && !stayBehind.includes(slot));
    for (const { index } of stepIn) this.#noteStepIn(index, why);
    for (const { index } of slots.add(placements)) this.#note(index, 'started', why);
    this.#standbys.keep();
    if (stepIn.length > 0) dispatcher.pump();
  }

  /** Number of calls, jobs and orders that wait for a worker. */
  get waiting(): number {
    const { dispatcher } = this.#model;
    return dispatcher.queued + this.#orders.size + (dispatcher.hasUnroutedJobs ? 1 : 0);
  }

  /** Its worker ends what it holds and goes, for the memory budget; one that calls need comes back in its turn. */
  sendAway(slot: Slot, why: ScalingWhy): void {
    if (slot.worker !== null) slot.worker.callersWait = true; // clients may not keep it for ever
    this.#leave(slot, why, { ...this.#model.resources.retireLimits, finishMs: UNTIL_ENDED_MS });
  }

  /** Gives up a start that waits for memory, since no call waits for it. */
  withdraw(slot: Slot): void {
    this.#leave(slot, { rule: 'not-needed' }, this.#model.resources.retireLimits);
  }

  close(): void {
    this.#isClosed = true;
    this.#alarm.stop();
  }

  /** Retires idle workers, frozen ones first, then those with the highest index. Returns false if there is none that may leave now. */
  #shrink(count: number, why: Why): boolean {
    const { health, slots, dispatcher, resources, isReplacing } = this.#model;
    if (isReplacing()) return false;
    const idle = slots.kept.filter(
      ({ state, worker, workers }) =>
        state.name === 'live' &&
        worker?.state === 'ready' &&
        dispatcher.isFree(worker) &&
        workers.length === 1, // one that gets no more calls ends those that it holds, within their own limits
    );
    const isFrozen = ({ worker }: Slot): boolean => worker?.isFrozen ?? false;
    const { kept, standbys } = slots;
    const fewer = Math.min(count, idle.length);
    const isLast = fewer === why.from;
    // With the last one all leave, those that stand by and those that gave up: none of them may still end a call.
    const endsCalls = kept.some(({ workers }) => workers.length > 1);
    if (isLast && (endsCalls || slots.holders.some((worker) => !dispatcher.isFree(worker)))) return false;
    const serving = kept.length - standbys.length - fewer;
    const mayServe = standbys.filter(({ failure }) => failure === null).length;
    const leavers = isLast ? idle.length : Math.max(0, fewer + mayServe - this.#standbys.most(serving));
    const order = idle.toSorted((a, b) => Number(isFrozen(a)) - Number(isFrozen(b)));
    const leaving = order.slice(Math.max(0, order.length - leavers));
    health.want(isLast ? 0 : serving, true);
    if (isLast) for (const slot of kept) if (!leaving.includes(slot)) slot.retire(resources.retireLimits);
    for (const slot of leaving) this.#retire(slot, why);
    this.#standbys.keep();
    return fewer > 0;
  }

  #retire(slot: Slot, why: ScalingWhy): void {
    this.#note(slot.index, 'retired', why);
    slot.retire(this.#model.resources.retireLimits);
  }

  /** One worker fewer is wanted, unless this one stands by. With the last one all leave. */
  #leave(slot: Slot, why: ScalingWhy, limits: RetireLimits): void {
    const { health, slots } = this.#model;
    const { kept, standbys } = slots;
    this.#note(slot.index, 'retired', why);
    const serving = kept.length - standbys.length - 1;
    if (!standbys.includes(slot)) {
      health.want(serving, true);
      if (serving === 0) for (const standby of standbys) standby.retire(limits);
    }
    slot.retire(limits);
    slots.refresh();
    this.ask();
  }

  #noteStepIn(worker: number, why: ScalingWhy): void {
    const text = whyText(why);
    this.#history?.steppedIn(performance.now());
    this.changes.note(worker, 'started', why, text);
    this.#model.log.stepsIn(worker, text);
  }

  #note(worker: number, change: 'started' | 'retired', why: ScalingWhy): void {
    const text = whyText(why);
    this.changes.note(worker, change, why, text);
    this.#model.log.scaled(worker, change, text);
  }

  #order(untilMs: number): Order {
    const order = { sinceMs: performance.now(), untilMs };
    this.#orders.add(order);
    this.#lastOrder = order;
    return order;
  }

  #gather({ idleTimeoutMs }: ScalingRules, history: ScalingHistory): ScalingFacts {
    const { slots, dispatcher } = this.#model;
    const { standbys } = slots;
    const nowMs = performance.now();
    history.keepMs = Math.max(idleTimeoutMs, 2 * history.startMs);
    return {
      nowMs,
      ...countWorkers(
        slots.kept.filter((slot) => !standbys.includes(slot)),
        (worker) => dispatcher.isFree(worker),
        nowMs,
      ),
      standing: this.#standbys.countFree(),
      line: this.#line(nowMs),
      history,
      replayAtMs: this.#replayAtMs,
    };
  }

  #line(nowMs: number): ScaledLine | null {
    const { dispatcher, generations } = this.#model;
    const calls = this.waiting;
    if (calls === 0) return null;
    const { queueTimeout } = generations.inForce.options;
    const newest = dispatcher.findNewest();
    let last: Order = { sinceMs: nowMs, untilMs: Infinity }; // of due jobs it is not known
    if (newest !== null) last = { sinceMs: newest.inLineSinceMs, untilMs: newest.deadlineAtMs ?? Infinity };
    if (this.#orders.size > 0 && (newest === null || this.#lastOrder.sinceMs > last.sinceMs))
      last = this.#lastOrder;
    return {
      calls,
      lastSinceMs: last.sinceMs,
      lastUntilMs: Math.min(last.untilMs, last.sinceMs + queueTimeout),
    };
  }

  get #calls(): number {
    const { dispatcher } = this.#model;
    return dispatcher.queued + dispatcher.inFlight;
  }
}

function rulesOf(
  { idleTimeout, targetWait, batchSize }: Pick<ModelOptions, 'idleTimeout' | 'targetWait' | 'batchSize'>,
  { min, max }: WorkerBounds,
): ScalingRules {
  return { min, max, idleTimeoutMs: idleTimeout ?? USUAL_IDLE_MS, targetWaitMs: targetWait, batchSize };
}

/** The default of `--idle-timeout`. */
const USUAL_IDLE_MS = 60_000;
