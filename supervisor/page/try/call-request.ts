/** A call as the page sends it, and as its snippets write it. */

/** A file by what a request says of it. */
export interface NamedFile {
  readonly name: string;
  /** Media type; empty if it is unknown. */
  readonly type: string;
}

/** `form`: a multipart form with the file as this field. */
export type CallBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly file: NamedFile }
  | { readonly kind: 'form'; readonly field: string; readonly file: NamedFile };

export interface CallRequest {
  /** Absolute. */
  readonly url: string;
  /** Without the key, and without the type of a form, which has a boundary in it. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: CallBody;
  readonly needsKey: boolean;
  /** Whether the answer may come in pieces. */
  readonly isStream: boolean;
}

/** Stands for the key in everything that is copied. */
export const KEY_PLACEHOLDER = 'YOUR_API_KEY';

/** All headers that a snippet shows. */
export function shownHeaders({ headers, needsKey }: CallRequest): (readonly [string, string])[] {
  return [...headers, ...(needsKey ? [['X-Banana-Api-Key', KEY_PLACEHOLDER] as const] : [])];
}

/** Longer bodies make no readable snippet: it reads them from a file. */
const MAX_SHOWN_TEXT = 8_000;
export const INPUT_FILE = 'input.json';

/** The request as snippets write it. */
export function forSnippets(request: CallRequest): CallRequest {
  if (request.body.kind !== 'text' || request.body.text.length <= MAX_SHOWN_TEXT) return request;
  return { ...request, body: { kind: 'file', file: { name: INPUT_FILE, type: 'application/json' } } };
}
