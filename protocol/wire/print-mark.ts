/**
 * Marks in a worker's stdout and stderr that name the call that prints next: `US mark SP requestId US` (US = 0x1f), and for
 * a record of a log its level and logger: `US mark SP requestId TAB level TAB logger US`; the next mark ends the record.
 * They travel in the stream itself, so their order, delay and back-pressure are those of the prints. The mark is random
 * per worker, so that a program's own output cannot imitate one.
 */

const UNIT_SEPARATOR = '\x1f';

/** The origin of what is printed behind a mark. */
export interface PrintOrigin {
  /** Empty if no call is known. */
  readonly requestId: string;
  /** `debug`, `info`, `warn` or `error` of a record; empty for other prints. */
  readonly level: string;
  /** Name of the record's logger; may be empty. */
  readonly logger: string;
}

/** Returns the bytes to write before the prints of `requestId`; an empty id ends the attribution. */
export function printMark(mark: string, requestId: string, level = ''): string {
  const record = level === '' ? '' : `\t${level}\t`;
  return `${UNIT_SEPARATOR}${mark} ${requestId}${record}${UNIT_SEPARATOR}`;
}

/** The beginning of every mark of this worker. */
export function printMarkPrefix(mark: string): string {
  return `${UNIT_SEPARATOR}${mark} `;
}

/** Reads what stands between the beginning of a mark and its end. */
export function readPrintMark(text: string): PrintOrigin {
  const [requestId = '', level = '', logger = ''] = text.split('\t');
  return { requestId, level, logger };
}

export const PRINT_MARK_END = 0x1f;

/** Any worker's marks; the last may be cut off by its death. A mark is 16 random hex digits. */
// eslint-disable-next-line no-control-regex -- the separator is one
const ANY_MARK = /\x1f[0-9a-f]{16} [^\x1f\n]*(?:\x1f|$)/g;

/** The text as it was printed, without marks. */
export function withoutPrintMarks(text: string): string {
  return text.replaceAll(ANY_MARK, '');
}
