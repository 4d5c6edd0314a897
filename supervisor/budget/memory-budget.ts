/**
 * Keeps the workers of all models within the memory that they may use: reads what they use, asks the decision, and does what
 * it says.
 *
 * Before: the spawn gate reports starts, models report changes. After: the gate lets starts go, models send workers away.
 * Memory is read when a start comes or ends, when a worker has ended, and about once a second.
 */
import type { ServeError } from '../../protocol/errors.js';
import { Alarm } from '../dispatch/alarm.js';
import type { Log } from '../observe/log.js';
import { decide, findNextTurnMs } from './decide.js';
import type { BudgetedModel, Expendables, Holder, Lack, LeaveWhy, RefuseWhy, Step } from './facts.js';
import type { StartCost } from './learner.js';
import { Ledger } from './ledger.js';
import type { MemoryRoom, RoomStart } from './memory-room.js';
import { lackText, refusalError } from './memory-text.js';
import { Readings, type BudgetLimits } from './readings.js';

export interface BudgetOptions extends BudgetLimits {
  readonly expendables: Expendables;
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>;
  readonly env: NodeJS.ProcessEnv;
}

/** The budgets in `/status`. */
export interface BudgetStatus {
  readonly pools: readonly {
    /** `memory`, or the device, such as `gpu 0`. */
    readonly name: string;
    readonly budgetBytes: number;
    readonly usedBytes: number;
  }[];
  /** Memory that a start of each model was found to take. */
  readonly startCosts: readonly StartCost[];
  /** Starts that wait for memory, the one that has waited longest first. */
  readonly waiting: readonly {
    readonly model: string;
    readonly waitedMs: number;
    readonly pool: string;
    /** Null: not known yet. */
    readonly needBytes: number | null;
    /** The models that hold the memory, the largest first. */
    readonly holders: readonly Holder[];
  }[];
  /** Workers that have left for memory so far, by rule, and spare processes. */
  readonly sentAway: { readonly memory: number; readonly turn: number; readonly spares: number };
}

/** A start that waits longer is logged, once. */
const LOGGED_AFTER_MS = 1000;

export class MemoryBudget implements MemoryRoom {
  readonly #log: BudgetOptions['log'];
  readonly #expendables: Expendables;
  readonly #ledger: Ledger;
  readonly #readings: Readings;
  readonly #alarm = new Alarm(() => this.#evaluate());
  readonly #sentAway = { memory: 0, turn: 0, spares: 0 };
  #lacks: ReadonlyMap<RoomStart, Lack> = new Map();
  #onRoom: () => void = () => {};
  #isAsked = false;
  #isClosed = false;

