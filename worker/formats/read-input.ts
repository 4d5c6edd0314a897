/** Reads a call's body in the format that the dialect fixes, otherwise by its content type. */
import { ServeError, asCallErrorCode, badBody } from '../../protocol/errors.js';
import type { Call } from '../../protocol/wire/messages.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { ITEMS, NO_WISHES, type InputWishes } from '../api/route-options.js';
import { mediaType } from '../../protocol/text/headers.js';
import { isThenable } from '../values/not-data.js';
import type { BodyFormat, Exchange } from './body-format.js';
import { formatNamed, MSGPACK_TYPES } from './index.js';
import { readJson } from './json.js';
import { readItem } from './mms.js';

/**
 * Returns the app's input; `null` for an empty body, unless the app takes items or the format is a dialect's own. A
 * promise only for formats that are not read synchronously. `exchange` reads the body if it is in that format.
 * @throws SERVE_BAD_BODY (or rejects with it) if the body is malformed
 */
export function readInput(
  call: Call,
  body: Buffer,
  wishes: InputWishes = NO_WISHES,
  exchange: Exchange | null = null,
): unknown {
  if (call.format === 'websocket') return null;
  if (wishes.items) return readItem(body, call, wishes.rawItems);
  if (call.format !== 'auto') return readIn(call.format, body, call, exchange);
  if (body.length === 0) return null;
  const name = formatOf(call.contentType, wishes);
  return name === 'json' ? readUnaskedJson(body, call) : readIn(name, body, call, null);
}

function readIn(name: string, body: Buffer, call: Call, exchange: Exchange | null): unknown {
  const format = formatNamed(name);
  if (isThenable(format)) return format.then((loaded) => readWith(loaded, body, call, exchange));
  return readWith(format, body, call, exchange);
}

function readWith(format: BodyFormat, body: Buffer, call: Call, exchange: Exchange | null): unknown {
  try {
    if (!('exchange' in format)) return body.length === 0 ? null : refusing(format.read(body, call));
    return refusing((exchange ?? format.exchange(call, {})).read(body));
  } catch (thrown) {
    throw refusalOf(thrown);
  }
}

/** Also refuses a body that is read asynchronously as `refusalOf` says. */
function refusing(input: unknown): unknown {
  if (!isThenable(input)) return input;
  return input.then(undefined, (thrown: unknown) => {
    throw refusalOf(thrown);
  });
}

/** A format may refuse a body with any code: one that no call ends with becomes SERVE_BAD_BODY. */
function refusalOf(thrown: unknown): unknown {
  if (!(thrown instanceof ServeError) || asCallErrorCode(thrown.code) === thrown.code) return thrown;
  const { message, detail, status, kind, issues } = thrown;
  return new ServeError('SERVE_BAD_BODY', message, { detail, status, kind, issues, cause: thrown });
}

/**
 * JSON is used for JSON, for no content type, and for text and forms if the app did not ask for them; any other type is
 * bytes.
 */
export function formatOf(contentType: string, wishes: InputWishes = NO_WISHES): string {
  const type = mediaType(contentType);
  if (type === 'application/json' || type === '') return 'json';
  if (type === 'multipart/form-data') return 'multipart';
  if (MSGPACK_TYPES.includes(type)) return 'msgpack';
  if (type.endsWith('+json')) return 'json';
  if (type === FORM_TYPE) return wishes.forms ? 'form' : 'json';
  if (type.startsWith('text/')) return wishes.text ? 'text' : 'json';
  return 'bytes';
}

/** The content type that curl's `-d` sends with any body: mistyped JSON must not reach an app as a field. */
const FORM_TYPE = 'application/x-www-form-urlencoded';

/** @throws SERVE_BAD_BODY that also explains how an app accepts forms and text, if the body may be one */
function readUnaskedJson(body: Buffer, call: Call): unknown {
  try {
    return readJson(body);
  } catch (error) {
    const format = formatOf(call.contentType, ITEMS);
    if (!(error instanceof ServeError) || (format !== 'form' && format !== 'text')) throw error;
    throw badBody(`${asSentence(error.message)} ${HINTS[format]}`, error);
  }
}

const HINTS = {
  form: 'A form is read as JSON, because curl sends JSON with that content type, unless the app sets `forms: true`.',
  text: 'Text is read as JSON unless the app sets `text: true`.',
};
