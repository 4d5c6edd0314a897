/** The log lines about a server's start. */
import { relative } from 'node:path';
import type { Model } from '../models/model.js';
import type { FirstModel } from '../models/model-spec.js';
import { labelOf } from '../options/model-name.js';
import { isUnpacked } from '../store/archives/own-folder.js';
import { plural } from './server-status.js';
import { VERSION } from '../version.js';
import { METRICS_PATH } from '../http/dialects/metrics.js';
import { calledModel } from '../http/dialects/mms/request.js';
import type { JobStore } from '../jobs/job-store.js';
import type { Models } from '../models/models.js';
import type { Log } from '../observe/log.js';
import { withheldNames } from '../options/environment.js';
import type { ServerPlan } from '../plan/plan-server.js';

/** Addresses of the listeners, each null if there is none of its own. */
export interface Addresses {
  readonly url: string;
  readonly managementUrl: string | null;
  readonly metricsUrl: string | null;
  /** Path of the main listener's socket; null if it listens on a port. */
  readonly socketPath: string | null;
}

/** Logs the addresses of a server that is open, and what it serves. */
export function logOpen(
  log: Log,
  { models, devices, management, metrics, resolved, platform }: ServerPlan,
  { url, managementUrl, metricsUrl }: Addresses,
  jobs: Pick<JobStore, 'isDurable' | 'name'>,
): void {
  for (const text of startTexts(models, devices.threads, url)) log.info(text);
  if (platform.health !== null) log.info(`AIP_HEALTH_ROUTE: health is on ${url}${platform.health}`);
  if (platform.predict !== null)
    log.info(`AIP_PREDICT_ROUTE: predictions are on ${url}${platform.predict}, before any other path`);
  if (jobs.isDurable) log.info(`store of jobs: ${jobs.name}`);
  const withheld = resolved.explicit.has('withholdEnv') ? [] : withheldNames(resolved.options.withholdEnv);
  if (withheld.length > 0) log.info(withheldText(withheld));
  if (managementUrl !== null) {
    log.info(`the management API is on ${managementUrl}`);
    if (management?.isOpenToAll === true)
      log.warn('the management API needs no key, and anyone who can reach it can run code here');
  }
  if (metricsUrl !== null) log.info(`metrics are on ${metricsUrl}${METRICS_PATH}`);
  if (metrics?.isOnMain === true) log.info(`metrics are on ${url}${METRICS_PATH}`);
}

/** Logs what the first worker of a model has shown: routes that hide other paths, and how to call it if it answers on `/`. */
export function logFirstReady(
  log: Log,
  { keys, platform: { predict } }: Pick<ServerPlan, 'keys' | 'platform'>,
  { url, socketPath }: Addresses,
  model: Model,
  models: Models,
): void {
  const clashes = routeClashes(model, models);
  if (clashes.length > 0) log.warn(clashText(clashes));
  if (models.default === model && predict !== null && model.routes?.has(predict) === true)
    log.warn(
      `${predict} is a route of the app and AIP_PREDICT_ROUTE: it takes instances, and the route is at /models/${model.spec.name}${predict}`,
    );
  const command = models.default === model ? tryText(model, url, socketPath, keys.required) : null;
  if (command !== null) log.info(command);
}

/** The paths that the app answers instead of Multi Model Server's API; empty while the app is not loaded. */
function routeClashes(model: Model, models: Models): string[] {
  const names = new Set(Array.from(models.all(), ({ spec }) => spec.name));
  const prefix = `/models/${model.spec.name}`;
  const paths = [...(model.routes?.keys() ?? [])].flatMap((route) =>
    models.default === model ? [route, prefix + route] : [prefix + route],
  );
  return paths.filter((path) => {
    const called = calledModel(path);
    return called === '' || (called !== null && names.has(called));
  });
}

function clashText(paths: readonly string[]): string {
  const [are, them, unserved] =
    paths.length === 1
      ? ['is a route', 'it', 'path of the same name is']
      : ['are routes', 'them', 'paths of the same names are'];
  return `${paths.join(', ')} ${are} of the app; the app answers ${them}, and Multi Model Server's ${unserved} not served.`;
}

