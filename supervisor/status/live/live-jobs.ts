/** Describes the newest jobs that outlive their requests, for the page. */
import type { JobRecord } from '../../jobs/job-record.js';
import { shownMessage } from '../../http/access/app-words.js';
import type { LiveJob } from '../live-types.js';

/** The messages of 100 jobs are sent to each viewer whenever one job changes; the job's own page has all of one. */
export const MAX_MESSAGE_CHARS = 300;

/** Without `showsWords` a job has no id: with an id, any client may read and cancel it. */
export function describeJob(record: JobRecord, showsWords: boolean): LiveJob {
  const { id, requestId, model, version, route, state, createdAt, progress, end } = record;
  const error = end?.error ?? null;
  return {
    id: showsWords ? id : '',
    requestId,
    model,
    version,
    route,
    state,
    createdAt,
    endedAt: end?.endedAt ?? null,
    runMs: Math.round((end?.runMs ?? 0) * 100) / 100,
    progress: progress === null || showsWords ? progress : { ...progress, text: '' },
    error: error && { code: error.code, message: shortened(shownMessage(error, showsWords)) },
  };
}

function shortened(message: string): string {
  return message.length > MAX_MESSAGE_CHARS ? `${message.slice(0, MAX_MESSAGE_CHARS - 1)}…` : message;
}
