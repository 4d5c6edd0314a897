/** Chooses the format of a call's body: what the dialect fixed, else what the content type says. */
import type { Call, Format } from '../../protocol/messages.js';
import { readBytes } from './bytes.js';
import { readJson } from './json.js';

/**
 * The value the app gets; `null` for an empty body. A promise only for formats that are not read in one go.
 * @throws SERVE_BAD_BODY (or rejects with it) if the body is malformed
 */
export function readInput(call: Call, body: Buffer): unknown {
  if (body.length === 0) return null;
  const format = call.format === 'auto' ? formatOf(call.contentType) : call.format;
  switch (format) {
    case 'json':
      return readJson(body);
    case 'msgpack':
      return import('./msgpack.js').then(({ readMsgpack }) => readMsgpack(body));
    case 'multipart':
      return import('./multipart.js').then(({ readMultipart }) => readMultipart(body, call.contentType));
    case 'bytes':
      return readBytes(body);
    case 'websocket':
      return null; // it has no body
  }
}

/** JSON for JSON, text, curl's form default and no type at all; anything unknown is bytes. */
export function formatOf(contentType: string): Exclude<Format, 'auto'> {
  const type = mediaType(contentType);
  if (type === 'application/json' || type === '') return 'json';
  if (type === 'multipart/form-data') return 'multipart';
  if (MSGPACK_TYPES.has(type)) return 'msgpack';
  if (type.endsWith('+json') || type.startsWith('text/')) return 'json';
  return type === 'application/x-www-form-urlencoded' ? 'json' : 'bytes';
}

const MSGPACK_TYPES = new Set(['application/msgpack', 'application/x-msgpack', 'application/vnd.msgpack']);

function mediaType(contentType: string): string {
  const semicolon = contentType.indexOf(';');
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
}
