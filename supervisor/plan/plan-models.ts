/** Plans models: checks and completes their options, so that mistakes are found before anything starts. */
import { resolve } from 'node:path';
import { configError } from '../../protocol/errors.js';
import { setBounds } from '../models/bounds.js';
import type { ModelPlan } from '../models/model-spec.js';
import { prepareProgram } from '../runtimes/index.js';
import type { AppSetting, AppSpec } from '../runtimes/runtime.js';
import { refuseTwins, type ModelEntry } from '../options/read-objects.js';
import { inheritedEnv } from '../options/environment.js';
import { FIRST_VERSION, nameOfApp } from '../options/model-name.js';
import {
  resolveModelOptions,
  scalesItself,
  withDefaults,
  type ModelSetting,
  type ModelOptions,
  type OptionSource,
  type ResolvedModelOptions,
  type ResolvedOptions,
} from '../options/resolve.js';
import type { Gathered } from './gather-options.js';
import { NOTHING_LENT, type StoredModel } from '../store/stored-model.js';
import { findApp } from './app-path.js';

/**
 * Plans the app and the named models. If no app is given, looks for `app.ts` and the other default names, unless there are
 * named models or a store. @throws SERVE_CONFIG, and the reason of `stop`
 */
export async function planModels(given: Gathered): Promise<ModelPlan[]> {
  const { entries, cwd, resolved, stop } = given;
  const others = await Promise.all(entries.map((entry) => planModel(entry, resolved, cwd, stop)));
  const hasNoApp = given.app === null && given.workerCommand === null;
  if (hasNoApp && (entries.length > 0 || given.isMmsMode)) {
    refuseTwins(entries);
    if (resolved.options.name === null) return others;
    throw configError(
      '--name names the app that answers on /, but there is no such app: all models have names of their own.',
    );
  }
  const first = await planDefault(given);
  refuseTwins([{ ...first.spec, place: defaultPlace(first, resolved) }, ...entries]);
  return [first, ...others];
}

/** Plans one model with a name. @throws SERVE_CONFIG that names the wrong setting */
export async function planModel(
  entry: ModelEntry,
  server: ResolvedOptions,
  cwd: string,
  stop?: AbortSignal,
): Promise<ModelPlan> {
  const { name, version, place, workerCommand = null } = entry;
  const app = workerCommand === null ? findApp(entry.app as string, cwd, place) : (entry.app ?? '');
  const resolved = resolveModelOptions(server, entry.source, place);
  const spec = { name, version, app, appPlace: '', service: null, workerCommand };
  return completed(spec, app, settingIn(cwd, server, resolved, stop));
}

/** Plans a model of a store and takes over its `release`. Does not check whether its file can be loaded. @throws SERVE_CONFIG */
async function planStored(
  { url, name, app, service, version, place, release }: StoredModel,
  own: OptionSource,
  server: ResolvedOptions,
  cwd: string,
  stop: AbortSignal | undefined,
): Promise<ModelPlan> {
  const setting = server.settingOf?.({ name, version }) ?? null;
  const base = withDefaults(server, STORE_DEFAULTS);
  const below = setting === null ? base : resolveModelOptions(base, setting.source, url);
  const resolved = withStoreBounds(
    resolveModelOptions(below, own, url),
    setting,
    server.options.defaultWorkers,
  );
  const wanted = { name, version, app, appPlace: '', service, workerCommand: null };
  const appSetting = { ...settingIn(cwd, server, resolved, stop), isUnpacked: place === null };
  const { spec, isDefault } = await completed(wanted, url, appSetting);
  const watched = { watches: place === null ? [] : [place], isSingleFile: true }; // unless it is a folder
  const { options } = server;
  const scales = scalesItself(resolved.options);
  const bounds = scales ? null : setBounds(setting, options.defaultWorkers ?? 1);
  const firstWorkers = bounds?.min ?? (isCounted(server) ? null : options.defaultWorkers);
  const program = { ...spec.program, ...watched };
  return { spec: { ...spec, program }, isDefault, firstWorkers, bounds, release };
}

/** Whether the operator gave the number of workers for this kind of machine. */
function isCounted({ explicit }: ResolvedOptions): boolean {
  return explicit.has('workers') || explicit.has('workersPerGpu');
}

/** Plans all versions of a model of a store, the newest first; what is said of all of them is said once. As `planStored` */
export async function planVersions(
  stored: StoredModel,
  own: OptionSource,
  server: ResolvedOptions,
  cwd: string,
  stop?: AbortSignal,
): Promise<[ModelPlan, ...ModelPlan[]]> {
  const plan = (one: StoredModel): Promise<ModelPlan> => planStored(one, own, server, cwd, stop);
  const newest = await plan(stored);
  const others = await Promise.all(stored.others.map(plan));
  return [newest, ...others.map(withoutWarnings)];
}

function withoutWarnings(plan: ModelPlan): ModelPlan {
  const program = { ...plan.spec.program, warnings: [] };
  return { ...plan, spec: { ...plan.spec, program } };
}

/** The bounds of a model of the store that scales by itself: its own setting, and the default number as its most. */
function withStoreBounds(
  resolved: ResolvedModelOptions,
  setting: ModelSetting | null,
  defaultWorkers: number | null,
): ResolvedModelOptions {
  const { options } = resolved;
  if (!scalesItself(options)) return resolved;
  const max = setting?.max ?? options.maxWorkers;
  const minWorkers = setting?.min ?? options.minWorkers ?? (max === null ? 0 : Math.min(1, max));
  const maxWorkers = max ?? (defaultWorkers === null ? null : Math.max(defaultWorkers, minWorkers));
  return { ...resolved, options: { ...options, minWorkers, maxWorkers } };
}

/** Models of a store have the defaults of Multi Model Server; settings of the operator or the app take precedence. */
const STORE_DEFAULTS: Partial<ModelOptions> = { maxBatchDelay: 100, runTimeout: 120_000 };

async function planDefault({ app: given, ...rest }: Gathered): Promise<ModelPlan> {
  const { appPlace, workerCommand, firstWorkers, cwd, resolved, stop } = rest;
  const app = workerCommand === null ? findApp(given, cwd) : (given ?? '');
  const name = resolved.options.name ?? nameOfApp(app);
  const spec = { name, version: FIRST_VERSION, app, appPlace, service: null, workerCommand };
  const plan = await completed(spec, app, settingIn(cwd, resolved, resolved, stop));
  return { ...plan, isDefault: true, firstWorkers: isCounted(resolved) ? null : firstWorkers };
}

async function completed(app: AppSpec, url: string, setting: AppSetting): Promise<ModelPlan> {
  const program = await prepareProgram(app, setting);
  const { workerCommand: _, ...spec } = { ...app, url, program, resolved: setting.resolved };
  return { spec, isDefault: false, firstWorkers: null, bounds: null, release: NOTHING_LENT };
}

function settingIn(
  cwd: string,
  { options }: ResolvedOptions,
  resolved: ResolvedModelOptions,
  stop: AbortSignal | undefined,
): AppSetting {
  const env = inheritedEnv(options.withholdEnv);
  return { startFolder: resolve(cwd), isUnpacked: false, env, resolved, stop };
}

function defaultPlace({ spec: { name, app } }: ModelPlan, { options }: ResolvedOptions): string {
  return options.name === null
    ? `${app} (its file names it ${name}; --name gives it another)`
    : `--name ${name}`;
}
