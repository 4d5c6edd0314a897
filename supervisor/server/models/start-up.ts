/**
 * Follows the first models of a server until each is ready or has given up, and decides what happens when a model gives up:
 * the server resolves `ready`, stays up, or ends.
 */
import type { ServeError } from '../../../protocol/errors.js';
import { deferred } from '../../machine/deferred.js';
import type { Model } from '../../models/model.js';
import type { Standstill } from '../../models/slot-summary.js';
import type { Log } from '../../observe/log.js';
import type { ServerOptions } from '../../options/resolve.js';

export class StartUp {
  /** New models that were not changed since: if one of them gives up, its registration fails and it is unregistered again. */
  readonly onTrial = new Set<Model>();
  /** The first models that were not ready yet and have not given up. */
  readonly comingUp = new Set<Model>();
  readonly #options: Pick<ServerOptions, 'watch' | 'onCrashLoop'>;
  readonly #isMmsMode: boolean;
  readonly #log: Pick<Log, 'error'>;
  readonly #onEnd: (error: ServeError) => void;
  /** The first models that are still registered. */
  readonly #models = new Set<Model>();
  readonly #ready = deferred<void>();
  /** Resolves once each first model was ready, has given up or is not wanted any more; rejects if all have given up. */
  readonly ready = this.#ready.promise;
  #wasOneReady = false;

  /**
   * `isMmsMode`: the server stays up even if no first model can start, because other models may be registered. `onEnd` is
   * called if no model can serve: the server must end.
   */
  constructor(
    options: Pick<ServerOptions, 'watch' | 'onCrashLoop'>,
    isMmsMode: boolean,
    log: Pick<Log, 'error'>,
    onEnd: (error: ServeError) => void,
  ) {
    this.#options = options;
    this.#isMmsMode = isMmsMode;
    this.#log = log;
    this.#onEnd = onEnd;
    this.ready.catch(() => {}); // no unhandled rejection if nothing awaits `ready`
  }

  begin(models: readonly Model[]): void {
    for (const model of models) {
      this.#models.add(model);
      this.comingUp.add(model);
    }
    this.#settle();
  }

  onFirstReady(model: Model): void {
    if (this.#models.has(model)) this.#wasOneReady = true;
    this.#settle(model);
  }

  /** `label`: the model's name if there are several, else empty. */
  onStandstill(model: Model, { state: kind, error }: Standstill, label: string): void {
    const everReady = model.health.firstReadyAtMs !== null;
    const prefix = label === '' ? '' : `${label}: `;
    const state = everReady ? 'no worker can be restarted' : 'no worker could start';
    const what = `${prefix}${state}; see the error above`; // in the report of the death
    this.#settle(model);
    if (kind === 'latched' && this.onTrial.has(model))
      this.#log.error(`${what}. The model is unregistered again`);
    else if (this.#options.watch)
      this.#log.error(`${what}. Answering 503 until a file of the app changes (--watch)`);
    else if (this.#endsServer(model)) {
      this.#log.error(what);
      this.#endServer(error);
    } else {
      const stays = `Staying up and answering 503${kind === 'failing' ? ' until a start succeeds' : ''}`;
      this.#log.error(`${what}. ${stays} ${label === '' ? '(--on-crash-loop)' : 'for this model'}`);
    }
  }

  /**
   * The workers of this model do not fit into the memory budget beside others that always stay. The server ends, unless it ran
   * with them before: then only this model gives up.
   */
  onMisfit(model: Model, error: ServeError, wasWell: boolean): void {
    if (!wasWell && this.#models.has(model) && !this.#options.watch) this.#endServer(error);
  }

  /** No worker of the model is wanted now: `ready` does not wait for it. If it takes calls, it is ready without a worker. */
  leaveOut(model: Model): void {
    if (model.health.takesCalls) this.onFirstReady(model);
    else this.#settle(model);
  }

  /** The model was unregistered. */
  forget(model: Model): void {
    this.#models.delete(model);
    this.onTrial.delete(model);
    this.#settle(model);
  }

  /** The server ends: rejects `ready` if it is pending. */
  end(error: ServeError): void {
    this.#ready.reject(error);
  }

  #endServer(error: ServeError): void {
    this.end(error);
    this.#onEnd(error);
  }

  /** Only first models can end the server, and only when all of them have given up. */
  #endsServer(model: Model): boolean {
    const mayEnd = this.#options.onCrashLoop === 'exit' || this.#isStartFailure;
    return mayEnd && this.#models.has(model) && this.#haveAllGivenUp;
  }

  /** Whether the server ends if all first models give up, because none of them was ever ready. */
  get #isStartFailure(): boolean {
    return !this.#wasOneReady && !(this.#isMmsMode && this.#options.onCrashLoop === 'stay');
  }

  get #haveAllGivenUp(): boolean {
    return [...this.#models].every(({ health }) => health.standstill !== null);
  }

  /** `ready` does not wait for this model any more. */
  #settle(model?: Model): void {
    if (model !== undefined) this.comingUp.delete(model);
    const isHopeless = this.#models.size > 0 && this.#isStartFailure && this.#haveAllGivenUp;
    if (this.comingUp.size === 0 && !isHopeless) this.#ready.resolve();
  }
}
