/** Bounds on what comes out of an archive. They hold for every archive, and no option lifts them. */

export interface ArchiveLimits {
  /** Files and folders. */
  readonly maxEntries: number;
  /** Of all files together, as they are written. */
  readonly maxBytes: number;
  /** Of what is written to the size of the archive, */
  readonly maxRatio: number;
  /** as soon as more than this is written. */
  readonly ratioCountsFromBytes: number;
}

/**
 * Archives of models hold weights, which hardly shrink, and code, which shrinks to a fifth. deflate reaches 1032 with
 * bytes that are all the same; such a file is harmless while it is small.
 */
export const ARCHIVE_LIMITS: ArchiveLimits = {
  maxEntries: 50_000,
  maxBytes: 64 * 1024 ** 3,
  maxRatio: 100,
  ratioCountsFromBytes: 256 * 1024 ** 2,
};
