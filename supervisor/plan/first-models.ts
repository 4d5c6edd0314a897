/** Plans all models that a server starts with: its app, named models, and models of the store, which it opens. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { ServeError, configError } from '../../protocol/errors.js';
import { asClause } from '../../protocol/text/sentences.js';
import type { ModelPlan } from '../models/model-spec.js';
import { withoutSecrets } from '../options/allowed-urls.js';
import { labelOf, type FullModelRef } from '../options/model-name.js';
import { NO_OPTIONS, asOnlyModel, sourceNameOf, type ResolvedOptions } from '../options/resolve.js';
import type { WantedModel } from '../options/value-forms.js';
import { isWebAddress } from '../store/download.js';
import { ModelStore } from '../store/model-store.js';
import { releasedOnFailure } from '../store/stored-model.js';
import { nearbyHint } from './app-path.js';
import type { Gathered } from './gather-options.js';
import { planModels, planVersions } from './plan-models.js';

/**
 * Looks for interpreters, downloads and unpacks archives. The warnings are about models that were left out, and settings
 * without effect. @throws SERVE_CONFIG, and the reason of `stop`
 */
export async function planFirstModels(given: Gathered) {
  const { cwd, resolved, hasWholeUrls, stop } = given;
  const store = openStore(resolved, cwd, hasWholeUrls);
  const named = await planModels(given);
  if (mayUnpack(resolved)) void store.removeLeftovers();
  const onStop = (): void => store.close();
  stop?.addEventListener('abort', onStop);
  try {
    const specs = named.map(({ spec }) => spec);
    const { plans, warnings } = await planStoreModels(store, given, specs);
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

/** `folder`: base of relative paths. @throws SERVE_CONFIG that names the setting if the store is not a folder */
export function openStore(resolved: ResolvedOptions, folder: string, hasWholeUrls = false): ModelStore {
  const { modelStore: given } = resolved.options;
  if (given === null) return new ModelStore(null, resolved.options);
  const path = resolve(folder, given);
  const found = statSync(path, { throwIfNoEntry: false });
  const place = sourceNameOf(resolved, 'modelStore');
  if (found === undefined)
    throw configError(`${place} ${given}: no such folder.${nearbyHint(given, folder)}`);
  if (!found.isDirectory()) throw configError(`${place} ${given}: this is a file; give a folder of models.`);
  return new ModelStore(path, resolved.options, hasWholeUrls);
}

/** The options of a server, as its models of a store use them. */
type ServerFacts = Pick<Gathered, 'resolved' | 'isMmsMode' | 'cwd' | 'stop'>;

/**
 * Plans the models of the store that a server starts with. A server without an app leaves out models that cannot be served
 * and starts with the others, as Multi Model Server does; a server with an app refuses to start. `others`: models that exist
 * already; a name may occur again with another version. @throws SERVE_CONFIG, and the reason of `stop`
 */
export async function planStoreModels(
  store: ModelStore,
  server: ServerFacts,
  others: readonly FullModelRef[],
): Promise<{ plans: ModelPlan[]; warnings: string[] }> {
  const { resolved, isMmsMode, stop } = server;
  const wanted = resolved.options.models;
  if (wanted === null) return { plans: [], warnings: [] };
  const isAll = wanted === 'all';
  const place = sourceNameOf(resolved, 'models');
  if (!isAll && !store.exists && !wanted.every(({ url }) => isWebAddress(url)))
    throw configError(
      `${place} names models of a store, but no store is given: give its folder as --model-store.`,
    );
  const each = isAll ? (await store.urls()).map((url) => ({ name: null, url })) : wanted;
  const labels = new Set(others.map(labelOf));
  const plans: ModelPlan[] = [];
  const warnings = isAll && each.length === 0 ? [nothingToLoad(place, resolved)] : [];
  for (const one of each) {
    try {
      const found = await planOne(store, one, server, labels);
      for (const { spec } of found) labels.add(labelOf(spec));
      plans.push(...found);
    } catch (thrown) {
      stop?.throwIfAborted();
      if (!(thrown instanceof ServeError)) throw thrown;
      const entry = `${place} ${isAll ? 'all' : textOf(one)}`;
      if (!isAll && !isMmsMode) throw configError(`${entry}: ${thrown.message}`);
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
  { resolved, cwd, stop }: ServerFacts,
  taken: ReadonlySet<string>,
): Promise<ModelPlan[]> {
  const stored = await store.find({ url, ...(name === null ? {} : { name }), mayGoUnnamed: true });
  return releasedOnFailure(stored.release, async () => {
    for (const version of [stored, ...stored.others]) refuseTaken(taken, version);
    return planVersions(stored, NO_OPTIONS, resolved, cwd, stop);
  });
}

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
