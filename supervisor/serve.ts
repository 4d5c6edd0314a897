/**
 * `serve()`: everything that can be refused is refused here, before anything starts; then the server runs.
 *
 * 1. Options from flags, environment and config files; the app's path; the devices.
 * 2. `server/server.ts` opens the port, starts the workers, and ends both.
 */
import type { ProgramOptions } from '../protocol/option-types.js';
import type { SendAhead } from './dispatch/send-ahead.js';
import { ApiKeys } from './http/call/api-keys.js';
import type { Dialects } from './http/dialects/index.js';
import { readKeyFile } from './options/api-key.js';
import { readModelFlags } from './options/model-entries.js';
import { readConfigFile } from './options/config-file.js';
import { configError } from '../protocol/errors.js';
import { asClause } from '../protocol/sentences.js';
import { planManagement, type ManagementPlan } from './options/management.js';
import { planMetrics, type MetricsPlan } from './options/metrics.js';
import { gatherOptions, type GatheredOptions, type GivenSources } from './options/gather-options.js';
import {
  readEnvironment,
  resolveOptions,
  type ModelOptions,
  type OptionSource,
  type ResolvedOptions,
  type ServerOptions,
} from './options/resolve.js';
import { OPTIONS, OPTION_NAMES } from './options/table.js';
import { planTls, type TlsPlan } from './options/tls.js';
import type { TlsListener } from './options/tls-values.js';
import { readServeOptions } from './options/serve-options.js';
import { availableCores } from './machine/cores.js';
import { discoverGpus, type Discovery } from './machine/gpu-discovery.js';
import { Devices } from './machine/devices.js';
import type { Placement } from './machine/placement.js';
import { holdsApp } from './server/app-path.js';
import { MAIN_FLAGS, type ListenFlags } from './server/listen-flags.js';
import type { ModelSource } from './server/models-handle.js';
import { servedAs } from './options/mms-mode.js';
import { APP_SOURCES } from './runtimes/index.js';
import type { ModelPlan } from './server/plan-models.js';
import { planServed } from './server/plan-served.js';
import type { ServerHandle } from './server/server-handle.js';
import { Server } from './server/server.js';
import { releasedOnFailure } from './store/stored-model.js';

/** Options of `serve()`, by the names of docs/options.md; durations are ms or have a unit, as on the command line. */
export interface ServeOptions extends Omit<ProgramOptions, 'models'> {
  /** Path of the app; without it, `app` of the config file, then `app.ts` and its like. */
  readonly app?: string;
  /** Program and arguments of a worker in another language (docs/wire.md). */
  readonly workerCommand?: readonly string[];
  /**
   * Several models by their names: a path, or an object of path and options. Without an app, none answers on `/`, and
   * `app.ts` is not looked for. A text or an array of texts names models of `modelStore`, as `--models` does.
   */
  readonly models?: Readonly<Record<string, string | ModelSource>> | string | readonly string[] | undefined;
  /** Folder of the config file and of relative paths; the current one. */
  readonly cwd?: string;
}

/** Settings that only the command line (its source of options), an app that starts itself, tests and benchmarks give. */
export interface ServeInternals {
  readonly flags?: OptionSource;
  /** The values of `--model`. */
  readonly modelFlags?: readonly string[];
  /** Said in the log at the start. */
  readonly warnings?: readonly string[];
  /** No other model is served, whatever the config file says: an app is tested by itself. */
  readonly isAlone?: boolean;
  readonly sendAhead?: SendAhead;
  readonly dialects?: Dialects;
  /** Ends what a start may wait for: the answer of an interpreter or of nvidia-smi, downloads, unpacking; `serve()` then rejects. */
  readonly stop?: AbortSignal;
  /** Which app of the file, as the worker names them; empty: the one that it exports. */
  readonly appPlace?: string;
}

/** @throws SERVE_CONFIG if an option is wrong, with nothing started; system errors of `listen` (EADDRINUSE, …) */
export async function serve(given: ServeOptions = {}, internals: ServeInternals = {}): Promise<ServerHandle> {
  const { app, workerCommand = null, models, cwd, source } = readServeOptions(given);
  const environment = readEnvironment(process.env);
  const file = readConfigFile(cwd);
  const { isAlone = false } = internals;
  const named = app ?? (workerCommand === null ? file.app : null);
  const isAppNamed = named !== null || workerCommand !== null;
  const entries = isAlone ? [] : [...readModelFlags(internals.modelFlags ?? []), ...models, ...file.models];
  const sources = {
    given: internals.flags ?? source,
    environment: environment.source,
    file: file.source,
    env: process.env,
    folder: cwd,
    isAppNamed: isAppNamed || entries.length > 0,
    isAppThere: holdsApp(cwd),
  };
  const gathered = isAlone ? alone(sources) : await gatherOptions(sources);
  const { resolved, isMmsMode } = servedAs(gathered.resolved, isAppNamed, gathered.hasMmsConfig);
  const { keys, managementKeys } = keysOf(resolved.options, cwd);
  const management = planManagement(resolved, managementKeys.required);
  const metrics = planMetrics(resolved.options);
  const isThere = (listener: TlsListener): boolean =>
    isListener(resolved.options, listener, management, metrics);
  const tls = isAlone ? null : planTls(resolved, isThere, cwd);
  const { plans, store, warnings } = await planServed({
    app: named,
    appPlace: internals.appPlace ?? '',
    workerCommand,
    entries,
    isMmsMode,
    cwd,
    resolved,
    stop: internals.stop,
  });
  // Models may have been unpacked: nothing of them stays if the server cannot start.
  return releasedOnFailure(
    () => store.close(),
    async () => {
      if (resolved.options.watch) refuseUnwatchable(plans);
      const others = management === null ? [] : [resolved]; // that may come
      const wishes = [...others, ...plans.map(({ spec }) => spec.resolved)].map(({ options }) => options);
      const { devices, problems } = await findDevices(wishes, internals.stop);
      const server = new Server({
        models: plans.map((plan) => ({ ...plan, placements: firstPlaces(plan, devices) })),
        store,
        isMmsMode,
        resolved,
        cwd,
        keys,
        managementKeys,
        management,
        metrics,
        tls,
        devices,
        sendAhead: internals.sendAhead,
        dialects: internals.dialects,
        warnings: [
          ...(internals.warnings ?? []),
          ...environment.warnings,
          ...gathered.warnings,
          ...warnings,
          ...problems,
          ...warningsOf(tls),
          ...corsWarnings(resolved),
        ],
      });
      await server.open().catch((error: unknown) => {
        throw withPlace(error, resolved);
      });
      return server;
    },
  );
}

