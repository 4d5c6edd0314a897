/** Implements `server.models`, by which programs change models. Checks arguments, because programs may be plain JavaScript. */
import type { Accepted, FullModelRef, ModelRef } from '../../models/models.js';
import { readModelEntry } from '../../options/read-objects.js';
import { notAllowed } from '../../options/resolve.js';
import type { RetireLimits } from '../../processes/worker-listener.js';
import { retireLimits } from '../../processes/worker-stop.js';
import type { ModelStatus } from '../../models/model-status.js';
import type {
  ModelsHandle,
  NamedSource,
  ReplaceOptions,
  ScaleOptions,
  UnregisterOptions,
} from './models-handle.js';
import type { ModelPlan } from '../../models/model-spec.js';
import { planModel } from '../../plan/plan-models.js';
import type { ModelAdmin } from './admin.js';
import { describeModels } from '../../status/snapshot.js';

export class ProgramManagement implements ModelsHandle {
  readonly #admin: ModelAdmin;
  /** Folder of relative paths. */
  readonly #cwd: string;
  /** Settles once every replacement so far is planned or refused, so that replacements stay in order. */
  #planned: Promise<unknown> = Promise.resolve();

  constructor(admin: ModelAdmin, cwd: string) {
    this.#admin = admin;
    this.#cwd = cwd;
  }

  async register(given: NamedSource): Promise<ModelStatus> {
    const { spec } = await this.#admin.register(await this.#plan(given, 'register'));
    const { name, version } = spec;
    return this.describe({ name, version })[0] as ModelStatus;
  }

  async replace(given: NamedSource, options: ReplaceOptions = {}): Promise<Accepted> {
    const limits = this.#limits(options, 'replace');
    const before = this.#planned;
    const planning = this.#plan(given, 'replace');
    this.#planned = Promise.allSettled([before, planning]);
    await before;
    const plan = await planning;
    return this.#admin.replace(plan, limits);
  }

  scale(ref: ModelRef, options: ScaleOptions = {}): Accepted {
    checkRef(ref, 'scale');
    const limits = this.#limits(options, 'scale');
    return this.#admin.resize(ref, this.#admin.boundsFor('program', ref, options), limits);
  }

  unregister(ref: ModelRef, options: UnregisterOptions = {}): Accepted {
    checkRef(ref, 'unregister');
    return this.#admin.registry.unregister(ref, this.#limits(options, 'unregister'));
  }

  setDefault(ref: FullModelRef): void {
    checkRef(ref, 'setDefault');
    this.#admin.registry.setDefault(ref);
  }

  describe(ref?: ModelRef): readonly ModelStatus[] {
    const all = describeModels(this.#admin.registry, true);
    if (ref === undefined) return all;
    checkRef(ref, 'describe');
    const matching = all.filter(
      ({ name, version }) => name === ref.name && (ref.version ?? version) === version,
    );
    if (matching.length === 0) this.#admin.registry.find(ref); // throws
    return matching;
  }

  async #plan(given: NamedSource, operation: string): Promise<ModelPlan> {
    if (typeof given !== 'object' || given === null)
      throw notAllowed(
        `${operation}(model)`,
        given,
        "an object, such as { name: 'digits', app: './digits.ts' }",
      );
    const { name, ...source } = given;
    const keys = { where: (key: string) => `${operation}({ ${key} })`, isProgram: true };
    const entry = readModelEntry(name, source, keys.where(`name: ${JSON.stringify(name)}`), keys);
    return planModel(entry, this.#admin.optionsFor(entry.name), this.#cwd);
  }

  #limits(options: UnregisterOptions, operation: string): RetireLimits {
    if (typeof options !== 'object' || options === null)
      throw notAllowed(`${operation}(model, options)`, options, 'an object, or nothing');
    const timeoutMs: unknown = options.drainTimeoutMs ?? null;
    if (timeoutMs === null) return this.#admin.limits;
    if (typeof timeoutMs === 'number' && timeoutMs >= 0) return retireLimits(timeoutMs);
    throw notAllowed(`${operation}({ drainTimeoutMs })`, timeoutMs, 'a number of milliseconds');
  }
}

/** @throws SERVE_CONFIG if a program passed something that is not a reference to a model */
function checkRef(ref: ModelRef, operation: string): void {
  if (typeof ref !== 'object' || ref === null || typeof ref.name !== 'string')
    throw notAllowed(
      `${operation}(model)`,
      ref,
      "a name and an optional version, such as { name: 'digits' }",
    );
}
