/**
 * Feeds the viewers of the page. Once a second one snapshot is made for each kind of viewer, with and without the app's
 * words, and sent to all of that kind. A new viewer first gets everything up to the last second, which is made at most once
 * a second for each kind.
 */
import { shuttingDown } from '../../../protocol/errors.js';
import type { PageManagement, Viewer } from '../../http/request/served-page.js';
import type { LiveEvents } from '../live-types.js';
import type { LastCalls, LastDeaths } from './last-entries.js';
import { LiveView, type LiveSources } from './live-view.js';
import { LogFeed } from './log-feed.js';
import { Viewers, eventBytes, oncePer } from './viewers.js';

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
