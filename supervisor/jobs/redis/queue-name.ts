/**
 * The queues of BullMQ: one has the jobs of one route of one version of a model, or of its default version. So a server that
 * lacks a route or a version leaves its queue to others, and no job stands in the way of another queue's.
 */
import type { WaitingPlace } from '../job-record.js';

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
