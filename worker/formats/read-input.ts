/** Chooses the format of a call's body: what the dialect fixed, else what the content type says. */
import { ServeError } from '../../protocol/errors.js';
import type { Call, Format } from '../../protocol/messages.js';
import { NO_WISHES, type InputWishes } from '../api/input-wishes.js';
import { readBytes } from './bytes.js';
import { readJson } from './json.js';
import { readForm, readText } from './text.js';

/**
 * The value the app gets; `null` for an empty body. A promise only for formats that are not read in one go.
 * @throws SERVE_BAD_BODY (or rejects with it) if the body is malformed
 */
export function readInput(call: Call, body: Buffer, wishes: InputWishes = NO_WISHES): unknown {
  if (body.length === 0) return null;
  const format = call.format === 'auto' ? formatOf(call.contentType, wishes) : call.format;
  switch (format) {
    case 'json':
      return call.format === 'json' ? readJson(body) : readUnaskedJson(body, call.contentType);
    case 'form':
      return readForm(body);
    case 'text':
      return readText(body, call.contentType);
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

/** JSON for JSON and no type at all, and for text and forms of an app that wants neither; anything unknown is bytes. */
export function formatOf(
  contentType: string,
  wishes: InputWishes = NO_WISHES,
): Exclude<Format, 'auto'> | keyof typeof HINTS {
  const type = mediaType(contentType);
  if (type === 'application/json' || type === '') return 'json';
  if (type === 'multipart/form-data') return 'multipart';
  if (MSGPACK_TYPES.has(type)) return 'msgpack';
  if (type.endsWith('+json')) return 'json';
  if (type === FORM_TYPE) return wishes.forms ? 'form' : 'json';
  if (type.startsWith('text/')) return wishes.text ? 'text' : 'json';
  return 'bytes';
}

const MSGPACK_TYPES = new Set(['application/msgpack', 'application/x-msgpack', 'application/vnd.msgpack']);

/** The type that curl's `-d` sends, whatever it sends: a mistyped JSON must not reach an app as a field. */
const FORM_TYPE = 'application/x-www-form-urlencoded';

/** @throws SERVE_BAD_BODY that also says how an app gets forms and text, if the body may be meant as such */
function readUnaskedJson(body: Buffer, contentType: string): unknown {
  try {
    return readJson(body);
  } catch (error) {
    const format = formatOf(contentType, { forms: true, text: true });
    if (!(error instanceof ServeError) || (format !== 'form' && format !== 'text')) throw error;
    throw new ServeError('SERVE_BAD_BODY', `${error.message}. ${HINTS[format]}`, { cause: error });
  }
}

const HINTS = {
  form: 'A form is read as JSON, since curl sends JSON as one, unless the app asks for forms with `forms: true`.',
  text: 'Text is read as JSON unless the app asks for text with `text: true`.',
};

function mediaType(contentType: string): string {
  const semicolon = contentType.indexOf(';');
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
}
