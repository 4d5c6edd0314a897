/** The live data of the page at `/`, as request handlers see it. `status/live/live-feed.ts` implements it. */
import type { HiddenBecause } from '../access/app-words.js';
import type { FindCallPaths } from '../request/call-paths.js';

/** One client that reads the live data as a stream of bytes. */
export interface Viewer {
  /** Null if it may read the app's words. */
  readonly hidden: HiddenBecause | null;
  /** Whether it has to leave when there are too many: it has no key and is not on this machine. */
  readonly leavesFirst: boolean;
  /** Sends bytes, unless earlier ones still wait for the client; then returns false, and nothing is queued. */
  send(bytes: Buffer): boolean;
  /** Sends the last bytes and ends the stream; cuts the connection if earlier ones still wait. */
  end(bytes: Buffer): void;
  /** Ends the connection at once. */
  cut(): void;
  /** Calls back when the client has gone. */
  onceGone(callback: () => void): void;
}

export interface LiveData {
  /** Names the paths of routes in the descriptions of apps; called once, before any viewer comes. */
  findPathsBy(find: FindCallPaths): void;
  /** Sends the data to a viewer until it leaves or the server ends. @throws SERVE_OVERLOADED, SERVE_SHUTTING_DOWN */
  join(viewer: Viewer): void;
}
