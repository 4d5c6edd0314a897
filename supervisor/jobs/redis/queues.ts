/**
 * The queues of BullMQ: one has the jobs of one route of one version of a model, or of its default version. So a server that
 * lacks a route or a version leaves its queue to others, and no job stands in the way of another queue's.
 */
import type { WaitingPlace } from '../job-record.js';
import { WaitingQueues } from '../waiting-jobs.js';

/** A queue has jobs of all priorities: which of them wait first is not known here. */
const PRIORITY = 0;

/** All keys in Redis begin so. Those of BullMQ go on with the name of a queue, which has a space; ours have none there. */
export const PREFIX = 'banana';

/** `fill-mask /`, or `fill-mask@2 /` for a named version: readable in a dashboard, without BullMQ's own colon. */
export function nameOf({ model, version, route }: Omit<WaitingPlace, 'priority'>): string {
  const ofVersion = version === null ? '' : `@${escaped(version)}`;
  return `${escaped(model)}${ofVersion} ${escaped(route)}`;
}

export function placeIn(queue: string): WaitingPlace {
  const at = queue.indexOf(' ');
  const [model = '', version] = queue.slice(0, at).split('@');
  return {
    model: unescaped(model),
    version: version === undefined ? null : unescaped(version),
    route: unescaped(queue.slice(at + 1)),
    priority: PRIORITY,
  };
}

function escaped(text: string): string {
  return text.replace(/[:@ %~]/g, (sign) => `~${sign.charCodeAt(0).toString(16)}`);
}

function unescaped(text: string): string {
  return text.replace(/~([0-9a-f]{2})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
}

interface CountedQueue {
  readonly place: WaitingPlace;
  readonly name: string;
  length: number;
}

/**
 * The number of due jobs that wait in each queue, as far as this server knows: from its own steps, from the events of others,
 * and from a look each second. May be wrong for a moment; only a fetch finds out.
 */
export class WaitingCounts extends WaitingQueues<CountedQueue> {
  constructor() {
    super((place) => ({ place, name: nameOf(place), length: 0 }));
  }

  /** Takes the counts of a script. Called in the order of the answers, in which own jobs are counted too. */
  note(counts: readonly (readonly [name: string, due: number, ...more: unknown[]])[]): void {
    for (const [name, due] of counts) this.change(placeIn(name), (queue) => (queue.length = due));
  }

  /** This server has let a due job wait, or has taken one. */
  add(name: string, by: 1 | -1): void {
    this.change(placeIn(name), (queue) => (queue.length = Math.max(0, queue.length + by)));
  }

  /** A job waits, by an event. */
  hear(name: string): void {
    this.change(placeIn(name), (queue) => (queue.length = Math.max(1, queue.length)));
  }
}