/**
 * `banana-serve 0.1.0 serves app.ts with 2 workers on 2 GPUs (0, 1) on http://localhost:8000`; with several models, a line
 * for each follows. `threads`: CPU threads per worker.
 */
export function startTexts(models: readonly FirstModel[], threads: number, url: string): string[] {
  const [only] = models;
  if (only !== undefined && models.length === 1)
    return [`banana-serve ${VERSION} serves ${nameText(only)}${modelText(only, threads)} on ${url}`];
  const what = models.length === 0 ? 'no model yet' : `${models.length} models`;
  const lines = models.map((model) => `model ${labelOf(model.spec)}: ${modelText(model, threads)}`);
  return [`banana-serve ${VERSION} serves ${what} on ${url}`, ...lines];
}

/** Names a model of an archive, whose path says little. */
function nameText({ spec }: FirstModel): string {
  return isUnpacked(spec.app) ? `the model ${labelOf(spec)} of ` : '';
}

function modelText({ spec, placements, own }: FirstModel, threads: number): string {
  const { app, url, program, resolved } = spec;
  const workers =
    own === null
      ? slotsText(placements, threads)
      : `${own.min} to ${plural(own.max, 'worker')} (as its calls need them)`;
  return `${isUnpacked(app) ? url : shownPath(app)}${interpreterText(program)} with ${workers}${standbyText(resolved.options.standby)}`;
}

/** ` and 1 standby (the memory of one more worker)`; empty without any. */
function standbyText(standby: number): string {
  if (standby === 0) return '';
  return ` and ${plural(standby, 'standby')} (the memory of ${standby === 1 ? 'one more worker' : `${standby} more workers`})`;
}

/** ` (python 3.11.7, .venv/bin/python)`; empty if the app's language has no choice of interpreter. */
function interpreterText({ label, interpreter }: FirstModel['spec']['program']): string {
  return interpreter === undefined
    ? ''
    : ` (${label} ${interpreter.version}, ${shownPath(interpreter.path)})`;
}

function shownPath(path: string): string {
  const shown = relative(process.cwd(), path);
  return shown.startsWith('..') ? path : shown;
}

/** `names`: variables that workers do not get by default because of their names. */
function withheldText(names: readonly string[]): string {
  return `workers do not get these variables, whose names look like secrets: ${names.join(', ')}; set --withhold-env to a pattern to withhold others, or to '' (blacklist_env_vars=) to withhold none`;
}

/**
 * A curl command that calls the app with its example; null if it has no example, because its input cannot be guessed, or one that is too long to paste. The
 * key is a variable of the shell, so that the log does not contain it.
 */
export function tryText(
  { info }: Pick<Model, 'info'>,
  url: string,
  socketPath: string | null,
  needsKey: boolean,
): string | null {
  const { path } = info?.routes.find(({ kind }) => kind !== 'websocket') ?? {};
  if (info === null || info.example === '' || path === undefined) return null;
  if (info.example.length > MAX_EXAMPLE_CHARS) return null;
  // curl's default type is that of a form, and the app may accept forms.
  const type = ['-H', quoted('Content-Type: application/json')];
  const key = needsKey ? ['-H "Authorization: Bearer $BANANA_API_KEY"'] : [];
  const socket = socketPath === null ? [] : ['--unix-socket', quotedIfNeeded(socketPath)];
  const server = socketPath === null ? url : 'http://localhost';
  const place = quotedIfNeeded(path === '/' ? server : `${server}${path}`);
  return ['Try it: curl', ...type, ...key, '-d', quoted(info.example), ...socket, place].join(' ');
}

/** Maximum length of an example in the log, enough for a 64-pixel image as JSON. */
const MAX_EXAMPLE_CHARS = 240;

/** Quotes any text as one word for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function quotedIfNeeded(text: string): string {
  return /^[\w.:/-]+$/.test(text) ? text : quoted(text);
}

function slotsText(placements: FirstModel['placements'], threads: number): string {
  const gpus = [...new Set(placements.flatMap(({ gpu }) => (gpu === null ? [] : [gpu])))];
  const workers = plural(placements.length, 'worker');
  if (gpus.length === 0) return `${workers} on the CPU (${plural(threads, 'thread')} each)`;
  return `${workers} on ${plural(gpus.length, 'GPU')} (${gpus.join(', ')})`;
}
