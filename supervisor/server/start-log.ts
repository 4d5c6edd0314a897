/** Logs the start of a server for its operator: its addresses, what it serves, how to call it. */
import { METRICS_PATH } from '../http/dialects/metrics.js';
import { calledModel } from '../http/dialects/mms/path.js';
import type { KeptJobs } from '../jobs/kept-jobs.js';
import type { Model } from '../models/model.js';
import type { Models } from '../models/models.js';
import type { Log } from '../observe/log.js';
import { withheldNames } from '../options/environment.js';
import type { ServerPlan } from '../plan/plan-server.js';
import { startTexts, tryText, withheldText } from '../status/banner.js';
import type { Addresses } from './listeners.js';

export function logOpen(
  log: Log,
  { models, devices, management, metrics, resolved }: ServerPlan,
  { url, managementUrl, metricsUrl }: Addresses,
  jobs: Pick<KeptJobs, 'isDurable' | 'storeName'>,
): void {
  for (const text of startTexts(models, devices.threads, url)) log.info(text);
  if (jobs.isDurable) log.info(`store of jobs: ${jobs.storeName}`);
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
  { keys }: Pick<ServerPlan, 'keys'>,
  { url, socketPath }: Addresses,
  model: Model,
  models: Models,
): void {
  const clashes = routeClashes(model, models);
  if (clashes.length > 0) log.warn(clashText(clashes));
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
