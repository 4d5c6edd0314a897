/** Options of jobs: calls that outlive their clients. */
import { parseBytes, parsePositiveMs } from '../units.js';
import { DURATION, MIB, MINUTE, serverOption, type SomeOptions } from '../option-spec.js';

export const JOBS = {
  jobRetention: serverOption<number>({
    flag: '--job-retention',
    value: DURATION,
    help: 'Time that an ended job is kept with its result, if there is room.',
    defaultText: '15m',
    default: 15 * MINUTE,
    parse: parsePositiveMs,
  }),
  jobBytes: serverOption<number>({
    flag: '--job-bytes',
    value: '<size>',
    help: 'Bytes of the bodies and results of jobs, 1 KiB a job at least. When they run short, ended jobs are dropped, the oldest first; then new jobs are refused with 503, and results are dropped.',
    defaultText: '256mb',
    default: 256 * MIB,
    parse: parseBytes,
  }),
} as const satisfies SomeOptions;
