/** MessagePack bodies. */
import { Packr, Unpackr } from 'msgpackr';
import { ServeError } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { plainValue } from '../values/plain-value.js';
import type { WritableFormat } from './body-format.js';
import { refuseOddMarks } from './msgpack-marks.js';

// `auto`: a number when no digit is lost, else a BigInt. The library's types do not list it.
// `copyBuffers`: binary in memory of its own, aligned for any typed array, not a view of the body.
const unpackr = new Unpackr({
  useRecords: false,
  mapsAsObjects: true,
  int64AsType: 'auto' as 'number',
  copyBuffers: true,
});
const packr = new Packr({ useRecords: false, encodeUndefinedAsNil: true, variableMapSize: true });

/** Reads one MessagePack value; timestamps become Dates, binary fields are the app's to keep. @throws SERVE_BAD_BODY */
export function readMsgpack(body: Buffer): unknown {
  try {
    refuseOddMarks(body);
    return unpackr.unpack(body) as unknown;
  } catch (cause) {
    const problem = asSentence(inWordsForClients((cause as Error).message));
    throw new ServeError('SERVE_BAD_BODY', `The body is not valid MessagePack: ${problem}`, { cause });
  }
}

/** The library tells of an option of its own where a key can be no text. */
function inWordsForClients(message: string): string {
  const isOfKey = message.startsWith('Invalid property type');
  return isOfKey ? 'a key of a map is a list, a map, bytes or a timestamp' : message;
}

/** Encodes a value; nested typed arrays become arrays, `Uint8Array` becomes binary. @throws SERVE_OUTPUT_INVALID */
export function writeMsgpack(value: unknown): Buffer {
  return packr.pack(plainValue(value));
}

export const MSGPACK: WritableFormat = {
  name: 'msgpack',
  read: readMsgpack,
  write: (value) => ({ contentType: 'application/msgpack', body: writeMsgpack(value) }),
};
