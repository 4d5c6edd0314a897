/** Reads one connection to `_k/live`, or to the log there, from its request to its end. */
import type { LiveEnd, LiveEvents } from '../../status/live-types.js';
import { EventStreamReader } from './event-stream.js';

/** An event and its data. */
export type AnyLiveEvent = {
  [Name in keyof LiveEvents]: { readonly name: Name; readonly data: LiveEvents[Name] };
}[keyof LiveEvents];

/** The end of a connection. `missed`: snapshots are missing. `cut`: any end that the server did not announce. */
export type Outcome =
  | { readonly kind: 'ended'; readonly reason: LiveEnd['reason'] }
  | { readonly kind: 'refused key' }
  | { readonly kind: 'missed' }
  | { readonly kind: 'cut'; readonly problem: string; readonly retryAfterMs: number | null };

export interface LiveReader {
  /** Called when the server has accepted the connection. */
  began(): void;
  /** False: the connection ends, because snapshots are missing. */
  received(event: AnyLiveEvent): boolean;
}

/** The server sends a snapshot each second, and of the log something every few seconds. One that is suspended, or cut off, sends nothing, not even an end. */
const SILENCE_MS = 15_000;

export async function readLive(
  path: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  reader: LiveReader,
): Promise<Outcome> {
  const silence = startSilence();
  const left = new AbortController();
  const signals = AbortSignal.any([signal, silence.signal, left.signal]);
  const request = { headers, signal: signals, cache: 'no-store' } as const;
  try {
    const response = await orNull(fetch(path, request));
    if (response === null) return cut(silence.signal.aborted ? SILENT : 'The server cannot be reached.');
    if (response.status === 401) return { kind: 'refused key' };
    if (!response.ok || response.body === null) return refused(response);
    reader.began();
    const events = new EventStreamReader();
    const decoder = new TextDecoder();
    const pieces = response.body.getReader();
    for (;;) {
      const piece = await orNull(pieces.read());
      if (piece?.value === undefined)
        return cut(silence.signal.aborted ? SILENT : 'The connection to the server was cut.');
      silence.heard();
      for (const { name, data } of events.push(decoder.decode(piece.value, { stream: true }))) {
        const event = { name, data: JSON.parse(data) as unknown } as AnyLiveEvent;
        if (event.name === 'end') return { kind: 'ended', reason: event.data.reason };
        if (!reader.received(event)) return { kind: 'missed' };
      }
    }
  } catch {
    return cut(NOT_UNDERSTOOD); // such as after an upgrade of the server
  } finally {
    silence.stop();
    left.abort(); // a stream that is not read any more would keep its place
  }
}

const NOT_UNDERSTOOD = 'The server sends data that this page does not understand: reload the page.';
const SILENT = 'The server has sent nothing for a while.';

/** The network's errors say nothing that a page may know. */
function orNull<T>(promise: Promise<T>): Promise<T | null> {
  return promise.catch(() => null);
}

function cut(problem: string, retryAfterMs: number | null = null): Outcome {
  return { kind: 'cut', problem, retryAfterMs };
}

function refused({ status, headers }: Response): Outcome {
  const seconds = Number(headers.get('Retry-After') ?? NaN);
  const problem =
    status === 503
      ? 'The server has no room for another viewer, or it is ending.'
      : `The server has answered with status ${status}.`;
  return cut(problem, Number.isFinite(seconds) ? seconds * 1000 : null);
}

/** Aborts its signal when nothing was heard for a while. */
function startSilence(): { readonly signal: AbortSignal; heard(): void; stop(): void } {
  const abort = new AbortController();
  const start = (): number => setTimeout(() => abort.abort(), SILENCE_MS);
  let timer = start();
  const stop = (): void => clearTimeout(timer);
  return {
    signal: abort.signal,
    heard: () => {
      stop();
      timer = start();
    },
    stop,
  };
}
