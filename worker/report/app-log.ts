/** `ctx.log`: lines for the server's log, sent as messages so that they carry worker and request id. */
import type { Channel } from '../../protocol/wire/channel.js';
import { describeThrown } from '../../protocol/errors.js';
import { MAX_TEXT_CHARS } from '../../protocol/wire/limits.js';
import { isObject } from '../../protocol/values/tensor.js';
import type { AppLog } from '../api/types.js';

export function appLog(channel: Channel, requestId: string, traceparent: string | null = null): AppLog {
  const at =
    (level: string) =>
    (message: string, fields?: Record<string, unknown>): void => {
      channel.send({
        type: 'log',
        level,
        message: clip(messageText(message)),
        fields: fieldsText(fields, traceparent),
        requestId,
      });
      channel.flush();
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Returns the message as text. Never throws: a log line must not fail its call. */
function messageText(message: unknown): string {
  try {
    return String(message);
  } catch {
    return 'a message that cannot be shown';
  }
}

/** Returns the fields as JSON. Fields that are not JSON are named in the line; nothing is thrown. */
function fieldsText(given: unknown, traceparent: string | null): string {
  if (given === undefined && traceparent === null) return '';
  try {
    const fields =
      traceparent !== null && isObject(given ?? {}) ? { traceparent, ...(given as object) } : given;
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
