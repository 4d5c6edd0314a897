/**
 * Decides how many workers one model has: bounds and rules, an operator's order, what the policy of `scaling/` says, workers
 * that stand by. A model without bounds of its own is left alone: its number is what its operator sets.
 *
 * `--standby` workers are loaded, and wait. They come once a worker of the model is ready, so that they do not delay its first
 * answer, and go when none is wanted.
 *
 * Before: `demand.ts` says that calls wait, workers become ready or die. After: the crew adds and retires slots.
 */
import { shuttingDown } from '../../protocol/errors.js';
import { Alarm } from '../machine/limit-timer.js';
import type { Placement } from '../machine/placement.js';
import type { ScalingFacts, ScalingRules } from '../scaling/history.js';
import { decide, type Why } from '../scaling/policy.js';
import type { ScalingHistory } from '../scaling/history.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import type { Slot } from '../slots/slot.js';
import { applyQueueLimits } from './apply-options.js';
import { countWithin, exactly, ownBounds, type WorkerBounds } from './bounds.js';
import { Demand, countWorkers, startLeftMs } from './demand.js';
import type { ModelCore } from './model-resources.js';
import type { Outcome } from './outcome.js';
import { whyText, type ScalingChange, type ScalingWhy } from './scaling-changes.js';
import { isBetween } from './slot-summary.js';
import { untilQuiet } from './model-health.js';

/** Pause before the policy is asked again if no worker could leave, because none was free at that moment. */
const BUSY_PAUSE_MS = 1000;

/** Calls end within their own limits: so long is a timer at most. */
const UNTIL_ENDED_MS = 2 ** 31 - 1;

/** Number of changes that `/status` shows. */
const CHANGES_KEPT = 20;

/** The default of `--idle-timeout`. */
const USUAL_IDLE_MS = 60_000;

export class Sizing {
  /** The latest changes, in their order. */
  changes: readonly ScalingChange[] = [];
  /** Number of changes so far, by kind and rule, such as `started line`. */
  readonly changeCounts = new Map<string, number>();
  readonly demand: Demand;
  /** The bounds within which the model scales itself; null if its number of workers is fixed: what the operator sets. */
  bounds: WorkerBounds | null = null;
  readonly #model: ModelCore;
  readonly #alarm = new Alarm(() => this.ask());
  /** The bounds that the options in force say; null: the model does not scale by itself. */
  #own: WorkerBounds | null = null;
  #replayAtMs = 0;
  /** Number of the latest `resize`, which overtakes the earlier ones. */
  #latest = 0;
  /** When the last workers are retired, on the monotonic clock; Infinity while some are wanted. */
  #emptyAtMs = Infinity;
  /** Whether the log says that there is no device for one that stands by. */
  #isShort = false;

  constructor(model: ModelCore) {
    this.#model = model;
    const { dispatcher, generations, resources } = model;
    this.demand = new Demand(dispatcher, generations, resources.measuresLoad, () => this.ask());
  }

  /** The rules by which its number of workers follows its calls; null if it is fixed. */
  get rules(): ScalingRules | null {
    if (this.bounds === null) return null;
    const { options, isBatchless } = this.#model.generations.inForce;
    const { idleTimeout, targetWait, batchSize } = options;
    return {
      ...this.bounds,
      idleTimeoutMs: idleTimeout ?? USUAL_IDLE_MS,
      targetWaitMs: targetWait,
      batchSize: isBatchless ? 1 : batchSize,
    };
  }

  /** The bounds that the newest options say; null if the model does not scale by itself. @throws SERVE_CONFIG */
  findOwnBounds(): WorkerBounds | null {
    const { generations, resources } = this.#model;
    const { options } = generations.newest.spec.resolved;
    return ownBounds(options, () => resources.devices.firstCount(options));
  }

  /** Estimated time until a worker is ready; null unless the model scales by itself and has none. */
  startsInMs(): number | null {
    const { crew } = this.#model;
    if (this.bounds === null || crew.ready.length > 0) return null;
    return startLeftMs(crew.kept, this.demand.startMs, performance.now());
  }

  /** Whether workers are being replaced. */
  get isReplacing(): boolean {
    const { crew, generations } = this.#model;
    return generations.replacements > 0 || generations.isUntried || crew.kept.some(isBetween);
  }

