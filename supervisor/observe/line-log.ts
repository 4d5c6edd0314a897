/**
 * Writes log lines that may occur several times per call, in the form of `log.ts`: pino-pretty takes 30 us per line. Lines
 * are written together at the end of the turn of the event loop.
 */
import { escapeControls, indented, withoutControls } from './control-characters.js';
import type { LogFile } from './log-file.js';
import { showLines, type OutputWriter } from './output-writer.js';
import type { RecentLines } from './recent-lines.js';

const INFO = 'info';

/** `writer` null: the lines go to the files only. `recent` gets the lines that are shown, too. */
export function lineLog(
  format: 'text' | 'json',
  writer: OutputWriter | null,
  files: readonly LogFile[],
  recent: Pick<RecentLines, 'addText'> | null = null,
) {
  /** Pending lines for the terminal, and for files; equal in JSON. */
  let [shown, kept] = ['', ''];
  const now = timesOfNow();
  const flush = (): void => {
    if (writer !== null) showLines(writer, shown);
    for (const file of files) file.writeLines(kept);
    [shown, kept] = ['', ''];
  };
  return {
    /** In JSON `fields` come before the text. Text lines have none: log parsers of Multi Model Server read to their end. */
    info(text: string, fields: Readonly<Record<string, string | number>> | null = null): void {
      if (writer === null && files.length === 0) return;
      if (shown === '') setImmediate(flush);
      if (writer !== null) recent?.addText(INFO, text);
      const { ofDay, iso } = now();
      if (format === 'json') {
        const line = { level: INFO, time: iso, pid: process.pid, ...fields, msg: text };
        shown += escapeControls(`${JSON.stringify(line)}\n`);
        kept = shown;
        return;
      }
      const line = indented(withoutControls(`INFO: ${text}`));
      shown += `[${ofDay}] ${line}\n`;
      kept += `[${iso}] ${line}\n`;
    },
  };
}

/** Returns a function that formats the current time, at most once per millisecond. */
function timesOfNow(): () => { readonly ofDay: string; readonly iso: string } {
  let timeMs = 0;
  let times = { ofDay: '', iso: '' };
  return () => {
    const nowMs = Date.now();
    if (nowMs === timeMs) return times;
    timeMs = nowMs;
    const now = new Date(nowMs);
    const two = (value: number): string => String(value).padStart(2, '0');
    const ms = String(now.getMilliseconds()).padStart(3, '0');
    const ofDay = `${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}.${ms}`;
    times = { ofDay, iso: now.toISOString() };
    return times;
  };
}
