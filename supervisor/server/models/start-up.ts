/**
 * Follows the first models of a server until each is ready or has given up, and decides what happens when a model gives up:
 * the server resolves `ready`, stays up, or ends.
 */
import type { ServeError } from '../../../protocol/errors.js';
import type { Model } from '../../models/model.js';
import type { Standstill } from '../../models/slot-summary.js';
import type { Log } from '../../observe/log.js';
import { deferred } from '../../machine/deferred.js';

/** The fields of a model that matter for the start. */
export interface StartingModel {
  readonly health: Pick<Model['health'], 'standstill' | 'firstReadyAtMs'>;
}

export interface StartUpRules {
  readonly watch: boolean;
  readonly onCrashLoop: 'stay' | 'exit';
  /** Then the server stays up even if no first model can start, because other models may be registered. */
  readonly isMmsMode: boolean;
}

export interface StartUpListener {
  /** No model can serve: the server must end. */
  onEnd(error: ServeError): void;
}

export class StartUp<M extends StartingModel> {
  /**
   * Models on trial: if one gives up while its function returns true, its registration fails and it is unregistered again.
   */
  readonly onTrial = new Map<M, () => boolean>();
  readonly #comingUp = new Set<M>();
  readonly #rules: StartUpRules;
  readonly #log: Pick<Log, 'error'>;
  readonly #listener: StartUpListener;
  /** The first models that are still registered. */
  readonly #models = new Set<M>();
  readonly #ready = deferred<void>();
  #wasOneReady = false;

  constructor(rules: StartUpRules, log: Pick<Log, 'error'>, listener: StartUpListener) {
    this.#rules = rules;
    this.#log = log;
    this.#listener = listener;
    this.#ready.promise.catch(() => {}); // no unhandled rejection if nothing awaits `ready`
  }

  /** Resolves once each first model was ready, has given up or is not wanted any more; rejects if all have given up. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** The first models that were not ready yet and have not given up. */
  get comingUp(): ReadonlySet<M> {
    return this.#comingUp;
  }

  begin(models: readonly M[]): void {
    for (const model of models) {
      this.#models.add(model);
      this.#comingUp.add(model);
    }
    this.#check();
  }

  onFirstReady(model: M): void {
    if (this.#models.has(model)) this.#wasOneReady = true;
    this.#comingUp.delete(model);
    this.#check();
  }

  /** `label`: the model's name if there are several, else empty. */
  onStandstill(model: M, { state: kind, error }: Standstill, label: string): void {
    const everReady = model.health.firstReadyAtMs !== null;
    const prefix = label === '' ? '' : `${label}: `;
    const state = everReady ? 'no worker can be restarted' : 'no worker could start';
    const what = `${prefix}${state}; see the error above`; // in the report of the death
    this.#comingUp.delete(model);
    this.#check();
    if (kind === 'latched' && this.onTrial.get(model)?.() === true) {
      this.#log.error(`${what}. The model is unregistered again`);
      return;
    }
    if (this.#rules.watch) {
      this.#log.error(`${what}. Answering 503 until a file of the app changes (--watch)`);
      return;
    }
    if (this.#endsServer(model)) {
      this.#log.error(what);
      this.end(error);
      this.#listener.onEnd(error);
      return;
    }
    const stays = `Staying up and answering 503${kind === 'failing' ? ' until a start succeeds' : ''}`;
    this.#log.error(`${what}. ${stays} ${label === '' ? '(--on-crash-loop)' : 'for this model'}`);
  }

  /**
   * The workers of this model do not fit into the memory budget beside others that always stay. The server ends, unless it ran
   * with them before: then only this model gives up.
   */
  onMisfit(model: M, error: ServeError, wasWell: boolean): void {
    if (wasWell || !this.#models.has(model) || this.#rules.watch) return;
    this.end(error);
    this.#listener.onEnd(error);
  }

  /** No worker of the model is wanted now: `ready` does not wait for it. If it `takesCalls`, it is ready without a worker. */
  leaveOut(model: M, takesCalls: boolean): void {
    if (takesCalls) this.onFirstReady(model);
    this.#comingUp.delete(model);
    this.#check();
  }

  /** The model was unregistered. */
  forget(model: M): void {
    this.#models.delete(model);
    this.onTrial.delete(model);
    this.#comingUp.delete(model);
    this.#check();
  }

  /** The server ends: rejects `ready` if it is pending. */
  end(error: ServeError): void {
    this.#ready.reject(error);
  }

  /** Only first models can end the server, and only when all of them have given up. */
  #endsServer(model: M): boolean {
    const first = [...this.#models];
    if (!this.#models.has(model) || !first.every(({ health }) => health.standstill !== null)) return false;
    return this.#rules.onCrashLoop === 'exit' || this.#isStartFailure;
  }

  /** Whether the server ends if all first models give up, because none of them was ever ready. */
  get #isStartFailure(): boolean {
    return !this.#wasOneReady && !(this.#rules.isMmsMode && this.#rules.onCrashLoop === 'stay');
  }

  #check(): void {
    const first = [...this.#models];
    const isHopeless =
      first.length > 0 && this.#isStartFailure && first.every(({ health }) => health.standstill !== null);
    if (this.#comingUp.size === 0 && !isHopeless) this.#ready.resolve();
  }
}
