/** Reports the end of each job that outlived its request: to the log, to the counts of calls, and to its webhook. */
import { splitHeaderLines } from '../../protocol/text/header-lines.js';
import type { ServeError } from '../../protocol/errors.js';
import { callFacts, type JobCall } from '../dispatch/job.js';
import { BANANA_CLIENTS } from '../http/access/banana-clients.js';
import { clientHeaderNames } from '../http/access/client-headers.js';
import { statusOf } from '../http/answer/house-error.js';
import type { CountedRequest, RequestObserver } from '../http/request/backend.js';
import type { EndedJob, JobRecord, KeptJobsListener, StoredCall } from '../jobs/kept-jobs.js';
import type { Model } from '../models/model.js';
import { errorOf, type JobWebhooks } from './job-webhooks.js';
import type { OperatorLog } from './operator-log.js';

export interface JobOutcomesOptions {
  readonly log: Pick<
    OperatorLog,
    | 'logFailedJob'
    | 'logLosable'
    | 'logRetriedJob'
    | 'logStranded'
    | 'logStoreAway'
    | 'logStoreWarning'
    | 'logStoreWell'
    | 'logUnrecordedCall'
  >;
  readonly observer: Pick<RequestObserver, 'settled'>;
  readonly webhooks: Pick<JobWebhooks, 'post'>;
  /** Null if the model is gone. */
  modelOf(ref: { readonly name: string; readonly version: string }): Model | null;
}

export class JobOutcomes implements KeptJobsListener {
  readonly #options: JobOutcomesOptions;

  constructor(options: JobOutcomesOptions) {
    this.#options = options;
  }

  onLosable(): void {
    this.#options.log.logLosable();
  }

  onEnded(ended: EndedJob): void {
    const { record, job } = ended;
    const error = errorOf(ended);
    if (error !== null) this.#options.log.logFailedJob(record, error, callFacts(job.call));
    const status = error === null ? (record.end.result?.head.status ?? 200) : statusOf(error);
    this.#options.observer.settled(this.#requestOf(ended), job, status, error);
    if (record.hasWebhook) this.#options.webhooks.post(ended);
  }

  onRetry(record: JobRecord, error: ServeError, call: StoredCall): void {
    this.#options.log.logRetriedJob(record, error, call);
  }

  onStranded(text: string): void {
    this.#options.log.logStranded(text);
  }

  onStoreAway(why: string): void {
    this.#options.log.logStoreAway(why);
  }

  onStoreWarning(text: string): void {
    this.#options.log.logStoreWarning(text);
  }

  onStoreWell(): void {
    this.#options.log.logStoreWell();
  }

  onNotKept(call: JobCall, error: ServeError): void {
    this.#options.log.logUnrecordedCall(call, error);
  }

  /** The request as its observers would have seen it. */
  #requestOf({ record, call }: EndedJob): CountedRequest {
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
      model: this.#options.modelOf({ name: record.model, version: record.version }),
    };
  }
}

const NAMES = clientHeaderNames([BANANA_CLIENTS]);
