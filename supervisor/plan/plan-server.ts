/**
 * Makes the plan of a server from its options. Every mistake that can be found before the start is refused here.
 *
 * 1. Options from the caller, environment and config files.
 * 2. Listeners: keys, management, metrics, certificates.
 * 3. Models: finds their apps; downloads and unpacks models of the store.
 * 4. Devices of their first workers.
 */
import { configError } from '../../protocol/errors.js';
import { platformPaths, type PlatformPaths } from '../options/environment.js';
import type { ResolvedOptions } from '../options/resolve.js';
import type { Devices } from '../machine/placement.js';
import { APP_SOURCES } from '../runtimes/index.js';
import type { ModelStore } from '../store/model-store.js';
import { NOTHING_LENT, releasedOnFailure } from '../store/stored-model.js';
import { gatherOptions } from './gather-options.js';
import type { ServeInternals, ServeOptions } from './given-options.js';
import type { BudgetLimits } from '../budget/readings.js';
import { findDevices, placeModels, planBudgets } from './plan-devices.js';
import { listenerWarnings, planListeners, type ListenersPlan } from './plan-listeners.js';
import type { FirstModel, ModelPlan } from '../models/model-spec.js';
import { planFirstModels } from './first-models.js';

/** The checked input of a server. */
export interface ServerPlan
  extends ListenersPlan, Pick<ServeInternals, 'sendAhead' | 'dialects' | 'pageFolder'> {
  readonly models: readonly FirstModel[];
  /** The store of the models that the management API and `--models` name. */
  readonly store: ModelStore;
  /** A model store is served without an app: the server has the API and ports of Multi Model Server. */
  readonly isMmsMode: boolean;
  readonly resolved: ResolvedOptions;
  readonly platform: PlatformPaths;
  readonly devices: Devices;
  /** Null: the memory of workers has no limit. */
  readonly budgets: BudgetLimits | null;
  /** Folder of relative paths. */
  readonly cwd: string;
  /** Logged at the start. */
  readonly warnings: readonly string[];
}

/** @throws SERVE_CONFIG if an option is wrong; unpacked files of models are removed then */
export async function planServer(given: ServeOptions, internals: ServeInternals): Promise<ServerPlan> {
  const gathered = await gatherOptions(given, internals);
  const { resolved, cwd, isMmsMode, stop } = gathered;
  const platform = platformPaths(process.env);
  const listeners = planListeners(resolved, cwd, internals.isAlone !== true);
  const { plans, store, warnings: modelWarnings } = await planFirstModels(gathered);
  const release = (): void => store.close();
  return releasedOnFailure(release, async () => {
    if (resolved.options.watch) refuseUnwatchable(plans);
    const others = listeners.management === null ? [] : [resolved]; // models that may be registered later
    const wishes = [...others, ...plans.map(({ spec }) => spec.resolved)].map(({ options }) => options);
    const { devices, problems } = await findDevices(wishes, stop);
    return {
      ...internals,
      ...listeners,
      models: placeModels(plans, devices),
      store,
      isMmsMode,
      resolved,
      platform,
      cwd,
      devices,
      budgets: planBudgets(resolved.options),
      warnings: [
        ...gathered.warnings,
        ...modelWarnings,
        ...problems,
        ...listenerWarnings(listeners, resolved),
      ],
    };
  });
}

/** @throws SERVE_CONFIG if `--watch` cannot watch an app; unpacked models of a store are simply not watched */
function refuseUnwatchable(plans: readonly ModelPlan[]): void {
  const unknown = plans.find(
    ({ spec: { program }, release }) => program.watches.length === 0 && release === NOTHING_LENT,
  )?.spec.program;
  if (unknown === undefined) return;
  throw configError(
    `--watch knows the files of apps in ${LANGUAGES}, not those of ${unknown.label}; leave it out.`,
  );
}

const LANGUAGES = new Intl.ListFormat('en-GB').format(APP_SOURCES.languages);
