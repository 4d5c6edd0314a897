/**
 * Keeps the page connected to `_k/live`: reads it by fetch, which can send a key, connects again when it was cut, and lets
 * go while the page is hidden.
 */
import type { LiveEnd } from '../../status/live-types.js';
import { keyHeaders } from './key.js';
import { readLive, type AnyLiveEvent, type Outcome } from './read-live.js';

export type Connection =
  | { readonly state: 'connecting' }
  | { readonly state: 'live' }
  | { readonly state: 'hidden' }
  | { readonly state: 'needs key' }
  /** It was cut or refused, and is tried again; `since`: of performance.now(). */
  | { readonly state: 'waiting'; readonly problem: string; readonly since: number }
  /** The server has said that it ends; another one may take its place. */
  | { readonly state: 'ended'; readonly reason: LiveEnd['reason'] };

export interface ConnectionListener {
  changed(connection: Connection): void;
  /** False: the page wants everything anew, because snapshots are missing. */
  received(event: AnyLiveEvent): boolean;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;

export interface KeptConnection {
  /** Connects anew, such as with another key. */
  restart(): void;
  stop(): void;
}

/** Connects to `path` while the page is visible, with the key if there is one. */
export function keepConnected(path: string, listener: ConnectionListener): KeptConnection {
  let abort = new AbortController();
  const restart = (): void => {
    abort.abort();
    abort = new AbortController();
    if (document.hidden) listener.changed({ state: 'hidden' });
    else void connectUntil(path, abort.signal, listener);
  };
  document.addEventListener('visibilitychange', restart);
  restart();
  return {
    restart,
    stop: () => {
      document.removeEventListener('visibilitychange', restart);
      abort.abort();
    },
  };
}

async function connectUntil(path: string, signal: AbortSignal, listener: ConnectionListener): Promise<void> {
  let shown: Connection = { state: 'connecting' };
  const show = (connection: Connection): void => {
    if (signal.aborted) return;
    shown = connection;
    listener.changed(connection);
  };
  show(shown);
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    const outcome = await readLive(path, keyHeaders(), signal, {
      began: () => {
        pauseMs = FIRST_PAUSE_MS;
        show({ state: 'live' });
      },
      received: (event) => signal.aborted || listener.received(event),
    });
    if (signal.aborted) return;
    show(stateAfter(outcome, shown));
    if (outcome.kind === 'refused key') return;
    await pause((outcome.kind === 'cut' ? outcome.retryAfterMs : null) ?? pauseMs, signal);
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
  }
}

function stateAfter(outcome: Outcome, shown: Connection): Connection {
  switch (outcome.kind) {
    case 'ended':
      return { state: 'ended', reason: outcome.reason };
    case 'refused key':
      return { state: 'needs key' };
    case 'missed':
      return { state: 'connecting' };
    case 'cut': {
      if (shown.state === 'ended') return shown; // it cannot be reached, as was to be expected
      const since = shown.state === 'waiting' ? shown.since : performance.now();
      return { state: 'waiting', problem: outcome.problem, since };
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
