/**
 * Marks in a worker's stdout and stderr that name the call that prints next: `US mark SP requestId US` (US = 0x1f).
 * They travel in the stream itself, so their order, delay and back-pressure are those of the prints. The mark is random
 * per worker, so that a program's own output cannot imitate one.
 */

const UNIT_SEPARATOR = '\x1f';

/** Returns the bytes to write before the prints of `requestId`; an empty id ends the attribution. */
export function printMark(mark: string, requestId: string): string {
  return `${UNIT_SEPARATOR}${mark} ${requestId}${UNIT_SEPARATOR}`;
}

/** The beginning of every mark of this worker. */
export function printMarkPrefix(mark: string): string {
  return `${UNIT_SEPARATOR}${mark} `;
}

export const PRINT_MARK_END = 0x1f;
