/**
 * Makes the bodies of webhooks of jobs, by the dialect of the call; null: none is sent. Other dialects post the app's answer.
 * Apart from `index.ts`: webhooks that an earlier server left are posted before the dialects are loaded.
 */
import type { PostedJob } from '../../jobs/job-record.js';
import { postOf } from './cog/prediction.js';

export const JOB_POSTS: ReadonlyMap<string, (job: PostedJob) => Buffer | null> = new Map([['cog', postOf]]);
