/** Logs events of a server for its operator: its start, failed background jobs, missing protection. */
import { isAppsRefusal, type ServeError } from '../../protocol/errors.js';
import { asClause } from '../../protocol/text/sentences.js';
import { callFacts, type CallFacts, type JobCall } from '../dispatch/job.js';
import { statusOf } from '../http/answer/house-error.js';
import { METRICS_PATH } from '../http/dialects/metrics.js';
import type { JobRecord, KeptJobs, StoredCall } from '../jobs/kept-jobs.js';
import type { Model } from '../models/model.js';
import type { Log } from '../observe/log.js';
import { formatMs } from '../options/units.js';
import { withheldNames } from '../options/inherited-env.js';
import { startTexts, tryText, withheldText } from '../status/banner.js';
import type { Listeners } from './listeners.js';
import type { ServerPlan } from '../plan/plan-server.js';

export class OperatorLog {
  readonly #log: Log;
  readonly #plan: ServerPlan;

  constructor(log: Log, plan: ServerPlan) {
    this.#log = log;
    this.#plan = plan;
  }

  logWarnings(): void {
    for (const warning of this.#plan.warnings) this.#log.warn(warning);
  }

  logOpen(
    { url, managementUrl, metricsUrl }: Listeners,
    jobs: Pick<KeptJobs, 'isDurable' | 'storeName'>,
  ): void {
    const { models, devices, management, metrics } = this.#plan;
    for (const text of startTexts(models, devices.threads, url)) this.#log.info(text);
    if (jobs.isDurable) this.#log.info(`store of jobs: ${jobs.storeName}`);
    this.#logWithheld();
    if (managementUrl !== null) {
      this.#log.info(`the management API is on ${managementUrl}`);
      if (management?.isOpenToAll === true)
        this.#log.warn('the management API needs no key, and anyone who can reach it can run code here');
    }
    if (metricsUrl !== null) this.#log.info(`metrics are on ${metricsUrl}${METRICS_PATH}`);
    if (metrics?.isOnMain === true) this.#log.info(`metrics are on ${url}${METRICS_PATH}`);
  }

  logExample(model: Model, { url, socketPath }: Listeners): void {
    const command = tryText(model, url, socketPath, this.#plan.keys.required);
    if (command !== null) this.#log.info(command);
  }

  logFailedJob({ id, route }: JobRecord, error: ServeError, call: CallFacts): void {
    const facts = { job: id, ...call, status: statusOf(error), code: error.code };
    const job = `the background job ${id} of ${route}`;
    if (error.code === 'SERVE_JOB_CANCELLED') this.#log.info(facts, `${job} was cancelled`);
    else if (isAppsRefusal(error)) this.#log.info(facts, `${job} was refused by the app: ${error.message}`);
    else this.#log.warn(facts, `${job} failed: ${error.message}`);
  }

  logRetriedJob(record: JobRecord, { code, message }: ServeError, call: StoredCall): void {
    const { id, route, attempts, maxAttempts, dueAt } = record;
    const wait = formatMs(Math.max(0, dueAt - Date.now()));
    const text = `attempt ${attempts} of ${maxAttempts} at the job ${id} of ${route} failed, the next is in ${wait}: ${message}`;
    this.#log.warn({ job: id, ...callFacts(call), code }, text);
  }

  logLosable(): void {
    this.#log.info(
      'jobs are kept in memory, and a restart of this server loses them: --jobs local keeps them in a folder',
    );
  }

  logStranded(text: string): void {
    this.#log.warn(text);
  }

  logStoreAway(why: string): void {
    this.#log.error(
      `the store of jobs fails: ${why}. Until it works again no job is accepted, and those that wait may not begin`,
    );
  }

  logStoreWarning(text: string): void {
    this.#log.warn(`jobs: ${text}`);
  }

  logStoreWell(): void {
    this.#log.info('the store of jobs works again');
  }

  logUnrecordedCall(call: JobCall, error: ServeError): void {
    const facts = { ...callFacts(call), status: call.statusOf(error), code: error.code };
    this.#log.error(facts, `a call of ${call.route} could not be recorded: ${error.detail}`);
  }

  logUnguarded(why: string): void {
    this.#log.warn(
      `orphan guard: ${asClause(why)}; if this server is killed, a worker inside native code ends only when it returns`,
    );
  }

  #logWithheld(): void {
    const { explicit, options } = this.#plan.resolved;
    if (explicit.has('withholdEnv')) return;
    const names = withheldNames(options.withholdEnv);
    if (names.length > 0) this.#log.info(withheldText(names));
  }
}
