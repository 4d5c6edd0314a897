/**
 * Looks for due jobs that wait for a model, a version or a route that this server does not have, and reports each place once.
 * Its look also wakes the models: another version may be the default one now.
 */
import type { WaitingPlace } from './job-record.js';
import type { JobStore } from './job-store.js';
import type { ModelFeed } from './model-feed.js';

/** A model may be loading, or may have just been replaced. */
const LOOK_MS = 10_000;

export class StrandedJobs {
  readonly #store: Pick<JobStore, 'places'>;
  readonly #feeds: ReadonlySet<ModelFeed>;
  readonly #report: (text: string) => void;
  #reported = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(
    store: Pick<JobStore, 'places'>,
    feeds: ReadonlySet<ModelFeed>,
    report: (text: string) => void,
  ) {
    this.#store = store;
    this.#feeds = feeds;
    this.#report = report;
  }

  /** Looks in a while, and again as long as a job waits. */
  look(): void {
    if (this.#isClosed) return;
    this.#timer ??= setTimeout(() => this.#look(), LOOK_MS).unref();
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #look(): void {
    this.#timer = null;
    const places = this.#store.places();
    const feeds = [...this.#feeds];
    const stranded = new Set<string>();
    for (const place of places) {
      const takers = feeds.filter((feed) => feed.takes(place));
      for (const feed of takers) feed.wake();
      if (takers.length === 0) stranded.add(textOf(place));
    }
    for (const text of stranded) if (!this.#reported.has(text)) this.#report(text);
    this.#reported = stranded;
    if (places.length > 0) this.look();
  }
}

function textOf({ model, version, route }: WaitingPlace): string {
  const ofVersion = version === null ? '' : ` version ${version}`;
  return `jobs wait for the route ${route} of ${model}${ofVersion}, which this server does not serve now`;
}
