/** Every wire format. A new one is a file in this folder and a line here. */
import type { BodyFormat, WritableFormat } from './body-format.js';
import { BYTES } from './bytes.js';
import { FORM } from './form.js';
import { JSON_FORMAT } from './json.js';
import { MMS } from './mms.js';
import { TEXT } from './text.js';

/** Formats that most apps never use are loaded with the first body that needs them. */
const MSGPACK: WritableFormat = {
  name: 'msgpack',
  read: async (...given) => (await import('./msgpack.js')).MSGPACK.read(...given),
  write: async (...given) => (await import('./msgpack.js')).MSGPACK.write(...given),
};
const MULTIPART: BodyFormat = {
  name: 'multipart',
  read: async (...given) => (await import('./multipart.js')).MULTIPART.read(...given),
};

/** Formats by the name that a dialect gives, or that `read-input.ts` finds for the content type. */
export const FORMATS = {
  json: JSON_FORMAT,
  form: FORM,
  text: TEXT,
  msgpack: MSGPACK,
  multipart: MULTIPART,
  bytes: BYTES,
  mms: MMS,
} as const satisfies Readonly<Record<string, BodyFormat>>;

export type FormatName = keyof typeof FORMATS;

type Write = WritableFormat['write'];

/** Encoders of an answer that a client selects by naming their type in its Accept header; JSON otherwise. */
export const BY_ACCEPT: readonly (readonly [type: string, write: Write])[] = [
  'application/msgpack',
  'application/x-msgpack',
  'application/vnd.msgpack',
].map((contentType) => [
  contentType,
  async (...given) => ({ ...(await FORMATS.msgpack.write(...given)), contentType }),
]);
