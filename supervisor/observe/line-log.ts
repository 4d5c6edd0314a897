/**
 * Writes log lines that may occur several times per call, in the form of `log.ts`: pino-pretty takes 30 us per line. Lines
 * are written together at the end of the turn of the event loop.
 */
import { escapeControls, indented, withoutControls } from './control-characters.js';
import type { LogFile } from './log-file.js';
import { showLines, type OutputWriter } from './output-writer.js';
import type { RecentLines } from './recent-lines.js';

const INFO = 'info';

export class LineLog {
  readonly #format: 'text' | 'json';
  readonly #writer: OutputWriter | null;
  readonly #files: readonly LogFile[];
  readonly #recent: Pick<RecentLines, 'addText'> | null;
  /** Pending lines for the terminal, and for files; equal in JSON. */
  #shown = '';
  #kept = '';
  #timeMs = 0;
  #times = { ofDay: '', iso: '' };

  /** `writer` null: the lines go to the files only. `recent` gets the lines that are shown, too. */
  constructor(
    format: 'text' | 'json',
    writer: OutputWriter | null,
    files: readonly LogFile[],
    recent: Pick<RecentLines, 'addText'> | null = null,
  ) {
    this.#format = format;
    this.#writer = writer;
    this.#files = files;
    this.#recent = recent;
  }

  /** In JSON `fields` come before the text. Text lines have none: log parsers of Multi Model Server read to their end. */
  info(text: string, fields: Readonly<Record<string, string | number>> | null = null): void {
    if (this.#writer === null && this.#files.length === 0) return;
    if (this.#shown === '') setImmediate(() => this.#flush());
    if (this.#writer !== null) this.#recent?.addText(INFO, text);
    const { ofDay, iso } = this.#now();
    if (this.#format === 'json') {
      const line = escapeControls(
        `${JSON.stringify({ level: INFO, time: iso, pid: process.pid, ...fields, msg: text })}\n`,
      );
      this.#shown += line;
      this.#kept += line;
      return;
    }
    const line = indented(withoutControls(`INFO: ${text}`));
    this.#shown += `[${ofDay}] ${line}\n`;
    this.#kept += `[${iso}] ${line}\n`;
  }

  #flush(): void {
    const [shown, kept] = [this.#shown, this.#kept];
    [this.#shown, this.#kept] = ['', ''];
    if (this.#writer !== null) showLines(this.#writer, shown);
    for (const file of this.#files) file.writeLines(kept);
  }

  /** Formats the current time, at most once per millisecond. */
  #now(): { readonly ofDay: string; readonly iso: string } {
    const nowMs = Date.now();
    if (nowMs === this.#timeMs) return this.#times;
    this.#timeMs = nowMs;
    const now = new Date(nowMs);
    const two = (value: number): string => String(value).padStart(2, '0');
    const ms = String(now.getMilliseconds()).padStart(3, '0');
    const ofDay = `${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}.${ms}`;
    this.#times = { ofDay, iso: now.toISOString() };
    return this.#times;
  }
}
