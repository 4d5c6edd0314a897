/**
 * The body of an answer as it arrives, in the form in which it is shown. Everything is bounded: a stream may never end.
 */
import { EventStreamReader } from '../live/event-stream.js';
import { mediaTypeOf, mediumOf, type Medium } from '../parts/media.js';

/** `lines` and `events` grow while they arrive, and so does `text`; the others are shown when they are whole. */
type AnswerKind = 'json' | 'text' | 'lines' | 'events' | 'bytes' | Medium;

export interface StreamItem {
  /** Counts from 1. */
  readonly number: number;
  /** Name of an event; empty if it has none. */
  readonly name: string;
  readonly text: string;
  /** Time since the request was sent. */
  readonly atMs: number;
}

const MAX_ITEMS = 500;
/** Bounds of one item, and of all that are kept: an item may be a picture in base64. */
const MAX_ITEM_CHARS = 2_000_000;
const MAX_ITEMS_CHARS = 20_000_000;
const MAX_TEXT = 500_000;
/** More can be shown in no useful way; it can still be saved. */
export const MAX_JSON_BYTES = 4_000_000;
const MAX_KEPT_BYTES = 512_000_000;

const EXACT: Readonly<Record<string, AnswerKind>> = {
  'text/event-stream': 'events',
  'application/x-ndjson': 'lines',
  'application/jsonl': 'lines',
  'application/xml': 'text',
  'application/javascript': 'text',
};

/** `type`: of the header, without parameters, in lower case. */
export function answerKind(type: string): AnswerKind {
  if (EXACT[type] !== undefined) return EXACT[type];
  if (/^application\/(?:[\w.-]+\+)?json$/.test(type)) return 'json';
  return mediumOf(type) ?? (type.startsWith('text/') ? 'text' : 'bytes');
}

export class AnswerBody {
  kind: AnswerKind;
  /** Media type of what is shown: that of the header, or the one that the bytes have. */
  type: string;
  byteLength = 0;
  pieces = 0;
  /** The last ones. */
  items: readonly StreamItem[] = [];
  itemCount = 0;
  /** The beginning of a text; JSON as a whole, unless it is too large to show. */
  text = '';
  isCut = false;
  readonly #kept: Uint8Array<ArrayBuffer>[] = [];
  readonly #decoder = new TextDecoder();
  readonly #events = new EventStreamReader();
  #line = '';

  constructor(contentType: string) {
    this.type = (contentType.split(';')[0] ?? '').trim().toLowerCase();
    this.kind = answerKind(this.type);
  }

  /** `atMs`: time since the request was sent. */
  push(bytes: Uint8Array<ArrayBuffer>, atMs: number): void {
    if (this.byteLength === 0 && this.kind === 'bytes') this.#sniff(bytes);
    this.byteLength += bytes.length;
    this.pieces += 1;
    if (this.byteLength <= MAX_KEPT_BYTES) this.#kept.push(bytes);
    else this.#kept.length = 0;
    if (isTextual(this.kind)) this.#show(this.#decoder.decode(bytes, { stream: true }), atMs);
  }

  /** Nothing follows: what stands without a line break is shown too. */
  end(atMs: number): void {
    if (isTextual(this.kind)) this.#show(this.#decoder.decode(), atMs);
    if (this.#line.trim() !== '') this.#addItems([{ name: '', text: this.#line }], atMs);
    this.#line = '';
  }

  /** Null if it was too large to be kept. */
  whole(): Blob | null {
    if (this.byteLength > MAX_KEPT_BYTES) return null;
    return new Blob(this.#kept, { type: this.type });
  }

  #sniff(bytes: Uint8Array): void {
    const type = mediaTypeOf(bytes);
    const medium = type === null ? null : mediumOf(type);
    if (type === null || medium === null) return;
    this.kind = medium;
    this.type = type;
  }

  #show(text: string, atMs: number): void {
    if (this.kind === 'events')
      return this.#addItems(
        this.#events
          .push(text)
          .map(({ name, data }) => ({ name: name === 'message' ? '' : name, text: data })),
        atMs,
      );
    if (this.kind === 'lines') {
      const [first = '', ...others] = text.split('\n'); // what came before has no end of a line
      this.#line += first;
      const lines = others.length === 0 ? [] : [this.#line, ...others];
      this.#line = lines.pop() ?? this.#line;
      return this.#addItems(
        lines.filter((line) => line.trim() !== '').map((line) => ({ name: '', text: line })),
        atMs,
      );
    }
    const max = this.kind === 'json' ? MAX_JSON_BYTES : MAX_TEXT;
    const room = max - this.text.length;
    this.isCut ||= text.length > room;
    this.text += text.slice(0, Math.max(0, room));
  }

  #addItems(added: readonly { readonly name: string; readonly text: string }[], atMs: number): void {
    if (added.length === 0) return;
    const items = added.map(({ name, text }, i) => {
      return { name, text: text.slice(0, MAX_ITEM_CHARS), number: this.itemCount + i + 1, atMs };
    });
    this.itemCount += added.length;
    this.items = lastItems([...this.items, ...items]);
  }
}

/** As many of the last ones as are kept. */
function lastItems(items: readonly StreamItem[]): StreamItem[] {
  let chars = 0;
  const first = items.findLastIndex(({ text }) => (chars += text.length) > MAX_ITEMS_CHARS);
  return items.slice(Math.max(first + 1, items.length - MAX_ITEMS));
}

function isTextual(kind: AnswerKind): boolean {
  return kind === 'json' || kind === 'text' || kind === 'lines' || kind === 'events';
}
