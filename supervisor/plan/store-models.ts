/**
 * Opens the model store and plans the models of it that a server starts with. A server without an app leaves out models that
 * cannot be served and starts with the others, as Multi Model Server does; a server with an app refuses to start.
 */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { ServeError, configError } from '../../protocol/errors.js';
import { asClause } from '../../protocol/text/sentences.js';
import { nearbyHint } from '../options/nearby-path.js';
import { sourceNameOf, type OptionSource, type ResolvedOptions } from '../options/resolve.js';
import { withoutSecrets } from '../options/allowed-urls.js';
import { labelOf, type FullModelRef } from '../options/model-name.js';
import type { WantedModel, WantedModels } from '../options/value-forms.js';
import { isWebAddress } from '../store/download.js';
import { ModelStore } from '../store/model-store.js';
import { releasedOnFailure } from '../store/stored-model.js';
import type { ModelPlan } from '../models/model-plan.js';
import { planVersions } from './plan-models.js';

/** `folder`: base of relative paths. @throws SERVE_CONFIG that names the setting if the store is not a folder */
export function openStore(resolved: ResolvedOptions, folder: string): ModelStore {
  const { modelStore: given, allowedUrls, defaultHandler } = resolved.options;
  if (given === null) return new ModelStore({ folder: null, allowedUrls, defaultHandler });
  const path = resolve(folder, given);
  const found = statSync(path, { throwIfNoEntry: false });
  const place = sourceNameOf(resolved, 'modelStore');
  if (found === undefined)
    throw configError(`${place} ${given}: no such folder.${nearbyHint(given, folder)}`);
  if (!found.isDirectory()) throw configError(`${place} ${given}: this is a file; give a folder of models.`);
  return new ModelStore({ folder: path, allowedUrls, defaultHandler });
}

export interface StoreModelsGiven {
  readonly store: ModelStore;
  /** Null: no model of the store. */
  readonly wanted: WantedModels | null;
  readonly resolved: ResolvedOptions;
  /** Folder in which the server was started. */
  readonly cwd: string;
  /** Models that exist already; a name may occur again with another version. */
  readonly others: readonly FullModelRef[];
  /** Whether named models that cannot be served are left out. */
  readonly isLenient: boolean;
  /** Aborts the start. */
  readonly stop: AbortSignal | undefined;
}

export interface StoreModelPlans {
  readonly plans: readonly ModelPlan[];
  /** Describe the models that were left out, with the reason. */
  readonly warnings: readonly string[];
}

/** @throws SERVE_CONFIG, and the reason of `stop` */
export async function planStoreModels({
  store,
  wanted,
  ...given
}: StoreModelsGiven): Promise<StoreModelPlans> {
  if (wanted === null) return { plans: [], warnings: [] };
  const isAll = wanted === 'all';
  const place = sourceNameOf(given.resolved, 'models');
  if (!isAll && !store.exists && !wanted.every(({ url }) => isWebAddress(url)))
    throw configError(
      `${place} names models of a store, but no store is given: give its folder as --model-store.`,
    );
  const each = isAll ? (await store.urls()).map((url) => ({ name: null, url })) : wanted;
  const labels = new Set(given.others.map(labelOf));
  const plans: ModelPlan[] = [];
  const warnings = isAll && each.length === 0 ? [nothingToLoad(place, given.resolved)] : [];
  for (const one of each) {
    try {
      const found = await planOne(store, one, given, labels);
      for (const { spec } of found) labels.add(labelOf(spec));
      plans.push(...found);
    } catch (thrown) {
      given.stop?.throwIfAborted();
      if (!(thrown instanceof ServeError)) throw thrown;
      const entry = `${place} ${isAll ? 'all' : textOf(one)}`;
      if (!isAll && !given.isLenient) throw configError(`${entry}: ${thrown.message}`);
      warnings.push(`${entry}: ${asClause(thrown.message)}; it is left out`);
    }
  }
  return { plans, warnings };
}

function nothingToLoad(place: string, { options: { modelStore } }: ResolvedOptions): string {
  return modelStore === null
    ? `${place} all: there is no model store; give its folder as --model-store`
    : `${place} all: the model store ${modelStore} has no models; each is a folder, an archive or an app file`;
}

async function planOne(
  store: ModelStore,
  { name, url }: WantedModel,
  { resolved, cwd, stop }: Pick<StoreModelsGiven, 'resolved' | 'cwd' | 'stop'>,
  taken: ReadonlySet<string>,
): Promise<ModelPlan[]> {
  const stored = await store.find({ url, ...(name === null ? {} : { name }), mayGoUnnamed: true });
  return releasedOnFailure(stored.release, async () => {
    for (const version of [stored, ...stored.others]) refuseTaken(taken, version);
    return planVersions(stored, NO_OWN_OPTIONS, resolved, cwd, stop);
  });
}

const NO_OWN_OPTIONS: OptionSource = { values: {}, where: (name) => name };

function refuseTaken(labels: ReadonlySet<string>, { name, version }: FullModelRef): void {
  const label = labelOf({ name, version });
  if (!labels.has(label)) return;
  throw configError(
    `there is already a model ${label}; give one of the two another name with name=path, or another version in its manifest.`,
  );
}

function textOf({ name, url }: WantedModel): string {
  const shown = isWebAddress(url) ? withoutSecrets(url) : url;
  return name === null ? shown : `${name}=${shown}`;
}
