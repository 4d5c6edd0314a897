/**
 * Feeds the viewers of the log. While there are any, each gets some times a second what is new to it, as far as it has read
 * what it got before: nothing is kept for one that reads slowly, and it learns that it has missed lines.
 */
import { shuttingDown } from '../../../protocol/errors.js';
import type { Viewer } from '../../http/request/served-page.js';
import type { RecentLines } from '../../observe/recent-lines.js';
import { Viewers, eventBytes, oncePer } from './viewers.js';

const PAUSE_MS = 250;
/** A viewer whose server says nothing for long takes it for dead. */
const MOST_SILENT_ROUNDS = 20;

/** The place of a viewer: the number of its next entry. */
interface Place {
  next: number;
  /** Rounds since it got something. */
  silent: number;
}

export class LogFeed {
  readonly #lines: RecentLines;
  readonly #viewers = new Viewers<Place>();
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;

  constructor(lines: RecentLines) {
    this.#lines = lines;
  }

  /** @throws SERVE_OVERLOADED, SERVE_SHUTTING_DOWN */
  join(viewer: Viewer): void {
    if (this.#isEnded) throw shuttingDown();
    this.#viewers.add(viewer, { next: this.#lines.begin(), silent: MOST_SILENT_ROUNDS });
    this.#timer ??= setInterval(() => this.tick(), PAUSE_MS).unref();
    this.tick();
  }

  /** Sends what is new. The timer calls it. */
  tick(): void {
    if (this.#viewers.present.size === 0) this.#rest();
    // Those who follow are at the same place.
    const partFrom = oncePer((from: number) => {
      const { lines, next, missed } = this.#lines.read(from);
      return { bytes: eventBytes('lines', { missed, lines }), next };
    });
    for (const [viewer, place] of this.#viewers.present) {
      place.silent += 1;
      if (place.next === this.#lines.end && place.silent <= MOST_SILENT_ROUNDS) continue;
      // A part is only made for a viewer that has read the last one.
      if (!viewer.isFree) continue;
      const { bytes, next } = partFrom(place.next);
      if (viewer.send(bytes)) Object.assign(place, { next, silent: 0 });
    }
  }

  /** The server ends: viewers get the last lines, and then the end. */
  end(bytes: Buffer): void {
    this.tick();
    this.stop();
    this.#viewers.end(() => bytes);
  }

  stop(): void {
    this.#isEnded = true;
    this.#rest();
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
