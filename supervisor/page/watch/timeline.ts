/** The list of ended calls, in which the deaths of workers stand at their time; it can be filtered. */
import type { LiveCall, LiveDeath } from '../../status/live-types.js';
import type { History } from '../live/history.js';
import { hasWords, wordsOf } from '../live/log-lines.js';

export type TimelineEntry =
  | { readonly kind: 'call'; readonly at: number; readonly call: LiveCall }
  | { readonly kind: 'death'; readonly at: number; readonly death: LiveDeath };

export interface Filter {
  /** Every word must be in the entry; `!word`: must not be. */
  readonly text: string;
  /** Failed calls reach further back than all calls. */
  readonly failedOnly: boolean;
}

/** Newest first. A death comes before what it did to a call at the same time. */
export function timelineOf(
  { calls, failedCalls, deaths }: Pick<History, 'calls' | 'failedCalls' | 'deaths'>,
  filter: Filter,
): TimelineEntry[] {
  const entries: TimelineEntry[] = [
    ...deaths.map((death) => ({ kind: 'death', at: death.at, death }) as const),
    ...(filter.failedOnly ? failedCalls : calls).map(
      (call) => ({ kind: 'call', at: call.at, call }) as const,
    ),
  ];
  const words = wordsOf(filter.text);
  return entries
    .filter((entry) => matches(entry, words))
    .sort((a, b) => a.at - b.at)
    .reverse();
}

function matches(entry: TimelineEntry, words: readonly string[]): boolean {
  return words.length === 0 || hasWords(textOf(entry).toLowerCase(), words);
}

function textOf(entry: TimelineEntry): string {
  if (entry.kind === 'death') {
    const { model, version, worker, pid, how, cause, requestId } = entry.death;
    return [model, version, `worker ${worker}`, pid, how, cause, requestId].join(' ');
  }
  const { model, version, route, method, path, status, code, worker, requestId } = entry.call;
  return [
    model,
    version,
    route,
    method,
    path,
    status ?? 'left',
    code,
    `worker ${worker ?? '–'}`,
    requestId,
  ].join(' ');
}