  /** Starts a worker in each of these placements, which `Devices` gave. */
  start(placements: readonly Placement[]): void {
    const { crew, health } = this.#model;
    const own = this.findOwnBounds();
    const count = crew.kept.length + placements.length;
    health.want(count, count > 0 || own !== null);
    crew.add(placements);
    this.#own = own;
    this.#follow(own);
  }

  /**
   * Adds or retires slots until their number is within the bounds; latched slots do not count, and try again, as failing ones do. A worker that
   * is retired first ends the calls that it holds, as far as `limits` allow; no call is lost or run twice. With none, new
   * calls are refused from now on, and accepted calls end before the workers stop.
   *
   * Resolves once every slot has a ready worker or is latched or failing, and all other workers are gone. If another `resize` overtakes
   * this one, it resolves with the numbers of that one.
   * @throws SERVE_CONFIG if there are not enough devices, and SERVE_SHUTTING_DOWN
   */
  resize(bounds: WorkerBounds, limits: RetireLimits): Promise<Outcome> {
    const { crew, generations, health, resources } = this.#model;
    if (health.isDraining) throw shuttingDown();
    const count = countWithin(bounds, crew.running);
    const missing = count - crew.kept.length;
    const own = this.findOwnBounds();
    const more = resources.devices.take(generations.newest.spec.resolved.options, missing);
    this.#own = own;
    const takesCalls = count > 0 || (own !== null && bounds.max > 0);
    health.want(count, takesCalls);
    this.#latest += 1;
    if (missing <= 0) crew.hurry(limits);
    if (!takesCalls) void this.#retireAll(limits, this.#latest);
    else {
      this.#emptyAtMs = Infinity;
      crew.retire(crew.kept.length - count - this.#mostStandbys(count), limits);
      for (const slot of crew.kept) slot.startAgain();
      crew.add(more);
      this.keepStandbys();
    }
    applyQueueLimits(this.#model); // also lets one that stood by take what waits
    this.#follow(own === null ? null : bounds);
    return health.whenSettled();
  }

  /** Scales within the bounds of the newest options, if they have others than those before. */
  followOptions(limits: RetireLimits): void {
    const { health, resources, generations } = this.#model;
    if (health.isDraining || !health.takesCalls) return;
    const before = this.#own;
    const own = this.findOwnBounds();
    if (own?.min === before?.min && own?.max === before?.max) {
      this.keepStandbys();
      this.ask(); // other rules may have changed
      return;
    }
    const { options } = generations.newest.spec.resolved;
    void this.resize(own ?? exactly(resources.devices.firstCount(options)), limits);
  }

  /**
   * Retires the last workers once the accepted calls have ended, or their time is over. If this is asked again meanwhile,
   * the earlier end counts.
   */
  async #retireAll({ finishMs, graceMs }: RetireLimits, latest: number): Promise<void> {
    const { crew, dispatcher, health } = this.#model;
    const endAtMs = Math.min(this.#emptyAtMs, performance.now() + finishMs);
    this.#emptyAtMs = endAtMs;
    const isOvertaken = (): boolean => this.#latest !== latest || health.isDraining;
    await untilQuiet(() => dispatcher.isQuiet || isOvertaken(), endAtMs);
    if (isOvertaken()) return;
    const leftMs = Math.max(0, endAtMs - performance.now());
    crew.retire(crew.kept.length, { finishMs: leftMs, graceMs });
  }

  /** Scales within these bounds from now on; null: not at all. */
  #follow(bounds: WorkerBounds | null): void {
    this.bounds = bounds;
    if (bounds !== null) this.demand.record();
    this.ask();
  }

  /** A worker is ready, `startMs` after its process was started. */
  started(startMs: number): void {
    this.demand.history?.started(startMs, performance.now());
    this.ask();
    this.keepStandbys();
  }

  /** Asks the policy, and does what it says. */
  ask(): void {
    const { rules } = this;
    const { crew, health } = this.#model;
    const { history } = this.demand;
    if (rules === null || history === null || !this.#mayGrow) return;
    if (health.isDraining && crew.kept.length > 0) return; // only calls that are held are worth a start
    const { wanted, why, ...next } = decide(this.#gather(rules, history), rules);
    // The policy looks back once a second, which is too rarely for shorter idle timeouts.
    const soonMs = performance.now() + rules.idleTimeoutMs;
    let againAtMs = next.againAtMs === null ? null : Math.min(next.againAtMs, soonMs);
    this.#replayAtMs = Math.min(next.replayAtMs, soonMs);
    if (wanted > why.from) this.grow(wanted - why.from, why);
    else if (wanted < why.from && !this.#shrink(why.from - wanted, why) && againAtMs !== null)
      againAtMs = Math.max(againAtMs, performance.now() + BUSY_PAUSE_MS);
    this.#alarm.stop();
    if (againAtMs !== null) this.#alarm.set(againAtMs);
  }

  /** Lets workers that stand by take calls, and adds slots, as many as the maximum allows. */
  grow(count: number, why: ScalingWhy): void {
    const { crew, health, resources, generations, dispatcher } = this.#model;
    // On a GPU, whose memory may not hold two, a worker that ends must be gone first.
    const isGpuTaken = crew.all.some(({ isKept, device }) => !isKept && device !== 'cpu');
    const { standbys } = crew;
    const serving = crew.kept.length - standbys.length;
    const room = (this.bounds?.max ?? 0) - serving;
    const more = Math.min(count, room, isGpuTaken ? standbys.length : Infinity);
    if (more <= 0) return;
    const { options } = generations.newest.spec.resolved;
    const placements = resources.devices.take(options, more - standbys.length);
    health.want(serving + more, true);
    const stayBehind = crew.standbys;
    const stepIn = standbys.filter((slot) => slot.failure === null && !stayBehind.includes(slot));
    for (const { index } of stepIn) {
      this.demand.history?.steppedIn(performance.now());
      this.#note(index, 'stands by no longer', why);
    }
    for (const { index } of crew.add(placements)) this.#note(index, 'starts', why);
    this.keepStandbys();
    if (stepIn.length > 0) dispatcher.pump();
  }

  /** The worker ends what it holds and goes, for the memory budget; one that calls need comes back in its turn. */
  sendAway(slot: Slot, why: ScalingWhy): void {
    if (slot.worker !== null) slot.worker.callersWait = true; // clients may not keep it for ever
    this.#leave(slot, why, { ...this.#model.resources.retireLimits, finishMs: UNTIL_ENDED_MS });
  }

  /** Gives up a start that waits for memory, since no call waits for it. */
  withdraw(slot: Slot): void {
    this.#leave(slot, { rule: 'not-needed' }, this.#model.resources.retireLimits);
  }

  /** Adds the workers that should stand by, and retires those that are too many. */
  keepStandbys(): void {
    const { crew, health, resources } = this.#model;
    const { wanted } = crew;
    if (!this.#mayGrow || health.isDraining || wanted === 0) return;
    const standing = crew.kept.length - wanted;
    if (standing < 0) return; // the wanted ones are being added or retired now
    const missing = this.#mostStandbys(wanted) - standing;
    if (missing < 0) crew.retire(-missing, resources.retireLimits);
    else if (crew.ready.length > 0) this.#addStandbys(missing);
  }

  close(): void {
    this.#alarm.stop();
  }

  /** Whether another worker could be of use. */
  get #mayGrow(): boolean {
    const { crew, health } = this.#model;
    return !crew.isClosed && health.standstill === null && health.takesCalls;
  }

  /** Retires idle workers, frozen ones first, then those with the highest index. Returns false if there is none that may leave now. */
  #shrink(count: number, why: Why): boolean {
    const { crew, health, dispatcher, resources } = this.#model;
    if (this.isReplacing) return false;
    const idle = crew.kept.filter(
      ({ state, worker, workers }) =>
        state.name === 'live' &&
        worker?.state === 'ready' &&
        dispatcher.isFree(worker) &&
        workers.length === 1, // one that gets no more calls ends those that it holds, within their own limits
    );
    const isFrozen = ({ worker }: Slot): boolean => worker?.isFrozen ?? false;
    const { kept, standbys } = crew;
    const fewer = Math.min(count, idle.length);
    const isLast = fewer === why.from;
    // With the last one all leave, those that stand by and those that gave up: none of them may still end a call.
    const endsCalls = kept.some(({ workers }) => workers.length > 1);
    if (isLast && (endsCalls || crew.holders.some((worker) => !dispatcher.isFree(worker)))) return false;
    const serving = kept.length - standbys.length - fewer;
    const mayServe = standbys.filter(({ failure }) => failure === null).length;
    const leavers = isLast ? idle.length : Math.max(0, fewer + mayServe - this.#mostStandbys(serving));
    const order = idle.toSorted((a, b) => Number(isFrozen(a)) - Number(isFrozen(b)));
    const leaving = order.slice(Math.max(0, order.length - leavers));
    health.want(isLast ? 0 : serving, true);
    if (isLast) for (const slot of kept) if (!leaving.includes(slot)) slot.retire(resources.retireLimits);
    for (const slot of leaving) {
      this.#note(slot.index, 'leaves', why);
      slot.retire(resources.retireLimits);
    }
    this.keepStandbys();
    return fewer > 0;
  }

  /** One worker fewer is wanted, unless this one stands by. With the last one all leave. */
  #leave(slot: Slot, why: ScalingWhy, limits: RetireLimits): void {
    const { crew, health } = this.#model;
    const { kept, standbys } = crew;
    this.#note(slot.index, 'leaves', why);
    const serving = kept.length - standbys.length - 1;
    if (!standbys.includes(slot)) {
      health.want(serving, true);
      if (serving === 0) for (const standby of standbys) standby.retire(limits);
    }
    slot.retire(limits);
    crew.refresh();
    this.ask();
  }

  /** Logs and counts that a worker comes or goes. */
  #note(worker: number, what: 'starts' | 'stands by no longer' | 'leaves', reason: ScalingWhy): void {
    const { rule } = reason;
    const why = whyText(reason);
    const change = what === 'leaves' ? 'retired' : 'started';
    const noted = { at: new Date().toISOString(), worker, change, rule, why } as const;
    this.changes = [...this.changes, noted].slice(-CHANGES_KEPT);
    const key = `${change} ${rule}`;
    this.changeCounts.set(key, (this.changeCounts.get(key) ?? 0) + 1);
    this.#model.log.worker(worker, `${what}: ${why}`);
  }

  #gather({ idleTimeoutMs }: ScalingRules, history: ScalingHistory): ScalingFacts {
    const { crew, dispatcher } = this.#model;
    const { standbys } = crew;
    const nowMs = performance.now();
    const isFree = dispatcher.isFree.bind(dispatcher);
    history.keepMs = Math.max(idleTimeoutMs, 2 * history.startMs);
    const serving = crew.kept.filter((slot) => !standbys.includes(slot));
    const standing = standbys.filter(
      ({ worker }) => worker !== null && !worker.isFrozen && crew.holders.includes(worker) && isFree(worker),
    );
    return {
      nowMs,
      ...countWorkers(serving, isFree, nowMs),
      standing: standing.length, // those that would begin a call at once
      line: this.demand.line(nowMs),
      history,
      replayAtMs: this.#replayAtMs,
    };
  }

  /** Number of workers that should stand by, beyond `wanted` ones. */
  #mostStandbys(wanted: number): number {
    return wanted === 0 ? 0 : this.#model.generations.newest.spec.resolved.options.standby;
  }