  constructor({ log, expendables, env, ...limits }: BudgetOptions) {
    this.#log = log;
    this.#expendables = expendables;
    this.#readings = new Readings(limits, env, {
      groups: () => [...this.#ledger.idsOn(() => true), ...expendables.ids],
      groupsOn: (isOn) => this.#ledger.idsOn(isOn),
      isHurried: () => this.#ledger.isMoving,
      onRead: () => {
        this.#ledger.learn();
        this.#evaluate();
        this.#ledger.memoryRead();
      },
      onProblem: (problem) => log.warn(`memory budget: ${problem}`),
    });
    this.#ledger = new Ledger(this.#readings, expendables);
  }

  onRoom(listener: () => void): void {
    this.#onRoom = listener;
  }

  add(model: BudgetedModel): void {
    this.#ledger.add(model);
  }

  remove(model: BudgetedModel): void {
    this.#ledger.remove(model);
  }

  enter(start: RoomStart): void {
    this.#ledger.starts.enter(start);
    this.#readings.look();
    this.nudge(); // one that takes nothing of a budget does not wait for the reading
  }

  mayGo(start: RoomStart): boolean {
    return this.#isClosed || (this.#ledger.starts.find(start)?.granted ?? null) !== null;
  }

  /** `memory: it needs 310 MB; 1.8 GB of --memory-budget 2 GB are used: a (1.2 GB)`; of a start that was not judged yet, `memory`. */
  lackOf(start: RoomStart): string {
    const lack = this.#lacks.get(start);
    return lack === undefined ? 'memory' : `memory: it ${this.#describe(lack)}`;
  }

  leave(start: RoomStart): void {
    this.#ledger.starts.leave(start);
    this.#readings.look();
  }

  /** A worker has ended. */
  changed(): void {
    this.#ledger.noteDeaths();
    this.#readings.forgetEnded();
    this.#readings.look();
    this.nudge();
  }

  /** A worker may have become idle. */
  nudge(): void {
    if (this.#isAsked || !this.#ledger.starts.isAnyWaiting) return;
    this.#isAsked = true;
    setImmediate(() => this.#evaluate()); // deferred: the caller may still be changing state
  }

  /** Whether a spare process would fit, as far as that is known. */
  get hasRoomForSpare(): boolean {
    return this.#ledger.hasRoomForSpare;
  }

  /** Whether one more worker of the model would fit on this device, as far as that is known. */
  hasRoomFor(model: string, device: string): boolean {
    return this.#ledger.hasRoomFor(model, device);
  }

  /** Sends one idle worker away, for a start on this device that ran out of memory. Returns false if there is none. */
  makeRoom(device: string, model: string): boolean {
    const steps = this.#ledger.chooseOne(device, model);
    for (const step of steps) this.#do(step);
    return steps.length > 0;
  }

  get status(): BudgetStatus {
    const nowMs = performance.now();
    return {
      pools: this.#readings.pools.map(({ name, limitBytes, ownBytes }) => ({
        name,
        budgetBytes: limitBytes,
        usedBytes: Math.round(ownBytes),
      })),
      startCosts: this.#ledger.learner.costs.all(),
      waiting: Array.from(this.#lacks, ([start, { pool, needBytes }]) => ({
        model: start.model,
        waitedMs: Math.round(nowMs - (this.#ledger.starts.find(start)?.sinceMs ?? nowMs)),
        pool,
        needBytes,
        holders: this.#ledger.holders(pool),
      })),
      sentAway: { ...this.#sentAway },
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#alarm.stop();
    this.#readings.close();
  }

  #evaluate(): void {
    this.#isAsked = false;
    if (this.#isClosed) return;
    const facts = this.#ledger.gather(performance.now());
    this.#lacks = new Map();
    const steps = decide(facts);
    for (const step of steps) this.#do(step);
    if (steps.some(({ kind }) => kind === 'go')) this.#onRoom();
    if (steps.some(({ kind }) => kind.startsWith('refuse') || kind === 'withdraw')) this.changed();
    this.#alarm.stop();
    const turnAtMs = findNextTurnMs(facts);
    if (turnAtMs !== null) this.#alarm.set(turnAtMs);
  }

  #do(step: Step<RoomStart>): void {
    switch (step.kind) {
      case 'go':
        return this.#ledger.grant(step.start);
      case 'leave':
        return this.#sendAway(step.id, step.why);
      case 'refuseStart':
        return this.#refuseStart(step.start, step.why);
      case 'refuseWorker':
        return this.#refuseWorker(step.id, step.why);
      case 'withdraw':
        return step.start.withdraw();
      case 'wait':
        return this.#noteWait(step.start, step.lack);
    }
  }

  #sendAway(id: number, why: LeaveWhy): void {
    const model = this.#ledger.modelOf(id);
    if (model === null) {
      this.#sentAway.spares += 1;
      this.#expendables.end(id);
      this.#readings.look();
    } else {
      this.#sentAway[why.rule] += 1;
      model.sendAway(id, why);
    }
  }

  #refuseStart(start: RoomStart, why: RefuseWhy): void {
    const error = refusalError(why);
    if (!start.isRenewal) this.#misfit(start.model, error);
    start.refuse(error);
  }

  #refuseWorker(id: number, why: RefuseWhy): void {
    const model = this.#ledger.modelOf(id);
    const error = refusalError(why);
    model?.refuse(id, error);
    if (model !== null && why.rule === 'together') this.#misfit(model.name, error);
  }

  #misfit(model: string, error: ServeError): void {
    this.#log.error(`model ${model} cannot start: ${error.detail}`);
    this.#ledger.named(model)?.misfit(error, this.#ledger.learner.wasWell(model));
  }

  #noteWait(start: RoomStart, lack: Lack): void {
    this.#lacks = new Map([...this.#lacks, [start, lack]]);
    const entry = this.#ledger.starts.find(start);
    if (entry === null || entry.isLogged || performance.now() - entry.sinceMs < LOGGED_AFTER_MS) return;
    entry.isLogged = true;
    this.#log.info(`a worker of ${start.model} waits for memory: it ${this.#describe(lack)}`);
  }

  #describe(lack: Lack): string {
    return lackText(lack, this.#ledger.holders(lack.pool));
  }
}
