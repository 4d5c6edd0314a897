/** Reports on jobs, which outlive their requests: to the log, to the counts of calls, and to the webhooks of their callers. */
import { ServeError, isAppsRefusal } from '../../protocol/errors.js';
import { splitHeaderLines } from '../../protocol/text/headers.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { callFacts } from '../dispatch/call.js';
import { postOf } from '../http/dialects/cog/prediction.js';
import { BANANA_CLIENTS, clientHeaderNames } from '../http/access/client-headers.js';
import { errorBody, statusOf } from '../http/answer/house-error.js';
import { isJson } from '../http/call/find-route.js';
import type { CountedRequest, RequestObserver } from '../http/request/request-context.js';
import type { EndedJob } from '../jobs/begins.js';
import { hasEnded, type AnsweredJob, type PostedJob } from '../jobs/job-record.js';
import { wrongPaths } from '../models/model-log.js';
import type { Model } from '../models/model.js';
import type { Log } from '../observe/log.js';
import { formatMs } from '../options/units.js';
import type { Webhook } from '../webhooks/webhooks.js';
import type { JobAnswers } from './host/model-host.js';

export function jobOutcomes(
  log: Log,
  observer: Pick<RequestObserver, 'settled'>,
  onHeldBytes: (bytes: number) => void,
): JobAnswers {
  return {
    statusOf,
    webhookOf,
    onHeldBytes,
    onEnded(ended, model) {
      const error = errorOf(ended);
      if (error !== null) logFailed(log, ended, error);
      const status = error === null ? (ended.record.end.result?.head.status ?? 200) : statusOf(error);
      observer.settled(requestOf(ended, model), ended.job, status, error);
    },
    onRetry({ id, route, attempts, maxAttempts, dueAt }, { code, message }, call) {
      const which = `attempt ${attempts} of ${maxAttempts} at the job ${id} of ${route}`;
      const wait = formatMs(Math.max(0, dueAt - Date.now()));
      log.warn({ job: id, ...callFacts(call), code }, `${which} failed, the next is in ${wait}: ${message}`);
    },
    onNotKept(call, error) {
      const facts = { ...callFacts(call), status: call.statusOf(error), code: error.code };
      log.error(facts, `a call of ${call.route} could not be recorded: ${error.detail}`);
    },
    onLosable: () => log.info(LOSABLE),
    onStranded: (text) => log.warn(text),
    onStoreAway: (why) => log.error(`the store of jobs fails: ${asSentence(why)} ${NO_JOBS}`),
    onStoreWarning: (text) => log.warn(`jobs: ${text}`),
    onStoreWell: () => log.info('the store of jobs works again'),
  };
}

const LOSABLE =
  'jobs are kept in memory, and a restart of this server loses them: --jobs local keeps them in a folder';

const NO_JOBS = 'Until it works again no job is accepted, and those that wait may not begin';

function logFailed(log: Log, { record: { id, route }, job: call }: EndedJob, error: ServeError): void {
  const facts = { job: id, ...callFacts(call.message), status: statusOf(error), code: error.code };
  const name = `the background job ${id} of ${route}`;
  if (error.code === 'SERVE_JOB_CANCELLED') log.info(facts, `${name} was cancelled`);
  else if (error.code === 'SERVE_INPUT_INVALID')
    log.info({ ...facts, paths: wrongPaths(error) }, `the input of ${name} is invalid`);
  else if (isAppsRefusal(error)) log.info(facts, `${name} was refused by the app: ${error.message}`);
  else log.warn(facts, `${name} failed: ${error.message}`);
}

/** The request as its observers would have seen it. */
function requestOf({ call }: EndedJob, model: Model | null): CountedRequest {
  const { headers, method, path, client, requestId, hasKey, dialect } = call;
  const lines = splitHeaderLines(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    request: { headers: Object.fromEntries(lines) as Record<string, string>, method, url: path },
    client,
    requestId,
    headerNames: NAMES,
    counts: true,
    hasKey,
    dialect: { name: dialect },
    model,
  };
}

const NAMES = clientHeaderNames([BANANA_CLIENTS]);

/**
 * An answer, if it is JSON, or what the dialect of the call posts. A background route's caller has no other place to look for a failure: its webhook gets errors,
 * and answers that are no success, too. Its id is that of the job, whichever process sends it.
 */
export function webhookOf(job: PostedJob): Webhook | null {
  const { record, call, body } = job;
  const { webhook: url, requestId, isBackground } = call;
  const base = { id: `msg_${record.id}`, url, requestId };
  const json = { ...base, contentType: JSON_TYPE };
  const post = JOB_POSTS.get(call.dialect);
  if (post !== undefined) {
    const posted = post(job);
    const id = hasEnded(record) ? base.id : `${base.id}_begin`;
    return posted === null ? null : { ...json, id, body: posted };
  }
  if (!hasEnded(record)) return null;
  const { result } = record.end;
  const error = errorOf({ record });
  if (error !== null)
    return isBackground ? { ...json, body: errorBody(error, requestId, { status: statusOf(error) }) } : null;
  if (body === null || result === null || !isJson(result.head.contentType)) return null;
  const { status, contentType } = result.head;
  return isBackground || status < 300 ? { ...base, body, contentType } : null;
}

const JSON_TYPE = 'application/json';

/**
 * Make the bodies of webhooks of jobs, by the dialect of the call; null: none is sent. Other dialects post the app's answer.
 * Not from their `index.ts`: webhooks that an earlier server left are posted before the dialects are loaded.
 */
const JOB_POSTS: ReadonlyMap<string, (job: PostedJob) => Buffer | null> = new Map([['cog', postOf]]);

/** The error with which a job has ended; null if it succeeded. */
function errorOf({ record: { end, begunAt } }: Pick<AnsweredJob, 'record'>): ServeError | null {
  if (end.error === null) return null;
  const { code, message, status, kind, issues } = end.error;
  return new ServeError(code, message, { status, kind, issues, begun: begunAt !== null });
}
