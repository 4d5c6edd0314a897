/** Describes the newest jobs that outlive their requests, for the page. */
import type { JobRecord } from '../../jobs/kept-jobs.js';
import { shownMessage } from '../../http/access/app-words.js';
import type { LiveJob, LiveJobs } from '../live-types.js';

/** `newest`: newest first. Without `showsWords` they have no ids: with an id, any client may read and cancel a job. */
export function describeJobs(newest: readonly JobRecord[], showsWords: boolean): LiveJobs {
  const jobs = newest.map((record) => describeJob(record, showsWords));
  const states: Partial<Record<LiveJob['state'], number>> = {};
  for (const { state } of jobs) states[state] = (states[state] ?? 0) + 1;
  return { states, newest: jobs };
}

/** The messages of 100 jobs are sent to each viewer whenever one job changes; the job's own page has all of one. */
export const MAX_MESSAGE_CHARS = 300;

function describeJob(record: JobRecord, showsWords: boolean): LiveJob {
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
    error: error === null ? null : { code: error.code, message: shortened(shownMessage(error, showsWords)) },
  };
}

function shortened(message: string): string {
  return message.length > MAX_MESSAGE_CHARS ? `${message.slice(0, MAX_MESSAGE_CHARS - 1)}…` : message;
}
