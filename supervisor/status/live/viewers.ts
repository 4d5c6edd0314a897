/** The clients that read the live data. Their number is bounded, and nothing is queued for one that does not read. */
import { ServeError } from '../../../protocol/errors.js';
import type { Viewer } from '../../http/request/served-page.js';
import type { LiveEvents } from '../live-types.js';

export const MOST_VIEWERS = 100;

/** A place may be free by then. */
const RETRY_S = 10;

export class Viewers<Place = null> {
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
export function oncePer<Key, Made>(make: (key: Key) => Made): (key: Key) => Made {
  const made = new Map<Key, Made>();
  return (key) => {
    const one = made.get(key) ?? make(key);
    made.set(key, one);
    return one;
  };
}

/** A server-sent event. JSON has no line ends, so one `data` line holds it. */
export function eventBytes<Name extends keyof LiveEvents>(name: Name, data: LiveEvents[Name]): Buffer {
  return Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}
