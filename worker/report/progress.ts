/**
 * Reports how far a job is. The newest report counts: the first leaves at once, the next ones at most four a second, the last
 * one before the call's ending. An app that blocks the thread sends the newest one with its next report, or when it yields.
 */
import type { Channel } from '../../protocol/wire/channel.js';
import { MAX_PROGRESS_CHARS } from '../../protocol/wire/limits.js';

const INTERVAL_MS = 250;

interface Report {
  readonly fraction: number;
  readonly text: string;
}

/** @throws RangeError, TypeError if the values are not those of a report */
export function reportOf(fraction: unknown, text: unknown = ''): Report {
  if (typeof fraction !== 'number') throw new TypeError(`progress() takes a number, not ${typeof fraction}`);
  if (!(fraction >= 0 && fraction <= 1))
    throw new RangeError(`progress() takes a fraction from 0 to 1, not ${fraction}`);
  if (typeof text !== 'string')
    throw new TypeError(`progress() takes a text beside the fraction, not ${typeof text}`);
  return { fraction, text: cut(text) };
}

export class Progress {
  readonly #channel: Channel;
  readonly #id: number;
  #sentAtMs = -Infinity;
  #newest: Report | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(channel: Channel, id: number) {
    this.#channel = channel;
    this.#id = id;
  }

  report(newest: Report): void {
    this.#newest = newest;
    const waitMs = this.#sentAtMs + INTERVAL_MS - performance.now();
    if (waitMs <= 0) this.#sendNow();
    else this.#timer ??= setTimeout(() => this.#sendNow(), waitMs);
  }

  /** Sends what waits: the call's ending follows, and takes it along. */
  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const newest = this.#newest;
    this.#newest = null;
    if (newest !== null) this.#channel.send({ type: 'progress', id: this.#id, ...newest });
  }

  #sendNow(): void {
    this.end();
    this.#sentAtMs = performance.now();
    this.#channel.flush();
  }
}

/** Cuts at the limit, but not inside a character. */
function cut(text: string): string {
  if (text.length <= MAX_PROGRESS_CHARS) return text;
  return text.slice(0, MAX_PROGRESS_CHARS).replace(/[\uD800-\uDBFF]$/, '');
}
