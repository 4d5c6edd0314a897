/** Implements `server.models`, by which programs change models. Checks arguments, because programs may be plain JavaScript. */
import { describeModels } from '../status/snapshot.js';
import type { ModelStatus } from '../models/model-status.js';
import type { ModelPlan } from '../models/model-spec.js';
import type { ModelRef } from '../models/models.js';
import { readModelEntry } from '../options/read-objects.js';
import { notAllowed } from '../options/resolve.js';
import { planModel } from '../plan/plan-models.js';
import type { RetireLimits } from '../processes/worker-listener.js';
import { retireLimits } from '../processes/worker-stop.js';
import type { ModelsHandle, NamedSource, UnregisterOptions } from './server-handle.js';
import type { ModelAdmin } from './models/admin.js';

const A_SOURCE = "an object, such as { name: 'digits', app: './digits.ts' }";

/** `cwd`: folder of relative paths. */
export function modelsHandle(admin: ModelAdmin, cwd: string): ModelsHandle {
  /** Settles once every replacement so far is planned or refused, so that replacements stay in order. */
  let planned: Promise<unknown> = Promise.resolve();

  const describe: ModelsHandle['describe'] = (ref) => {
    const all = describeModels(admin.registry, true);
    if (ref === undefined) return all;
    checkRef(ref, 'describe');
    const matching = all.filter(
      ({ name, version }) => name === ref.name && (ref.version ?? version) === version,
    );
    if (matching.length === 0) admin.registry.find(ref); // throws
    return matching;
  };

  const planOf = async (given: NamedSource, operation: string): Promise<ModelPlan> => {
    if (typeof given !== 'object' || given === null) throw notAllowed(`${operation}(model)`, given, A_SOURCE);
    const { name, ...source } = given;
    const keys = { where: (key: string) => `${operation}({ ${key} })`, isProgram: true };
    const entry = readModelEntry(name, source, keys.where(`name: ${JSON.stringify(name)}`), keys);
    return planModel(entry, admin.optionsFor(entry.name), cwd);
  };

  return {
    async register(given) {
      const { spec } = await admin.register(await planOf(given, 'register'));
      return describe(spec)[0] as ModelStatus;
    },

    async replace(given, options = {}) {
      const limits = limitsOf(options, 'replace', admin.limits);
      const before = planned;
      const planning = planOf(given, 'replace');
      planned = Promise.allSettled([before, planning]);
      await before;
      return admin.replace(await planning, limits);
    },

    scale(ref, options = {}) {
      checkRef(ref, 'scale');
      const limits = limitsOf(options, 'scale', admin.limits);
      return admin.resize(ref, admin.boundsFor('program', ref, options), limits);
    },

    unregister(ref, options = {}) {
      checkRef(ref, 'unregister');
      return admin.registry.unregister(ref, limitsOf(options, 'unregister', admin.limits));
    },

    setDefault(ref) {
      checkRef(ref, 'setDefault');
      admin.registry.setDefault(ref);
    },

    describe,
  };
}

function limitsOf(options: UnregisterOptions, operation: string, usual: RetireLimits): RetireLimits {
  if (typeof options !== 'object' || options === null)
    throw notAllowed(`${operation}(model, options)`, options, 'an object, or nothing');
  const timeoutMs: unknown = options.drainTimeoutMs ?? null;
  if (timeoutMs === null) return usual;
  if (typeof timeoutMs === 'number' && timeoutMs >= 0) return retireLimits(timeoutMs);
  throw notAllowed(`${operation}({ drainTimeoutMs })`, timeoutMs, 'a number of milliseconds');
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
