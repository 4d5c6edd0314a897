/** Logs the start of a server for its operator: its addresses, what it serves, how to call it. */
import { METRICS_PATH } from '../http/dialects/metrics.js';
import type { KeptJobs } from '../jobs/kept-jobs.js';
import type { Model } from '../models/model.js';
import type { Log } from '../observe/log.js';
import { withheldNames } from '../options/environment.js';
import type { ServerPlan } from '../plan/plan-server.js';
import { startTexts, tryText, withheldText } from '../status/banner.js';
import type { Listeners } from './listeners.js';

export function logOpen(
  log: Log,
  { models, devices, management, metrics, resolved }: ServerPlan,
  { url, managementUrl, metricsUrl }: Listeners,
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

/** Logs a command that calls the model, once it is ready. */
export function logExample(
  log: Log,
  { keys }: Pick<ServerPlan, 'keys'>,
  { url, socketPath }: Listeners,
  model: Model,
): void {
  const command = tryText(model, url, socketPath, keys.required);
  if (command !== null) log.info(command);
}
