/** MessagePack bodies. */
import { C1, Packr, Unpackr } from 'msgpackr';
import { ServeError } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/sentences.js';
import { plainValue } from '../reply/plain-value.js';
import type { WritableFormat } from './body-format.js';

// `auto`: a number when no digit is lost, else a BigInt. The library's types do not list it.
// `copyBuffers`: binary in memory of its own, aligned for any typed array, not a view of the body.
const unpackr = new Unpackr({
  useRecords: false,
  mapsAsObjects: true,
  int64AsType: 'auto' as 'number',
  copyBuffers: true,
});
const packr = new Packr({ useRecords: false, encodeUndefinedAsNil: true, variableMapSize: true });

/** Reads one MessagePack value; binary fields are the app's to keep. @throws SERVE_BAD_BODY */
export function readMsgpack(body: Buffer): unknown {
  try {
    const value: unknown = unpackr.unpack(body);
    // The library hands out an object of its own for the byte that no value may use.
    if (body.includes(NEVER_USED_BYTE) && holdsNeverUsed(value)) throw new Error('byte 0xc1 is never used');
    return value;
  } catch (cause) {
    throw new ServeError(
      'SERVE_BAD_BODY',
      `The body is not valid MessagePack: ${asSentence((cause as Error).message)}`,
      {
        cause,
      },
    );
  }
}

const NEVER_USED_BYTE = 0xc1;

function holdsNeverUsed(value: unknown): boolean {
  if (value === C1) return true;
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return false;
  return Object.values(value).some(holdsNeverUsed);
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
