/**
 * How the models that a server starts with come up, and what follows when a model has no worker left and gets none.
 * Before: a model says that it is ready for the first time, or has given up. After: the server resolves `ready`, or ends.
 */
import type { ServeError } from '../../../protocol/errors.js';
import type { Log } from '../../observe/log.js';
import { deferred } from '../../machine/deferred.js';

/** A model, as far as starting goes. */
export interface StartingModel {
  readonly isLatched: boolean;
  readonly firstReadyAtMs: number | null;
}

export interface StartUpRules {
  readonly watch: boolean;
  readonly onCrashLoop: 'stay' | 'exit';
  /** That none of the first models can start does not end the server: others may be registered. */
  readonly isMmsMode: boolean;
}

export interface StartUpListener {
  /** The server cannot serve, and ends. */
  onEnd(error: ServeError): void;
}

export class StartUp<M extends StartingModel> {
  readonly #rules: StartUpRules;
  readonly #log: Pick<Log, 'error'>;
  readonly #listener: StartUpListener;
  /** Those that the server started with and still has. */
  readonly #models = new Set<M>();
  /** Those of them that were neither ready yet nor have given up. */
  readonly #comingUp = new Set<M>();
  readonly #ready = deferred<void>();
  #wasOneReady = false;

  constructor(rules: StartUpRules, log: Pick<Log, 'error'>, listener: StartUpListener) {
    this.#rules = rules;
    this.#log = log;
    this.#listener = listener;
    this.#ready.promise.catch(() => {}); // whoever asks for it is told; nobody has to
  }

  /** Resolves once each was ready, has given up or is not wanted any more; rejects if all have given up. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  isComingUp(model: M): boolean {
    return this.#comingUp.has(model);
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

  /** `label`: the model's name, if there are several. */
  onLatched(model: M, error: ServeError, label: string): void {
    const everReady = model.firstReadyAtMs !== null;
    const who = label === '' ? '' : `${label}: `;
    const state = everReady ? 'no worker can be restarted' : 'no worker could start';
    const what = `${who}${state}; the reason stands above`; // in the report of the death
    this.#comingUp.delete(model);
    this.#check();
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
    const stays = 'Staying up and answering 503';
    this.#log.error(`${what}. ${label === '' ? `${stays} (--on-crash-loop)` : `${stays} for this model`}`);
  }

  /** No worker of the model is wanted any more: nothing waits for one. */
  withdraw(model: M): void {
    this.#comingUp.delete(model);
    this.#check();
  }

  /** The model was unregistered. */
  forget(model: M): void {
    this.#models.delete(model);
    this.#comingUp.delete(model);
    this.#check();
  }

  /** The server ends: it will not be ready any more. */
  end(error: ServeError): void {
    this.#ready.reject(error);
  }

  /** A model that was registered at run time never ends the server, nor does one of several that has others beside it. */
  #endsServer(model: M): boolean {
    const first = [...this.#models];
    if (!this.#models.has(model) || !first.every(({ isLatched }) => isLatched)) return false;
    return this.#rules.onCrashLoop === 'exit' || this.#isInVain;
  }

  /** The server would not stay up without a model that was ever ready. */
  get #isInVain(): boolean {
    return !this.#wasOneReady && !(this.#rules.isMmsMode && this.#rules.onCrashLoop === 'stay');
  }

  #check(): void {
    const first = [...this.#models];
    const isHopeless = first.length > 0 && this.#isInVain && first.every(({ isLatched }) => isLatched);
    if (this.#comingUp.size === 0 && !isHopeless) this.#ready.resolve();
  }
}
