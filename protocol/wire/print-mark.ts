/**
 * Marks in a worker's stdout and stderr that say which call prints next: `US mark SP requestId US`
 * (US = 0x1f). In the stream itself, so order, promptness and back-pressure are those of the prints.
 * The mark is random per worker, so a program's own output cannot be taken for one.
 */

const UNIT_SEPARATOR = '\x1f';

/** The bytes to write before the prints of `requestId`; an empty id ends the attribution. */
export function printMark(mark: string, requestId: string): string {
  return `${UNIT_SEPARATOR}${mark} ${requestId}${UNIT_SEPARATOR}`;
}

/** How every mark of this worker starts. */
export function printMarkPrefix(mark: string): string {
  return `${UNIT_SEPARATOR}${mark} `;
}

export const PRINT_MARK_END = 0x1f;
