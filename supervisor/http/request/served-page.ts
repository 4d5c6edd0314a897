/** The page at `/`, its files and its live data, as request handlers see it. `status/` reads and makes them. */
import type { RecentLines } from '../../observe/recent-lines.js';
import type { HiddenBecause } from '../access/app-words.js';

export interface ServedPage {
  /** Null if the page was not built. `assets`: by name; the names contain a digest of the content. */
  readonly files: { readonly index: PageFile; readonly assets: ReadonlyMap<string, PageFile> } | null;
  readonly live: {
    /** Sends the data to a viewer until it leaves or the server ends. @throws SERVE_OVERLOADED, SERVE_SHUTTING_DOWN */
    join(viewer: Viewer, management: PageManagement): void;
    /** Sends the last lines of the log and those to come. @throws SERVE_OVERLOADED, SERVE_SHUTTING_DOWN */
    readonly log: { join(viewer: Viewer): void; readonly lines: Pick<RecentLines, 'printsOf'> };
  };
}

export interface PageFile {
  readonly type: string;
  /** Its bytes as they are, and in each coding in which the build has compressed them. */
  readonly identity: Buffer;
  readonly coded: Readonly<Partial<Record<'br' | 'gzip', Buffer>>>;
}

/** One client that reads the live data as a stream of bytes. */
export interface Viewer {
  /** Null if it may read the app's words. */
  readonly hidden: HiddenBecause | null;
  /** Whether it has to leave when there are too many: it has no key and is not on this machine. */
  readonly leavesFirst: boolean;
  /** Whether it has read everything that was sent. */
  readonly isFree: boolean;
  /** Sends bytes, unless earlier ones still wait for the client; then returns false, and nothing is queued. */
  send(bytes: Buffer): boolean;
  /** Sends the last bytes and ends the stream; cuts the connection if earlier ones still wait. */
  end(bytes: Buffer): void;
  /** Ends the connection at once. */
  cut(): void;
  /** Calls back when the client has gone. */
  onceGone(callback: () => void): void;
}

/** Names the actions of a viewer besides reading: `null` if models are not managed by the page's own address, or without a key. */
export type PageManagement = 'allowed' | 'needs key' | null;
