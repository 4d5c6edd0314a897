/** The page's state that all of its parts share. */
import type { LiveViewer } from '../../status/live-types.js';
import { keepConnected, type AnyLiveEvent, type Connection } from '../live/connection.js';
import { History } from '../live/history.js';
import { storeKey, storedKey } from '../live/key.js';

export interface Store {
  readonly connection: Connection;
  /** Null until the first connection, and without a valid key; kept when a connection is lost, so that the page can still be read. */
  readonly history: History | null;
  readonly viewer: LiveViewer | null;
  readonly key: string;
  /** Whether the server wants another key, as far as is known: also while one is tried. */
  readonly asksKey: boolean;
  /** Takes another key and connects with it; empty: none. */
  useKey(key: string): void;
}

/** A page that reads too slowly would get even slower by getting everything again and again. */
const RELOAD_MS = 60_000;

/** Connects to the server, and draws whenever something has changed: once a second while the server is well. */
export function startStore(draw: (store: Store) => void): void {
  let store: Store = {
    connection: { state: 'connecting' },
    history: null,
    viewer: null,
    key: storedKey('calls'),
    asksKey: false,
    useKey: (key) => {
      storeKey('calls', key);
      change({ key: storedKey('calls') });
      live.restart();
    },
  };
  const change = (part: Partial<Store>): void => {
    store = { ...store, ...part };
    draw(store);
  };
  const connected = (connection: Connection): void => {
    if (connection.state === 'connecting') return change({ connection });
    const asksKey = connection.state === 'needs key';
    // Who has no key any more must not read on.
    change({ connection, asksKey, ...(asksKey && { history: null, viewer: null }) });
  };
  /** Has no models until its first snapshot, and is shown then. */
  let next: History | null = null;
  /** When it came, of performance.now(). */
  let begunAt = 0;
  const received = (event: AnyLiveEvent): void => {
    if (event.name === 'viewer') change({ viewer: event.data });
    if (event.name === 'samples') [next, begunAt] = [new History(event.data), performance.now()];
    if (event.name !== 'snapshot' || next === null) return;
    next.add(event.data);
    change({ history: next });
    if (next.hasGap && performance.now() - begunAt > RELOAD_MS) live.restart();
  };
  const live = keepConnected('_k/live', connected, received);
}
