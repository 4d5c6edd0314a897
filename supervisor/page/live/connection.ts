/**
 * Keeps the page connected to `_k/live`, or to the log there: reads it by fetch, which can send a key, connects again when it
 * was cut, and lets go while the page is hidden.
 */
import type { LiveEvents } from '../../status/live-types.js';
import { EventStreamReader } from './event-stream.js';
import { keyHeaders } from './key.js';

export type Connection =
  | { readonly state: 'connecting' | 'live' | 'hidden' | 'needs key' }
  /** It was cut or refused, and is tried again; `since`: of performance.now(). */
  | {
      readonly state: 'waiting';
      readonly problem: string;
      readonly since: number;
      /** As the server asks; null if it does not. */
      readonly retryAfterMs: number | null;
    }
  /** The server has said that it ends; another one may take its place. */
  | { readonly state: 'ended'; readonly reason: LiveEvents['end']['reason'] };

/** An event and its data. */
export type AnyLiveEvent = {
  [Name in keyof LiveEvents]: { readonly name: Name; readonly data: LiveEvents[Name] };
}[keyof LiveEvents];

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;

/** Connects to `path` while the page is visible, with the key if there is one. `restart` connects anew, such as with another key. */
export function keepConnected(
  path: string,
  changed: (connection: Connection) => void,
  received: (event: AnyLiveEvent) => void,
): { restart(): void; stop(): void } {
  let abort = new AbortController();
  const restart = (): void => {
    abort.abort();
    abort = new AbortController();
    if (document.hidden) changed({ state: 'hidden' });
    else void connectUntil(path, abort.signal, changed, received);
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

async function connectUntil(
  path: string,
  signal: AbortSignal,
  changed: (connection: Connection) => void,
  received: (event: AnyLiveEvent) => void,
): Promise<void> {
  let shown: Connection = { state: 'connecting' };
  const show = (connection: Connection): void => {
    if (signal.aborted) return;
    shown = connection;
    changed(connection);
  };
  show(shown);
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    const began = (): void => {
      pauseMs = FIRST_PAUSE_MS;
      show({ state: 'live' });
    };
    const end = await readLive(path, signal, began, (event) => {
      if (!signal.aborted) received(event);
    });
    show(stateAfter(end, shown));
    if (end.state === 'needs key') return;
    await pause((end.state === 'waiting' ? end.retryAfterMs : null) ?? pauseMs, signal);
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
  }
}

function stateAfter(end: Connection, shown: Connection): Connection {
  if (end.state !== 'waiting') return end;
  if (shown.state === 'ended') return shown; // it cannot be reached, as was to be expected
  return shown.state === 'waiting' ? { ...end, since: shown.since } : end;
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

/** The server sends a snapshot each second, and of the log something every few seconds. One that is suspended, or cut off, sends nothing, not even an end. */
const SILENCE_MS = 15_000;

/** Reads one connection, from its request to its end. `began` is called when the server has accepted it. */
export async function readLive(
  path: string,
  signal: AbortSignal,
  began: () => void,
  received: (event: AnyLiveEvent) => void,
): Promise<Connection> {
  const own = new AbortController();
  const problem = (otherwise: string): string => (own.signal.aborted ? SILENT : otherwise);
  let silence = setTimeout(() => own.abort(), SILENCE_MS);
  const signals = AbortSignal.any([signal, own.signal]);
  try {
    const response = await orNull(fetch(path, { headers: keyHeaders(), signal: signals, cache: 'no-store' }));
    if (response === null) return cut(problem('The server cannot be reached.'));
    if (response.status === 401) return { state: 'needs key' };
    if (!response.ok || response.body === null) return refused(response);
    began();
    const events = new EventStreamReader();
    const decoder = new TextDecoder();
    const pieces = response.body.getReader();
    for (;;) {
      const piece = await orNull(pieces.read());
      if (piece?.value === undefined) return cut(problem('The connection to the server was cut.'));
      clearTimeout(silence);
      silence = setTimeout(() => own.abort(), SILENCE_MS);
      for (const { name, data } of events.push(decoder.decode(piece.value, { stream: true }))) {
        const event = { name, data: JSON.parse(data) as unknown } as AnyLiveEvent;
        if (event.name === 'end') return { state: 'ended', reason: event.data.reason };
        received(event);
      }
    }
  } catch {
    return cut(NOT_UNDERSTOOD); // such as after an upgrade of the server
  } finally {
    clearTimeout(silence);
    own.abort(); // a stream that is not read any more would keep its place
  }
}

const NOT_UNDERSTOOD = 'The server sends data that this page does not understand: reload the page.';
const SILENT = 'The server has sent nothing for a while.';

/** The network's errors say nothing that a page may know. */
function orNull<T>(promise: Promise<T>): Promise<T | null> {
  return promise.catch(() => null);
}

function cut(problem: string, retryAfterMs: number | null = null): Connection {
  return { state: 'waiting', problem, since: performance.now(), retryAfterMs };
}

function refused({ status, headers }: Response): Connection {
  const seconds = Number(headers.get('Retry-After') ?? NaN);
  const problem =
    status === 503
      ? 'The server has no room for another viewer, or it is ending.'
      : `The server has answered with status ${status}.`;
  return cut(problem, Number.isFinite(seconds) ? seconds * 1000 : null);
}
