/** Options of jobs: calls that outlive their clients. */
import { IN_MEMORY, parseJobsPlace, type JobsPlace } from '../jobs-place.js';
import { parseBytes, parsePositiveMs } from '../units.js';
import { DURATION, serverOption, type SomeOptions } from '../option-spec.js';

export const JOBS = {
  jobs: serverOption<JobsPlace>({
    flag: '--jobs',
    value: '<store>',
    help: 'Where jobs are kept: memory loses them with the process; local keeps them in the folder .banana-jobs, local:<folder> in another, which one server at a time may use; redis://… (or rediss://…) keeps them in a Redis that many servers share. See docs/jobs.md.',
    defaultText: 'memory',
    default: IN_MEMORY,
    secret: true, // may have a password
    parse: parseJobsPlace,
  }),
  jobRetention: serverOption<number | null>({
    flag: '--job-retention',
    value: DURATION,
    help: 'Time that an ended job is kept with its result, if there is room.',
    defaultText: '24h; in memory 15m',
    default: null,
    parse: parsePositiveMs,
  }),
  jobBytes: serverOption<number | null>({
    flag: '--job-bytes',
    value: '<size>',
    help: 'Bytes of the bodies and results of jobs, 1 KiB a job at least. When they run short, ended jobs are dropped, the oldest first; then new jobs are refused with 503, and results are dropped.',
    defaultText: '1gb; in memory 256mb',
    default: null,
    parse: parseBytes,
  }),
} as const satisfies SomeOptions;
