/** The page's state that all of its parts share, and the hook by which they get it. */
import { useLayoutEffect, useReducer } from 'preact/hooks';
import type { LiveViewer } from '../../status/live-types.js';
import { keepConnected, type Connection } from '../live/connection.js';
import { History } from '../live/history.js';
import { storeKey, storedKey } from '../live/key.js';
import type { AnyLiveEvent } from '../live/read-live.js';

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

let connection: Connection = { state: 'connecting' };
let history: History | null = null;
/** Has no models until its first snapshot, and takes the place of `history` then. */
let nextHistory: History | null = null;
let viewer: LiveViewer | null = null;
let asksKey = false;
/** When the history came, of performance.now(). */
let begunAt = 0;
/** A page that reads too slowly would get even slower by getting everything again and again. */
const RELOAD_MS = 60_000;
const listeners = new Set<() => void>();

function changed(): void {
  for (const listener of listeners) listener();
}

function received(event: AnyLiveEvent): boolean {
  switch (event.name) {
    case 'viewer':
      viewer = event.data;
      break;
    case 'samples':
      nextHistory = new History(event.data);
      begunAt = performance.now();
      return true;
    case 'snapshot':
      history = nextHistory;
      history?.add(event.data);
      if (history?.hasGap === true && performance.now() - begunAt > RELOAD_MS) return false;
      break;
    case 'lines':
    case 'end':
      break;
  }
  changed();
  return true;
}

function forget(): void {
  history = null;
  nextHistory = null;
  viewer = null;
}

let reconnect = (): void => {};

/** Called once. */
export function startStore(): void {
  const setConnection = (next: Connection): void => {
    connection = next;
    if (next.state !== 'connecting') asksKey = next.state === 'needs key';
    if (next.state === 'needs key') forget(); // who has no key any more must not read on
    changed();
  };
  reconnect = keepConnected('_k/live', { changed: setConnection, received }).restart;
}

function useKey(key: string): void {
  storeKey(key);
  reconnect();
}

/** The component is rendered again whenever the store changes: once a second while the server is well. */
export function useStore(): Store {
  const [, render] = useReducer<number, undefined>((renders) => renders + 1, 0);
  // Not useEffect, which waits for the browser to paint: news may come before.
  useLayoutEffect(() => {
    const listener = (): void => render(undefined);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return { connection, history, viewer, key: storedKey(), asksKey, useKey };
}
