/**
 * Items of a custom service. Input: a value for each query parameter and each field of the body, or `body` for all of
 * it. Output: the bytes of the answer to an item.
 */
import { isUtf8 } from 'node:buffer';
import { badOutput, ServeError } from '../../protocol/errors.js';
import type { Call } from '../../protocol/wire/messages.js';
import type { Item, ItemPart, ReadItem } from '../api/mms/item.js';
import type { BodyFormat, EncodedOutput } from './body-format.js';
import { writeBytes } from './bytes.js';
import { formPairs } from './form.js';
import { mediaType } from '../../protocol/text/headers.js';
import { formatNamed } from './index.js';
import { isThenable } from '../values/not-data.js';
import { readJson, writeJson } from './json.js';

/** A field of the request, not decoded yet. */
interface Field {
  readonly name: string;
  readonly filename?: string;
  /** The media type without its parameters, in lower case; empty if there is none. */
  readonly contentType: string;
  /** A view of the request. */
  readonly content: Buffer;
}

/**
 * Returns a promise for multipart bodies, whose parser is loaded with the first, and for formats that are not loaded
 * yet. `isRaw`: all values are bytes. @throws SERVE_BAD_BODY (or rejects with it)
 */
export function readItem(body: Buffer, call: Call, isRaw = false): ReadItem | Promise<ReadItem> {
  const { format, contentType } = call;
  if (format === 'auto') return readItemAs(mediaType(contentType), body, call, isRaw);
  const named = formatNamed(format);
  if (!isThenable(named)) return readItemAs(itemTypeOf(named, format), body, call, isRaw);
  return named.then((loaded) => readItemAs(itemTypeOf(loaded, format), body, call, isRaw));
}

/** Returns the media type of a body whose format the dialect fixes. @throws SERVE_BAD_BODY if a service cannot have it */
function itemTypeOf({ itemType, itemRefusal }: BodyFormat, name: string): string {
  if (itemType !== undefined) return itemType;
  throw badItem(itemRefusal ?? `A custom service cannot be called in the format ${JSON.stringify(name)}.`);
}

function readItemAs(type: string, body: Buffer, call: Call, isRaw: boolean): ReadItem | Promise<ReadItem> {
  const { format, params } = call;
  if (type === 'multipart/form-data') return readMultipartItem(body, call, isRaw);
  const before = params === '' ? NO_FIELDS : fieldsOfPairs(Buffer.from(params));
  if (type === 'application/x-www-form-urlencoded') return itemOf([...before, ...fieldsOfPairs(body)], isRaw);
  if (format === 'json' && body.length === 0 && !isRaw) return itemOf([...before, NO_VALUE], isRaw);
  return itemOf([...before, { name: 'body', contentType: type, content: body }], isRaw);
}

const NO_FIELDS: readonly Field[] = [];

/** The field of an empty body in a dialect that fixes the format to JSON. */
const NO_VALUE: Field = { name: 'body', contentType: 'application/json', content: Buffer.from('null') };

async function readMultipartItem(
  body: Buffer,
  { params, contentType }: Call,
  isRaw: boolean,
): Promise<ReadItem> {
  const { partsOf } = await import('../../protocol/text/multipart-parts.js');
  const fields = fieldsOfPairs(Buffer.from(params));
  try {
    for (const { disposition, contentType: type, content } of partsOf(body, contentType)) {
      const filename = disposition.params.get('filename');
      const name = disposition.params.get('name') as string;
      fields.push({
        name,
        ...(filename === undefined ? {} : { filename }),
        contentType: type.value,
        content,
      });
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw badItem(`The multipart body could not be read: ${reason}.`, cause);
  }
  return itemOf(fields, isRaw);
}

function fieldsOfPairs(text: Buffer): Field[] {
  return formPairs(text).map(([name, content]) => ({ name, contentType: '', content }));
}

/** Reads only the last field of each name. @throws SERVE_BAD_BODY */
function itemOf(fields: readonly Field[], isRaw: boolean): ReadItem {
  const [first] = fields;
  if (fields.length === 1 && first !== undefined && first.name !== '__proto__')
    return new FieldsItem({ [first.name]: valueOf(first, isRaw) }, fields);
  const last = new Map(fields.map((field) => [field.name, field]));
  const item = Object.fromEntries([...last].map(([name, field]) => [name, valueOf(field, isRaw)]));
  return new FieldsItem(item, fields);
}

class FieldsItem implements ReadItem {
  readonly item: Item;
  readonly #fields: readonly Field[];

  constructor(item: Item, fields: readonly Field[]) {
    this.item = item;
    this.#fields = fields;
  }

  parts(): ItemPart[] {
    return this.#fields.map(({ content, ...about }) => ({ ...about, data: Buffer.from(content) }));
  }

  fieldTypes(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#fields.map(({ name, contentType }) => [name, contentType]));
  }
}

function valueOf({ name, contentType, content }: Field, isRaw: boolean): unknown {
  const isJson = contentType === 'application/json';
  if (isRaw || (!isJson && !contentType.startsWith('text'))) return Buffer.from(content);
  const what = name === 'body' ? 'The body' : `The field ${JSON.stringify(name.slice(0, 100))}`;
  if (!isJson) return textOf(content, what);
  try {
    return readJson(content, what);
  } catch (cause) {
    throw badItem((cause as Error).message, cause);
  }
}

function textOf(content: Buffer, what: string): string {
  if (isUtf8(content)) return content.toString();
  throw badItem(`${what} is not text in UTF-8.`);
}

function badItem(message: string, cause?: unknown): ServeError {
  return new ServeError('SERVE_BAD_BODY', message, { kind: 'input', cause });
}

/** Sends bytes and text unchanged, anything else as indented JSON. @throws SERVE_OUTPUT_INVALID */
export function writeResult(value: unknown, call: Call): EncodedOutput {
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) return writeBytes(value);
  if (typeof value === 'string') return { contentType: 'text/plain; charset=utf-8', body: value };
  try {
    return writeJson(value, call, JSON_INDENT);
  } catch (cause) {
    const { message, detail } = cause as ServeError;
    const why = `${UNSUPPORTED} ${detail || message}`;
    throw badOutput(UNSUPPORTED, { detail: why, cause });
  }
}

const JSON_INDENT = 2;

/** Clients of Multi Model Server rely on this text. */
const UNSUPPORTED = 'Unsupported model output data type.';
