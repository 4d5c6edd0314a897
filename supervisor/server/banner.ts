/** The lines that tell a person, on stderr, how the server started and how it ended. */
import { relative } from 'node:path';
import type { ModelRuntime } from '../models/model-runtime.js';
import type { Placement } from '../machine/placement.js';
import type { ServerEnd } from './server-handle.js';
import { formatMs } from '../options/units.js';
import { VERSION } from '../version.js';

/** `banana-serve 0.1.0  ./app.ts  2 workers on 2 GPUs (0, 1)  http://localhost:8000` */
export function startText(app: string, placements: readonly Placement[], url: string): string {
  const shown = relative(process.cwd(), app);
  return `banana-serve ${VERSION} serves ${shown.startsWith('..') ? app : shown} with ${slotsText(placements)} on ${url}`;
}

/** A line to paste into another terminal. Who pastes it has the key; we have not. */
export function tryText(
  model: ModelRuntime,
  url: string,
  socketPath: string | null,
  needsKey: boolean,
): string {
  const input = model.example === '' ? '{}' : model.example;
  const quoted = input.replaceAll("'", String.raw`'\''`);
  const [path = '/', route] = [...(model.routes ?? [])][0] ?? [];
  const target =
    socketPath === null
      ? `${url}${path === '/' ? '' : path}`
      : `--unix-socket ${socketPath} http://localhost${path}`;
  const type = route?.input === 'json' ? "-H 'Content-Type: application/json' " : '';
  const key = needsKey ? '-H "Authorization: Bearer $BANANA_API_KEY" ' : '';
  return `Try it: curl ${type}${key}-d '${quoted}' ${target}`;
}

/** The work that a drain waits for. */
export interface DrainWaits {
  readonly running: number;
  /** Taken and not begun, the bodies that are still arriving included. */
  readonly waiting: number;
  readonly workers: number;
  readonly webhooks: number;
}

/** `hint`: what the person who reads it may do; may be empty. */
export function drainText(limitMs: number, waits: DrainWaits, hint: string): string {
  const parts = [
    counted(waits.running, 'call', ' running'),
    counted(waits.waiting, 'call', ' waiting'),
    counted(waits.workers, 'worker', ' to stop'),
    counted(waits.webhooks, 'webhook', ' to send'),
  ].flat();
  const what = parts.length === 0 ? '' : `; waits for ${parts.join(', ')}`;
  return `draining (at most ${formatMs(limitMs)})${what}${hint === '' ? '' : `; ${hint}`}`;
}

function counted(count: number, noun: string, what: string): string[] {
  return count === 0 ? [] : [`${plural(count, noun)}${what}`];
}

export function endText(end: ServerEnd): string {
  switch (end.reason) {
    case 'drained':
      return 'stopped; every call was answered';
    case 'cut':
      return 'stopped; some calls were cut off';
    case 'failed':
      return 'stopped; no worker could start';
    case 'killed':
      return 'stopped at once';
  }
}

function slotsText(placements: readonly Placement[]): string {
  const gpus = [...new Set(placements.flatMap(({ gpu }) => (gpu === null ? [] : [gpu])))];
  const workers = plural(placements.length, 'worker');
  if (gpus.length === 0)
    return `${workers} on the CPU (${plural(placements[0]?.threads ?? 1, 'thread')} each)`;
  return `${workers} on ${plural(gpus.length, 'GPU')} (${gpus.join(', ')})`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
