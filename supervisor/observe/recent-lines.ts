/**
 * The last lines of the server's log and of its workers' output, for the page: at most 4 MB of them. Adding one copies its
 * text and no more; it is read as lines when somebody asks.
 */
import { setImmediate } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { LineSplitter } from './line-splitter.js';
import type { PrintSource, StreamName } from './prints.js';

/** Number of lines that a reader who begins gets at most; as many entries are kept, each of a line or more. */
export const LINES_KEPT = 2000;
const MAX_CHARS = 4 * 1024 * 1024;
/** A longer line of the server's own, such as one with a stack, loses its end. */
const MAX_LINE_CHARS = 64 * 1024;
/** A page that is read has about so many characters of text. */
const PAGE_CHARS = 256 * 1024;
/** The room of an entry besides its text. */
const ENTRY_CHARS = 100;

/** One line, as `docs/http.md` describes it for clients. */
export interface RecentLine {
  /** In ms since the epoch. */
  readonly at: number;
  /** That of a line of the server or of an app's log; `stdout` or `stderr` for other output. */
  readonly level: string;
  /** Empty on a server with one model, and if it is about none. */
  readonly model: string;
  readonly worker: number | null;
  /** Empty if it is about no call, or about several. */
  readonly requestId: string;
  readonly text: string;
}

interface Entry {
  readonly text: string;
  /** The request id of the call that has printed it; empty if it is no print, or of no known call. */
  readonly printedBy: string;
  readonly read: () => RecentLine[];
}

export class RecentLines {
  /** The oldest first. */
  readonly #entries: Entry[] = [];
  /** Number of the oldest entry. */
  #start = 0;
  #chars = 0;

  /** Number of the next entry; entries count up from 0. */
  get end(): number {
    return this.#start + this.#entries.length;
  }

  /** Adds a line of the server's log, as pino writes it. */
  addJson(line: string): void {
    const at = Date.now();
    this.#add(line, () => [lineOfJson(line, at)]);
  }

  /** Adds a line of text without fields. */
  addText(level: string, text: string): void {
    const at = Date.now();
    this.#add(text, () => [{ at, level, model: '', worker: null, requestId: '', text: shortened(text) }]);
  }

  /** Returns a receiver for the bytes of one worker's stream. */
  of(name: StreamName, source: PrintSource): Pick<LineSplitter, 'push' | 'end'> {
    let running = ''; // the request id of the call that prints what has no mark
    const splitter = new LineSplitter(source.mark, true, (bytes, origin) => {
      const text = bytes.toString(); // a copy: a part of the bytes would keep all of them
      const whose = {
        at: Date.now(),
        level: origin.level || name,
        model: source.label(),
        worker: source.worker,
        requestId: origin.requestId || running,
      };
      this.#add(text, () => linesOf(text).map((line) => ({ ...whose, text: line })), whose.requestId);
    });
    return {
      push: (chunk) => {
        const now = source.lastRequestId();
        const isNext = now !== running && now !== '' && source.mark === '';
        if (isNext) splitter.emitBegun(); // the unfinished line is not its own
        running = now;
        splitter.push(chunk);
      },
      end: () => splitter.end(),
    };
  }

  /**
   * All that calls with this request id have printed, as far as it is still kept, with its line ends. What was printed before
   * an answer may be read after it, in the next turn of the event loop: so the second from now begins first.
   */
  async printsOf(requestId: string): Promise<string> {
    await setImmediate();
    await setImmediate();
    const prints = this.#entries.filter(({ printedBy }) => printedBy === requestId);
    return prints.map(({ text }) => text).join('');
  }

  /** The entry at which a reader begins who wants the last lines. */
  begin(): number {
    let lines = 0;
    let from = this.end;
    while (from > this.#start && lines < LINES_KEPT) {
      from -= 1;
      lines += this.#at(from).length;
    }
    return from;
  }

  /** Reads some lines from entry `from` on, to before `next`; `missed`: earlier ones are not kept any more. */
  read(from: number): { lines: readonly RecentLine[]; next: number; missed: boolean } {
    const lines: RecentLine[] = [];
    const first = Math.max(from, this.#start);
    let [next, chars] = [first, 0];
    for (; next < this.end && chars < PAGE_CHARS; next += 1) {
      const some = this.#at(next);
      for (const line of some) lines.push(line);
      chars += some.reduce((sum, { text }) => sum + text.length, 0);
    }
    return { lines, next, missed: first > from };
  }

  #at(number: number): RecentLine[] {
    return this.#entries[number - this.#start]?.read() ?? [];
  }

  #add(text: string, read: () => RecentLine[], printedBy = ''): void {
    this.#entries.push({ text, printedBy, read });
    this.#chars += text.length + ENTRY_CHARS;
    while (this.#chars > MAX_CHARS || this.#entries.length > LINES_KEPT) {
      this.#chars -= (this.#entries.shift()?.text.length ?? 0) + ENTRY_CHARS;
      this.#start += 1;
    }
  }
}

function shortened(text: string): string {
  return text.length > MAX_LINE_CHARS ? `${text.slice(0, MAX_LINE_CHARS)}…` : text;
}

function linesOf(text: string): string[] {
  const lines = stripVTControlCharacters(text).split(/[\r\n]+/);
  return lines.filter((line) => line !== '');
}

function lineOfJson(json: string, at: number): RecentLine {
  // Fields that have their own column, or say nothing to a reader, and the others.
  const { level, time: _, pid, msg, stack, model, worker, requestId, ...rest } = parsed(json);
  const others = pid === undefined || pid === process.pid ? rest : { pid, ...rest };
  const said = stack ?? msg;
  const text = typeof said === 'string' ? said : '';
  const lineEnd = text.indexOf('\n');
  const facts = Object.keys(others).length === 0 ? '' : ` ${JSON.stringify(others)}`;
  // The fields of a stack stand on its first line, as in the log.
  const whole = lineEnd < 0 ? text + facts : text.slice(0, lineEnd) + facts + text.slice(lineEnd);
  return {
    at,
    level: typeof level === 'string' ? level : 'info',
    model: typeof model === 'string' ? model : '',
    worker: typeof worker === 'number' ? worker : null,
    requestId: typeof requestId === 'string' ? requestId : '',
    text: shortened(stripVTControlCharacters(whole)),
  };
}

function parsed(json: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(json) as Record<string, unknown>;
  } catch {
    return { level: 'info', msg: json };
  }
}
