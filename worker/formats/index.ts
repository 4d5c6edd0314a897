/** Finds wire formats by name: the file of that name in this folder. A new format is a file, and no line here. */
import { badBody, type ServeError } from '../../protocol/errors.js';
import type { Call } from '../../protocol/wire/messages.js';
import type { BodyFormat, DescribedApp, Exchange } from './body-format.js';
import { FORMAT as BYTES } from './bytes.js';
import { FORMAT as FORM } from './form.js';
import { FORMAT as JSON_FORMAT } from './json.js';
import { FORMAT as TEXT } from './text.js';

/** The formats that are loaded, by name; the others are loaded by the first call that names them. */
export const LOADED_FORMATS = new Map<string, BodyFormat>([
  ['json', JSON_FORMAT],
  ['form', FORM],
  ['text', TEXT],
  ['bytes', BYTES],
]);

/**
 * Returns the format that a dialect names, or that `read-input.ts` finds for the content type; a promise if it is not
 * loaded yet. @throws SERVE_BAD_BODY (or rejects with it) if this worker has no such format
 */
export function formatNamed(name: string): BodyFormat | Promise<BodyFormat> {
  return LOADED_FORMATS.get(name) ?? loadFormat(name);
}

async function loadFormat(name: string): Promise<BodyFormat> {
  const format = FORMAT_NAME.test(name) ? await importFormat(name) : undefined;
  if (format === undefined) throw unknownFormat(name);
  LOADED_FORMATS.set(name, format);
  return format;
}

const FORMAT_NAME = /^[a-z][a-z0-9-]*$/;

/** Undefined if the file is no format. */
async function importFormat(name: string): Promise<BodyFormat | undefined> {
  try {
    return ((await import(`./${name}.js`)) as { readonly FORMAT?: BodyFormat }).FORMAT;
  } catch (cause) {
    throw unknownFormat(name, cause);
  }
}

function unknownFormat(name: string, cause?: unknown): ServeError {
  return badBody(`The worker of this model does not have the format ${JSON.stringify(name)}.`, cause);
}

/**
 * Makes the exchange of a call whose answer a dialect's own format writes. Rejects with SERVE_BAD_BODY if this worker
 * has no such format.
 */
export async function exchangeOf(call: Call, app: DescribedApp): Promise<Exchange> {
  const format = await formatNamed(call.answer);
  if ('exchange' in format) return format.exchange(call, app);
  throw badBody(`The format ${JSON.stringify(call.answer)} does not write answers.`);
}

/** The content types of MessagePack: of a body, and of an answer if the client's Accept header names one; JSON otherwise. */
export const MSGPACK_TYPES: readonly string[] = [
  'application/msgpack',
  'application/x-msgpack',
  'application/vnd.msgpack',
];
