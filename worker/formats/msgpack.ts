/** MessagePack bodies. */
import { Packr, Unpackr } from 'msgpackr';
import { badBody } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { plainValue } from '../values/plain-value.js';
import type { InputFormat } from './body-format.js';

// `auto`: a number if it is exact, otherwise a BigInt; the library's types do not list it. `copyBuffers`: binary is
// copied, aligned for any typed array, and is not a view of the body.
const unpackr = new Unpackr({
  useRecords: false,
  mapsAsObjects: true,
  int64AsType: 'auto' as 'number',
  copyBuffers: true,
});
const packr = new Packr({ useRecords: false, encodeUndefinedAsNil: true, variableMapSize: true });

/** Reads one MessagePack value. Timestamps become Dates; binary fields belong to the app. @throws SERVE_BAD_BODY */
export function readMsgpack(body: Buffer): unknown {
  try {
    refuseOddMarks(body);
    return unpackr.unpack(body) as unknown;
  } catch (cause) {
    const problem = asSentence(clientMessage((cause as Error).message));
    throw badBody(`The body is not valid MessagePack: ${problem}`, cause);
  }
}

/** Replaces the library's message, which names one of its options, for a map key that is not text. */
function clientMessage(message: string): string {
  const isOfKey = message.startsWith('Invalid property type');
  return isOfKey ? 'a key of a map is a list, a map, bytes or a timestamp' : message;
}

/** Encodes a value; nested typed arrays become arrays, `Uint8Array` becomes binary. @throws SERVE_OUTPUT_INVALID */
export function writeMsgpack(value: unknown): Buffer {
  return packr.pack(plainValue(value));
}

export const FORMAT: InputFormat = {
  itemType: 'application/msgpack',
  read: readMsgpack,
};

/**
 * Refuses MessagePack bytes that are not data: the byte that is never used, and extensions other than timestamps.
 *
 * The library has its own extensions for errors, expressions, references and integers of any length; no client may make
 * it create those. The check takes a twentieth to a sixth of the time of reading.
 */
const NEVER_USED = 0xc1;

/** The extension type of timestamps, -1. */
const TIMESTAMP = 0xff;
const TIMESTAMP_BYTES: readonly number[] = [4, 8, 12];

/** Bytes of the length field after a mark; 0 if the mark itself gives the length. */
const LENGTH_BYTES = new Uint8Array(256);
/** Bytes of content after a mark. Values inside arrays and maps have marks of their own. */
const CONTENT_BYTES = new Uint8Array(256);
/** 1 for marks of extensions, which are followed by their type. */
const IS_EXTENSION = new Uint8Array(256);

for (const first of [0xc4, 0xc7, 0xd9]) LENGTH_BYTES.set([1, 2, 4], first);
for (let mark = 0xa0; mark < 0xc0; mark += 1) CONTENT_BYTES[mark] = mark & 0x1f;
CONTENT_BYTES.set([4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 16], 0xca); // numbers, then extensions of fixed sizes
CONTENT_BYTES.set([2, 4, 2, 4], 0xdc); // the counts of arrays and maps
for (const mark of [0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8]) IS_EXTENSION[mark] = 1;

/** Accepts any bytes; truncated ones are left to the reader. @throws Error that names the forbidden mark */
function refuseOddMarks(body: Buffer): void {
  for (let at = 0; at < body.length;) {
    const mark = body[at] as number;
    if (mark === NEVER_USED) throw new Error('byte 0xc1 is never used');
    const lengthBytes = LENGTH_BYTES[mark] as number;
    const isExtension = IS_EXTENSION[mark] as number;
    at += 1 + lengthBytes;
    if (at + isExtension > body.length) return;
    const bytes =
      lengthBytes === 0 ? (CONTENT_BYTES[mark] as number) : body.readUIntBE(at - lengthBytes, lengthBytes);
    if (isExtension === 1) refuseUnknown(body[at] as number, bytes);
    at += isExtension + bytes;
  }
}

function refuseUnknown(type: number, bytes: number): void {
  if (type !== TIMESTAMP)
    throw new Error(`extension type ${type > 127 ? type - 256 : type} is not supported`);
  if (!TIMESTAMP_BYTES.includes(bytes)) throw new Error(`a timestamp has ${bytes} bytes`);
}
