/**
 * Feeds the viewers of the log. While there are any, each gets some times a second what is new to it, as far as it has read
 * what it got before: nothing is kept for one that reads slowly, and it learns that it has missed lines.
 */
import { shuttingDown } from '../../../protocol/errors.js';
import type { Viewer } from '../../http/request/served-page.js';
import type { RecentLines } from '../../observe/recent-lines.js';
import { Viewers, eventBytes } from './viewers.js';

const PAUSE_MS = 250;
/** A viewer whose server says nothing for long takes it for dead. */
const MOST_SILENT_ROUNDS = 20;

/** The place of a viewer: the number of its next entry. */
interface Place {
  next: number;
  /** Rounds since it got something. */
  silent: number;
}

interface Part {
  readonly bytes: Buffer;
  readonly next: number;
}

export class LogFeed {
  readonly #lines: Pick<RecentLines, 'begin' | 'read' | 'end'>;
  readonly #viewers = new Viewers();
  readonly #places = new WeakMap<Viewer, Place>();
  #timer: NodeJS.Timeout | null = null;
  #isEnded = false;

  constructor(lines: Pick<RecentLines, 'begin' | 'read' | 'end'>) {
    this.#lines = lines;
  }

  /** @throws SERVE_OVERLOADED, SERVE_SHUTTING_DOWN */
  join(viewer: Viewer): void {
    if (this.#isEnded) throw shuttingDown();
    this.#viewers.add(viewer);
    this.#places.set(viewer, { next: this.#lines.begin(), silent: MOST_SILENT_ROUNDS });
    this.#timer ??= setInterval(() => this.tick(), PAUSE_MS).unref();
    this.tick();
  }

  /** Sends what is new. The timer calls it. */
  tick(): void {
    if (this.#viewers.present.size === 0) this.#rest();
    const parts = new Map<number, Part>(); // those who follow are at the same place
    for (const viewer of this.#viewers.present) {
      const place = this.#places.get(viewer);
      if (place !== undefined) this.#feed(viewer, place, parts);
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
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #feed(viewer: Viewer, place: Place, parts: Map<number, Part>): void {
    place.silent += 1;
    if (place.next === this.#lines.end && place.silent <= MOST_SILENT_ROUNDS) return;
    // A part is only made for a viewer that has read the last one.
    if (!viewer.isFree) return;
    const part = parts.get(place.next) ?? this.#partFrom(place.next);
    parts.set(place.next, part);
    if (viewer.send(part.bytes)) Object.assign(place, { next: part.next, silent: 0 });
  }

  #partFrom(from: number): Part {
    const { lines, next, missed } = this.#lines.read(from);
    return { bytes: eventBytes('lines', { missed, lines }), next };
  }
}