  #addStandbys(count: number): void {
    const { crew, log } = this.#model;
    for (let i = 0; i < count; i += 1) {
      const placement = this.#takePlace();
      if (placement === null) return;
      for (const { index } of crew.add([placement]))
        log.worker(index, 'starts: it will stand by (--standby)');
    }
    this.#isShort = false;
  }

  /** Takes a place for one more slot; null if there is none, about which the log gets one line. */
  #takePlace(): Placement | null {
    const { crew, resources, generations, log } = this.#model;
    const { name, version, resolved } = generations.newest.spec;
    const { options } = resolved;
    let why = `each GPU has as many workers as it should (--workers-per-gpu ${options.workersPerGpu ?? 1})`;
    try {
      const placement = resources.devices.takeIfFree(options);
      if (placement !== null) {
        if (resources.memory?.ledger.hasRoomFor(`${name}@${version}`, placement.device) ?? true)
          return placement;
        resources.devices.giveBack(placement);
        why = 'the memory budget has no room for it now';
      } else if (crew.all.length > crew.kept.length) return null; // the place of one that leaves is free soon
    } catch (error) {
      why = (error as Error).message; // the options have changed since the start, and do not fit the machine
    }
    if (!this.#isShort) log.noStandby(why);
    this.#isShort = true;
    return null;
  }
}
