/** MessagePack bodies. */
import { Packr, Unpackr } from 'msgpackr';
import { badBody } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { plainValue } from '../values/plain-value.js';
import type { InputFormat } from './body-format.js';
import { refuseOddMarks } from './msgpack-marks.js';

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
