/** The bytes that a job counts for, against the bound of all jobs together. */
import type { StoredCall } from './job-record.js';

/** Least that a job counts for: its record and its places in the indexes of a store. */
export const LEAST_JOB_BYTES = 1024;

/** Most bytes of a JavaScript character in UTF-8 are three; nearly all of these texts are ASCII. */
export function bytesOfNew({ headers, path, query, bodyBytes }: StoredCall): number {
  return Math.max(LEAST_JOB_BYTES, bodyBytes + headers.length + path.length + query.length);
}

/** The call of a job that has ended is dropped with its body. */
export function bytesOfEnded(resultBytes: number): number {
  return Math.max(LEAST_JOB_BYTES, resultBytes);
}
