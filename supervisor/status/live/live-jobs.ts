/** Describes the newest jobs that outlive their requests, for the page. */
import type { KeptJob } from '../../jobs/kept-jobs.js';
import { shownMessage } from '../../http/access/app-words.js';
import type { LiveJob, LiveJobs } from '../live-types.js';

/** `newest`: newest first. */
export function describeJobs(newest: readonly KeptJob[], showsWords: boolean): LiveJobs {
  const jobs = newest.map((job) => describeJob(job, showsWords));
  const states: Partial<Record<LiveJob['state'], number>> = {};
  for (const { state } of jobs) states[state] = (states[state] ?? 0) + 1;
  return { states, newest: jobs };
}

/** The messages of 100 jobs are sent to each viewer whenever one job changes; the job's own page has all of one. */
export const MAX_MESSAGE_CHARS = 300;

function describeJob(kept: KeptJob, showsWords: boolean): LiveJob {
  const { id, requestId, model, version, route, createdAt, endedAt, runMs, error } = kept;
  return {
    id: showsWords ? id : '',
    requestId,
    model,
    version,
    route,
    state: kept.lookUpState(),
    createdAt: createdAt.getTime(),
    endedAt: endedAt?.getTime() ?? null,
    runMs: Math.round(runMs * 100) / 100,
    error: error === null ? null : { code: error.code, message: shortened(shownMessage(error, showsWords)) },
  };
}

function shortened(message: string): string {
  return message.length > MAX_MESSAGE_CHARS ? `${message.slice(0, MAX_MESSAGE_CHARS - 1)}…` : message;
}
