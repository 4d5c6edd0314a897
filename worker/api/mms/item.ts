/** The inputs and outputs of a custom service. */
import type { PredictionException } from '../http-error.js';

/**
 * Any JSON.
 * @example
 * const value: JsonValue = { label: 7, all: [0.1, 0.9] };
 */
export type JsonValue =
  null | boolean | number | string | readonly JsonValue[] | { readonly [name: string]: JsonValue };

/**
 * One request of a batch: a value for each field of a form, each parameter of the query, or `body` for the whole of any
 * other body. A value of the type `application/json` is parsed, one of `text/…` is a string, any other is bytes. Of a
 * repeated field the last value counts; `context.getParts` has all of them.
 * @example
 * const textOf = (item: Item) => String(item['text'] ?? item['body']);
 */
export type Item = Record<string, ItemValue>;

/**
 * The value of a field of an item.
 * @example
 * const bytesOf = (value: ItemValue) => Buffer.from(value);
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the JSON of the client; the author knows its type
export type ItemValue = any;

/**
 * One field as it was sent. The app owns the bytes.
 * @example
 * const isPicture = ({ contentType }: ItemPart) => contentType.startsWith('image/');
 */
export interface ItemPart {
  readonly name: string;
  /** The file name as the client sent it; left out if the part is not a file. */
  readonly filename?: string;
  /** The media type without its parameters, in lower case; empty if none was sent. */
  readonly contentType: string;
  readonly data: Buffer;
}

/**
 * The answer to one item: bytes, text, JSON, an error that fails this item alone, or chunks of a stream.
 * @example
 * const results: ItemResult[] = [{ label: 7 }, 'text', new PredictionException('no picture', 400)];
 */
export type ItemResult =
  Uint8Array | string | JsonValue | object | Error | PredictionException | AsyncIterable<Uint8Array | string>;

/**
 * `MAR-INF/MANIFEST.json` in the model's folder.
 * @example
 * const versionOf = (manifest: Manifest | null) => manifest?.['specificationVersion'];
 */
export type Manifest = Readonly<Record<string, unknown>>;

/** An item that the worker has read. */
export interface ReadItem {
  readonly item: Item;
  /** Returns every field in the order in which it was sent, those of the query first. */
  parts(): ItemPart[];
  /** Returns the content type of each field, by its name. */
  fieldTypes(): Readonly<Record<string, string>>;
}
