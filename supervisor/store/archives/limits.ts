/** Limits of unpacked archives. They apply to every archive, and no option changes them. */

export interface ArchiveLimits {
  /** Files and folders. */
  readonly maxEntries: number;
  /** Limit of all written files together. */
  readonly maxBytes: number;
  /** Limit of written bytes divided by the size of the archive. */
  readonly maxRatio: number;
  /** `maxRatio` applies when more than this is written. */
  readonly ratioCountsFromBytes: number;
}

/**
 * Archives of models contain weights, which hardly compress, and code, which compresses to a fifth. deflate reaches a ratio
 * of 1032 with equal bytes; such a file is harmless while it is small.
 */
export const ARCHIVE_LIMITS: ArchiveLimits = {
  maxEntries: 50_000,
  maxBytes: 64 * 1024 ** 3,
  maxRatio: 100,
  ratioCountsFromBytes: 256 * 1024 ** 2,
};
