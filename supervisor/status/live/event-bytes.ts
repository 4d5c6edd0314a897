import type { LiveEvents } from '../live-types.js';

/** A server-sent event. JSON has no line ends, so one `data` line holds it. */
export function eventBytes<Name extends keyof LiveEvents>(name: Name, data: LiveEvents[Name]): Buffer {
  return Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}
