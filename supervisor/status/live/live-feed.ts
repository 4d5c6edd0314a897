/**
 * Feeds the viewers of the page. Once a second one snapshot is made for each kind of viewer, with and without the app's
 * words, and sent to all of that kind. A new viewer first gets everything up to the last second, which is made at most once
 * a second for each kind.
 */
import { shuttingDown, ServeError } from '../../../protocol/errors.js';
import type { PageManagement, Viewer } from '../../http/request/served-page.js';
import type { LiveEvents } from '../live-types.js';
import type { LastCalls, LastDeaths } from './last-entries.js';
import { LiveView, type LiveSources } from './live-view.js';
import type { RecentLines } from '../../observe/recent-lines.js';

const SECOND_MS = 1000;

export class LiveFeed {
  /** Gets the outcome of every call. */
  readonly calls: LastCalls;
  /** Gets the death of every worker. */
  readonly deaths: LastDeaths;
  readonly log: LogFeed;
  readonly #view: LiveView;
  readonly #needsKey: boolean;
  readonly #viewers = new Viewers();
  /** The history as of this second. */
  #historyFor = this.#newHistory();
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;

  /** `needsKey`: whether calls need a key. */
  constructor(sources: LiveSources, needsKey: boolean) {
    this.#view = new LiveView(sources);
    ({ calls: this.calls, deaths: this.deaths } = this.#view);
    this.log = new LogFeed(sources.lines);
    this.#needsKey = needsKey;
  }

  start(): void {
    if (!this.#isEnded) this.#timer = setInterval(() => this.tick(), SECOND_MS).unref();
  }

  join(viewer: Viewer, management: PageManagement = null): void {
    if (this.#isEnded) throw shuttingDown();
    this.#viewers.add(viewer, null);
    this.#view.prepare();
    const { hidden } = viewer;
    const facts = eventBytes('viewer', { needsKey: this.#needsKey, hidden, management });
    viewer.send(Buffer.concat([facts, this.#historyFor(hidden === null)]));
  }

  /** Ends a second. The timer calls it. A viewer that has not read the last snapshot misses this one. */
  tick(): void {
    const snapshotFor = this.#endSecond();
    for (const viewer of this.#viewers.present.keys()) viewer.send(snapshotFor(viewer.hidden === null));
  }

  /** The server ends: tells every viewer, with what happened since the last second, and lets none in any more. */
  end(reason: LiveEvents['end']['reason']): void {
    this.stop();
    const snapshotFor = this.#endSecond();
    const end = eventBytes('end', { reason });
    // In one piece: a viewer that has not read the bytes before is cut.
    this.#viewers.end((showsWords) => Buffer.concat([snapshotFor(showsWords), end]));
    this.log.end(end);
  }

  stop(): void {
    this.#isEnded = true;
    clearInterval(this.#timer);
    this.log.stop();
  }

  /** Returns its snapshot for each kind of viewer. */
  #endSecond(): (showsWords: boolean) => Buffer {
    const count = this.#viewers.present.size;
    this.#view.tick(count > 0);
    this.#historyFor = this.#newHistory();
    return oncePer((showsWords: boolean) => eventBytes('snapshot', this.#view.snapshot(showsWords, count)));
  }

  #newHistory(): (showsWords: boolean) => Buffer {
    return oncePer((showsWords: boolean) => eventBytes('samples', this.#view.history(showsWords)));
  }
}

export const MOST_VIEWERS = 100;

/** A place may be free by then. */
const RETRY_S = 10;

/** The clients that read the live data. Their number is bounded, and nothing is queued for one that does not read. */
class Viewers<Place = null> {
  /** The viewers that have not left, in the order in which they came, each with what its feed notes of it. */
  readonly present = new Map<Viewer, Place>();

  /** Adds a viewer. When there are too many, the oldest of those that leave first is cut. @throws SERVE_OVERLOADED if none does */
  add(viewer: Viewer, place: Place): void {
    if (this.present.size >= MOST_VIEWERS) this.#makePlace();
    this.present.set(viewer, place);
    viewer.onceGone(() => this.present.delete(viewer));
  }

  /** Ends every stream with the bytes for its kind of viewer. */
  end(bytesFor: (showsWords: boolean) => Buffer): void {
    for (const viewer of this.present.keys()) viewer.end(bytesFor(viewer.hidden === null));
    this.present.clear();
  }

  #makePlace(): void {
    const oldest = [...this.present.keys()].find(({ leavesFirst }) => leavesFirst);
    if (oldest === undefined) {
      const message = `${MOST_VIEWERS} viewers read the live data already; try again later.`;
      throw new ServeError('SERVE_OVERLOADED', message, { retryAfterS: RETRY_S });
    }
    this.present.delete(oldest);
    oldest.cut();
  }
}

/** Makes something for each key when it is first asked for. */
function oncePer<Key, Made>(make: (key: Key) => Made): (key: Key) => Made {
  const made = new Map<Key, Made>();
  return (key) => {
    const one = made.get(key) ?? make(key);
    made.set(key, one);
    return one;
  };
}

/** A server-sent event. JSON has no line ends, so one `data` line holds it. */
function eventBytes<Name extends keyof LiveEvents>(name: Name, data: LiveEvents[Name]): Buffer {
  return Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

const PAUSE_MS = 250;
/** A viewer whose server says nothing for long takes it for dead. */
const MOST_SILENT_ROUNDS = 20;

/** The place of a viewer: the number of its next entry. */
interface Place {
  next: number;
  /** Rounds since it got something. */
  silent: number;
}

/**
 * Feeds the viewers of the log. While there are any, each gets some times a second what is new to it, as far as it has read
 * what it got before: nothing is kept for one that reads slowly, and it learns that it has missed lines.
 */
export class LogFeed {
  readonly lines: RecentLines;
  readonly #viewers = new Viewers<Place>();
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;

  constructor(lines: RecentLines) {
    this.lines = lines;
  }

  /** @throws SERVE_OVERLOADED, SERVE_SHUTTING_DOWN */
  join(viewer: Viewer): void {
    if (this.#isEnded) throw shuttingDown();
    this.#viewers.add(viewer, { next: this.lines.begin(), silent: MOST_SILENT_ROUNDS });
    this.#timer ??= setInterval(() => this.tick(), PAUSE_MS).unref();
    this.tick();
  }

  /** Sends what is new. The timer calls it. */
  tick(): void {
    if (this.#viewers.present.size === 0) this.#rest();
    // Those who follow are at the same place.
    const partFrom = oncePer((from: number) => {
      const { lines, next, missed } = this.lines.read(from);
      return { bytes: eventBytes('lines', { missed, lines }), next };
    });
    for (const [viewer, place] of this.#viewers.present) {
      place.silent += 1;
      if (place.next === this.lines.end && place.silent <= MOST_SILENT_ROUNDS) continue;
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
