/** What a custom service takes and gives. */
import type { PredictionException } from './prediction-exception.js';

export type JsonValue =
  null | boolean | number | string | readonly JsonValue[] | { readonly [name: string]: JsonValue };

/**
 * One request of a batch: a value for each field of a form, each parameter of the query, or `body` for the whole of any
 * other body. A value of the type `application/json` is what the JSON says, one of `text/…` a string, any other bytes.
 * Of a field that comes again the last value counts; `context.getParts` has them all.
 */
export type Item = Record<string, ItemValue>;

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- JSON is what the client sent; the author knows what that is
export type ItemValue = any;

/** One field as it was sent. The app owns the bytes. */
export interface ItemPart {
  readonly name: string;
  /** As the client sent it; left out for what is no file. */
  readonly filename?: string;
  /** Without its parameters, in lower case; empty if none was sent. */
  readonly contentType: string;
  readonly data: Buffer;
}

/** The answer to one item: bytes, text, JSON, an error that fails this item alone, or chunks of a stream. */
export type ItemResult =
  Uint8Array | string | JsonValue | object | Error | PredictionException | AsyncIterable<Uint8Array | string>;

/** `MAR-INF/MANIFEST.json` in the model's folder. */
export type Manifest = Readonly<Record<string, unknown>>;

/** An item as the worker has read it. */
export interface ReadItem {
  readonly item: Item;
  /** Every field in the order in which it was sent, those of the query first. */
  parts(): ItemPart[];
  /** The content type of each field, by its name. */
  fieldTypes(): Readonly<Record<string, string>>;
}
