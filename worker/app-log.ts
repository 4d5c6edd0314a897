/** `ctx.log`: lines for the server's own log, sent as messages so that they carry worker and request id. */
import type { Channel } from '../protocol/channel.js';
import { describeThrown } from '../protocol/errors.js';
import { MAX_TEXT_CHARS } from '../protocol/messages.js';
import type { AppLog } from './api/types.js';

export function appLog(channel: Channel, requestId: string): AppLog {
  const at =
    (level: string) =>
    (message: string, fields?: Record<string, unknown>): void => {
      channel.send({
        type: 'log',
        level,
        message: clip(typeof message === 'string' ? message : describeThrown(message).message),
        fields: fieldsText(fields),
        requestId,
      });
      channel.flush();
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** A log line must never fail its call: fields that are not JSON are named, not thrown. */
function fieldsText(fields: unknown): string {
  if (fields === undefined) return '';
  try {
    const text = JSON.stringify(fields);
    if (text === undefined || text[0] !== '{')
      return JSON.stringify({ unloggable: 'fields are not an object' });
    return text.length <= MAX_TEXT_CHARS
      ? text
      : JSON.stringify({ unloggable: `fields of ${text.length} characters` });
  } catch (error) {
    return JSON.stringify({ unloggable: clip(describeThrown(error).message) });
  }
}

function clip(text: string): string {
  return text.length <= MAX_TEXT_CHARS
    ? text
    : `${text.slice(0, MAX_TEXT_CHARS)}… (${text.length} characters)`;
}
