/**
 * Keeps the workers of all models within the memory that they may use: reads what they use, asks the decision, and does what
 * it says.
 *
 * Before: the spawn gate reports starts, models report changes. After: the gate lets starts go, models send workers away.
 * Memory is read when a start comes or ends, when a worker has ended, and about once a second.
 */
import type { ServeError } from '../../protocol/errors.js';
import { Alarm } from '../machine/limit-timer.js';
import type { Log } from '../observe/log.js';
import { decide, findNextTurnMs } from './decide.js';
import type { Expendables, Holder, Lack, LeaveWhy, RefuseWhy, Start, Step } from './facts.js';
import type { StartCost } from './learner.js';
import { Ledger } from './ledger.js';
import { lackText, refusalError } from './memory-text.js';
import { Readings, type BudgetLimits } from './readings.js';

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

/** New workers of a model that wait for a reading which began after this time; with the error of one that was refused. */
interface Trial {
  readonly model: string;
  readonly fromMs: number;
  error: ServeError | null;
  end(error: ServeError | null): void;
}

export class MemoryBudget {
  readonly ledger: Ledger;
  /** Called when a start may go that could not before. */
  onRoom: () => void = () => {};
  readonly #log: Pick<Log, 'info' | 'warn' | 'error'>;
  readonly #expendables: Expendables;
  readonly #readings: Readings;
  readonly #alarm = new Alarm(() => this.#evaluate());
  readonly #sentAway = { memory: 0, turn: 0, spares: 0 };
  readonly #trials = new Set<Trial>();
  #lacks = new Map<Start, Lack>();
  #isAsked = false;
  #isClosed = false;

  constructor(
    limits: BudgetLimits,
    expendables: Expendables,
    log: Pick<Log, 'info' | 'warn' | 'error'>,
    env: NodeJS.ProcessEnv,
  ) {
    this.#log = log;
    this.#expendables = expendables;
    this.#readings = new Readings(limits, env, {
      groups: () => [...this.ledger.idsOn(() => true), ...expendables.ids],
      groupsOn: (isOn) => this.ledger.idsOn(isOn),
      isHurried: () => this.ledger.isMoving,
      onRead: () => {
        this.ledger.learn();
        this.#evaluate();
        for (const model of this.ledger.models) model.memoryRead();
        this.#endTrials();
      },
      onProblem: (problem) => log.warn(`memory budget: ${problem}`),
    });
    this.ledger = new Ledger(this.#readings, expendables);
  }

  /** A start has come to the gate. */
  enter(start: Start): void {
    this.ledger.starts.add(start);
    this.#readings.look();
    this.nudge(); // one that takes nothing of a budget does not wait for the reading
  }

  /** Whether there is memory for this start. */
  mayGo({ granted }: Start): boolean {
    return this.#isClosed || granted !== null;
  }

  /** `memory: it needs 310 MB; 1.8 GB of --memory-budget 2 GB are used: a (1.2 GB)`; of a start that was not judged yet, `memory`. */
  lackOf(start: Start): string {
    const lack = this.#lacks.get(start);
    return lack === undefined ? 'memory' : `memory: it ${this.#describe(lack)}`;
  }

  /** A start is over, or was given up. */
  leave(start: Start): void {
    this.ledger.starts.delete(start);
    this.#readings.look();
  }

  /** A worker has ended. */
  changed(): void {
    this.ledger.noteDeaths();
    this.#readings.forgetEnded();
    this.#readings.look();
    this.nudge();
  }

  /**
   * Resolves when workers of this model, `name@version`, that are ready now were read and judged: with the error of one for
   * which there is no memory, else with null.
   */
  judge(model: string): Promise<ServeError | null> {
    this.#readings.look();
    const fromMs = performance.now();
    return new Promise((end) => this.#trials.add({ model, fromMs, error: null, end }));
  }

  /** A worker may have become idle. */
  nudge(): void {
    if (this.#isAsked || ![...this.ledger.starts].some(({ granted }) => granted === null)) return;
    this.#isAsked = true;
    setImmediate(() => this.#evaluate()); // deferred: the caller may still be changing state
  }

  /** Sends one idle worker away, for a start on this device that ran out of memory. Returns false if there is none. */
  makeRoom(device: string, model: string): boolean {
    const steps = this.ledger.chooseOne(device, model);
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
      startCosts: this.ledger.learner.costs,
      waiting: Array.from(this.#lacks, ([start, { pool, needBytes }]) => ({
        model: start.model,
        waitedMs: Math.round(nowMs - start.sinceMs),
        pool,
        needBytes,
        holders: this.ledger.holders(pool),
      })),
      sentAway: { ...this.#sentAway },
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#alarm.stop();
    this.#readings.close();
    for (const { end } of this.#trials) end(null);
  }

  #endTrials(): void {
    const readAtMs = Math.min(...this.#readings.pools.map((pool) => pool.readAtMs));
    for (const trial of this.#trials)
      if (readAtMs >= trial.fromMs && this.#trials.delete(trial)) trial.end(trial.error);
  }

  #evaluate(): void {
    this.#isAsked = false;
    if (this.#isClosed) return;
    const facts = this.ledger.gather(performance.now());
    this.#lacks = new Map();
    const steps = decide(facts);
    for (const step of steps) this.#do(step);
    if (steps.some(({ kind }) => kind === 'go')) this.onRoom();
    if (steps.some(({ kind }) => kind.startsWith('refuse') || kind === 'withdraw')) this.changed();
    this.#alarm.stop();
    const turnAtMs = findNextTurnMs(facts);
    if (turnAtMs !== null) this.#alarm.set(turnAtMs);
  }

  #do(step: Step): void {
    switch (step.kind) {
      case 'go':
        return this.ledger.grant(step.start);
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
    const model = this.ledger.modelOf(id);
    if (model === undefined) {
      this.#sentAway.spares += 1;
      this.#expendables.end(id);
      this.#readings.look();
    } else {
      this.#sentAway[why.rule] += 1;
      model.sendAway(id, why);
    }
  }

  #refuseStart(start: Start, why: RefuseWhy): void {
    const error = refusalError(why);
    if (!start.isRenewal) this.#misfit(start.model, error);
    start.refuse(error);
  }

  #refuseWorker(id: number, why: RefuseWhy): void {
    const model = this.ledger.modelOf(id);
    const error = refusalError(why);
    model?.refuse(id, error);
    for (const trial of this.#trials) if (trial.model === model?.name) trial.error = error;
    if (model !== undefined && why.rule === 'together') this.#misfit(model.name, error);
  }

  #misfit(model: string, error: ServeError): void {
    this.#log.error(`model ${model} cannot start: ${error.detail}`);
    this.ledger.named(model)?.misfit(error, this.ledger.learner.well.has(model));
  }

  #noteWait(start: Start, lack: Lack): void {
    this.#lacks.set(start, lack);
    if (start.isLogged || performance.now() - start.sinceMs < LOGGED_AFTER_MS) return;
    start.isLogged = true;
    this.#log.info(`a worker of ${start.model} waits for memory: it ${this.#describe(lack)}`);
  }

  #describe(lack: Lack): string {
    return lackText(lack, this.ledger.holders(lack.pool));
  }
}