/** The error of an address that cannot be opened, with the place where it was written, if that was no flag. */
function withPlace(error: unknown, { explicit }: ResolvedOptions): unknown {
  const { flags = MAIN_FLAGS } = error as { flags?: ListenFlags };
  const name = OPTION_NAMES.find((option) => OPTIONS[option].flag === flags.port);
  const place = name === undefined ? undefined : explicit.get(name);
  return place === undefined || place === flags.port ? error : Object.assign(error as Error, { place });
}

/** Whether there is such a listener, with an address of its own, or of one that is asked for as well. */
function isListener(
  { tlsFor, metricsPort }: ServerOptions,
  listener: TlsListener,
  management: ManagementPlan | null,
  metrics: MetricsPlan | null,
): boolean {
  const isOnMain = tlsFor.includes('main'); // whoever shares its address speaks as it does
  if (listener === 'main') return true;
  if (listener === 'management') return management !== null && (!management.isShared || isOnMain);
  return metrics !== null && (metrics.listener !== null || (metricsPort !== null && isOnMain));
}

function warningsOf(tls: TlsPlan | null): readonly string[] {
  return tls === null || tls.warning === '' ? [] : [tls.warning];
}

function corsWarnings({ options, explicit }: ResolvedOptions): string[] {
  const names = (['corsMethods', 'corsHeaders'] as const).filter((name) => options[name] !== null);
  if (options.corsOrigin !== null) return [];
  return names.map((name) => `${explicit.get(name)}: it has no effect without ${OPTIONS.corsOrigin.flag}`);
}

/** Those of calls, and those of the management API: its own, or the same. @throws SERVE_CONFIG */
function keysOf(
  { apiKey, apiKeyFile, managementKey }: ServerOptions,
  folder: string,
): { keys: ApiKeys; managementKeys: ApiKeys } {
  const fileKeys = apiKeyFile === null ? [] : readKeyFile(apiKeyFile, folder);
  const keys = [...(apiKey ?? []), ...fileKeys];
  return { keys: new ApiKeys(keys), managementKeys: new ApiKeys(managementKey ?? keys) };
}

/** Without what brings other models than the app. @throws SERVE_CONFIG */
function alone({ given, environment, file }: GivenSources): GatheredOptions {
  const { options, explicit } = resolveOptions([given, environment, file]);
  const own = { ...options, modelStore: null, models: null, managementPort: null };
  return { resolved: { options: own, explicit }, hasMmsConfig: false, warnings: [] };
}

/** @throws SERVE_CONFIG if its options do not fit the machine */
function firstPlaces({ spec, firstWorkers }: ModelPlan, devices: Devices): Placement[] {
  const { options } = spec.resolved;
  return firstWorkers === null ? devices.takeFirst(options) : devices.take(options, firstWorkers);
}

/** @throws SERVE_CONFIG */
function refuseUnwatchable(plans: readonly ModelPlan[]): void {
  // Models of a store are watched as far as people work on them: not those that were unpacked.
  const unknown = plans.find(
    ({ spec: { service, program } }) => service === null && program.watches.length === 0,
  )?.spec.program;
  if (unknown === undefined) return;
  throw configError(
    `--watch knows the files of apps in ${LANGUAGES}, not those of ${unknown.label}; leave it out.`,
  );
}

const LANGUAGES = new Intl.ListFormat('en-GB').format(APP_SOURCES.languages);

/** What the machine has, as far as anybody wants it. */
async function findDevices(
  wishes: readonly ModelOptions[],
  stop: AbortSignal | undefined,
): Promise<{ devices: Devices; problems: readonly string[] }> {
  const needsNoGpu = wishes.every(({ gpus }) => gpus === 'none');
  const { gpus, said, problem } = await (needsNoGpu ? NOT_ASKED : discoverGpus(process.env, stop));
  const devices = new Devices({ found: gpus, said, ...inheritedMask(process.env), cores: availableCores() });
  return {
    devices,
    problems: problem === null ? [] : [`GPU discovery: ${asClause(problem)}; continuing without`],
  };
}

const NOT_ASKED: Discovery = { gpus: [], problem: null, said: 'none was looked for' };

/** The starter of this process may have left it only some of the devices. ROCm reads CUDA's variable too. */
function inheritedMask(env: NodeJS.ProcessEnv): { inheritedMask: string | undefined; maskVariable: string } {
  const set = ['CUDA_VISIBLE_DEVICES', 'HIP_VISIBLE_DEVICES'].find((name) => env[name] !== undefined);
  return { inheritedMask: set === undefined ? undefined : env[set], maskVariable: set ?? '' };
}
