/** Reports the end of each job that outlived its request: to the log, to the counts of calls, and to its webhook. */
import { splitHeaderLines } from '../../protocol/text/header-lines.js';
import { ServeError } from '../../protocol/errors.js';
import { callFacts, type JobCall } from '../dispatch/job.js';
import { BANANA_CLIENTS } from '../http/access/banana-clients.js';
import { clientHeaderNames } from '../http/access/client-headers.js';
import { errorBody, statusOf } from '../http/answer/house-error.js';
import { isJson } from '../http/call/route-check.js';
import type { CountedRequest, RequestObserver } from '../http/request/backend.js';
import type { EndedJob, JobRecord, KeptError, KeptJobsListener, StoredCall } from '../jobs/kept-jobs.js';
import type { Model } from '../models/model.js';
import { newWebhookId } from '../webhooks/webhook.js';
import type { Webhooks } from '../webhooks/webhooks.js';
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
  readonly webhooks: Pick<Webhooks, 'send'>;
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
    const { record, call, job } = ended;
    const error = errorOf(ended);
    if (error !== null) this.#options.log.logFailedJob(record, error, callFacts(job.call));
    const status = error === null ? (record.end.result?.head.status ?? 200) : statusOf(error);
    this.#options.observer.settled(this.#requestOf(ended), job, status, error);
    if (call.webhook !== '') this.#post(ended, error);
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

  /**
   * Posts the answer, if it is JSON. A background route's caller has no other place to look for a failure: its webhook gets
   * errors, and answers that are no success, too.
   */
  #post({ record, call, body }: EndedJob, error: ServeError | null): void {
    const { webhook: url, requestId, isBackground } = call;
    const { result } = record.end;
    const base = { id: newWebhookId(), url, requestId };
    if (error !== null) {
      const json = {
        body: errorBody(error, requestId, { status: statusOf(error) }),
        contentType: 'application/json',
      };
      if (isBackground) this.#options.webhooks.send({ ...base, ...json });
    } else if (body !== null && result !== null && isJson(result.head.contentType)) {
      const { status, contentType } = result.head;
      if (isBackground || status < 300) this.#options.webhooks.send({ ...base, body, contentType });
    }
  }
}

const NAMES = clientHeaderNames([BANANA_CLIENTS]);

function errorOf({ record: { end } }: EndedJob): ServeError | null {
  return end.error === null ? null : asServeError(end.error);
}

function asServeError({ code, message, status, kind, issues }: KeptError): ServeError {
  return new ServeError(code, message, { status, kind, issues });
}
