/**
 * Lines: the queues of BullMQ. One line has the jobs of one route of one version of a model, or of its default version, so a
 * front that lacks a route or a version leaves its line to others, and no job stands in the way of another line's. Priorities
 * are BullMQ's: in one line.
 */
import type { JobTarget, WaitingPlace } from '../job-record.js';
import { QUEUE_PREFIX } from './scripts.js';

export type Line = Pick<WaitingPlace, 'model' | 'version' | 'route'>;

/** The name of BullMQ's queue: it may have no colon. */
export function nameOf({ model, version, route }: Line): string {
  return [model, version === null ? '' : `=${version}`, route].map(encodeURIComponent).join('|');
}

/** The names of all keys of a queue begin so. */
export function baseOf(name: string): string {
  return `${QUEUE_PREFIX}:${name}:`;
}

/** The key of BullMQ's lock: a test holds it to the pinned version. */
export function lockOf(name: string, id: string): string {
  return `${baseOf(name)}${id}:lock`;
}

export function takes({ model, version, isDefault, routes }: JobTarget, place: WaitingPlace): boolean {
  if (place.model !== model || !routes.has(place.route)) return false;
  return place.version === null ? isDefault : place.version === version;
}

export function placeText({ model, version, route, priority }: WaitingPlace): string {
  return JSON.stringify([model, version, route, priority]);
}

export function placeFrom(text: string): WaitingPlace {
  const [model, version, route, priority] = JSON.parse(text) as [string, string | null, string, number];
  return { model, version, route, priority };
}
