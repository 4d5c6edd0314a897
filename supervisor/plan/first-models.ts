/** Plans all models that a server starts with: its app, named models, and models of the store. */
import { asOnlyModel, sourceNameOf, type ResolvedOptions } from '../options/resolve.js';
import type { ModelStore } from '../store/model-store.js';
import type { ModelPlan } from '../models/model-plan.js';
import { planModels, type ModelsGiven } from './plan-models.js';
import { openStore, planStoreModels } from './store-models.js';

export interface FirstModelPlans {
  readonly plans: readonly ModelPlan[];
  readonly store: ModelStore;
  /** Describe models that were left out and settings without effect. */
  readonly warnings: readonly string[];
}

/** Looks for interpreters, downloads and unpacks archives. @throws SERVE_CONFIG, and the reason of `stop` */
export async function planFirstModels(given: ModelsGiven): Promise<FirstModelPlans> {
  const { cwd, resolved, isMmsMode, stop } = given;
  const store = openStore(resolved, cwd);
  const named = await planModels(given);
  if (mayUnpack(resolved)) void store.removeLeftovers();
  const onStop = (): void => store.close();
  stop?.addEventListener('abort', onStop);
  try {
    const { plans, warnings } = await planStoreModels({
      store,
      wanted: resolved.options.models,
      resolved,
      cwd,
      others: named.map(({ spec }) => spec),
      isLenient: isMmsMode,
      stop,
    });
    stop?.throwIfAborted();
    const all = [...named, ...plans];
    const programWarnings = all.flatMap(({ spec }) => spec.program.warnings);
    return {
      plans: isOneModel(all) ? all.map(asOnly) : all,
      store,
      warnings: [...unusableUrls(resolved), ...warnings, ...programWarnings],
    };
  } catch (thrown) {
    store.close();
    throw thrown;
  } finally {
    stop?.removeEventListener('abort', onStop);
  }
}

/** Whether all are versions of one model. */
function isOneModel(plans: readonly ModelPlan[]): boolean {
  return new Set(plans.map(({ spec }) => spec.name)).size === 1;
}

function asOnly(plan: ModelPlan): ModelPlan {
  return { ...plan, spec: { ...plan.spec, resolved: asOnlyModel(plan.spec.resolved) } };
}

function mayUnpack({ options: { modelStore, allowedUrls } }: ResolvedOptions): boolean {
  return modelStore !== null || allowedUrls.entries.length > 0;
}

function unusableUrls(resolved: ResolvedOptions): string[] {
  const place = sourceNameOf(resolved, 'allowedUrls');
  return resolved.options.allowedUrls.unusable.map((what) => `${place}: ${what}; this entry allows nothing`);
}
