/** The limits of the conversation in `messages.ts`: both sides hold to them. */

/** Maximum body bytes in one frame. Control messages wait for at most one such frame (docs/wire.md). */
export const MAX_FRAGMENT_BYTES = 256 * 1024;

/** Maximum bytes of a frame's head. Request headers (Node accepts 16 KiB) are its largest part. */
export const MAX_HEAD_BYTES = 1024 * 1024;

/** Senders cut texts (errors, logs) to this length, so that several of them fit into one head. */
export const MAX_TEXT_CHARS = 64 * 1024;

/** Maximum bytes of a JSON Schema, and of all of an app together. */
export const MAX_SCHEMA_BYTES = 256 * 1024;
export const MAX_SCHEMAS_BYTES = 512 * 1024;

/** Maximum characters of the text in a `progress`. */
export const MAX_PROGRESS_CHARS = 200;

/** Maximum body bytes of a webhook. */
export const MAX_WEBHOOK_BYTES = 16 * 1024 * 1024;

/** Maximum time limit of one attempt to deliver a webhook. */
export const MAX_WEBHOOK_TIMEOUT_MS = 60_000;
export const MAX_WEBHOOK_RETRIES = 10;

/** The first number of a webhook, above every call's id, so that a `body` frame shows which of the two it continues. */
export const FIRST_WEBHOOK_REF = 2 ** 32;

/** Bytes that a stream may send before the first `credit`. */
export const STREAM_WINDOW_BYTES = 256 * 1024;

/** Credit that a `data` frame costs in addition to its bytes, so that small messages cannot pile up. */
export const DATA_OVERHEAD_BYTES = 64;

/** Maximum bytes of the reason of a `close`: its payload has 125 bytes at most, two of them the code (RFC 6455 section 5.5). */
export const MAX_CLOSE_REASON_BYTES = 123;

/** Maximum calls that one worker runs at the same time: the entries of their note fit into a page. */
export const MAX_CONCURRENCY = 128;
