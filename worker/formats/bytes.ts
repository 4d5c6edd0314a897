/** Raw bytes, as input and as output. */
import type { EncodedOutput, InputFormat } from './body-format.js';

/**
 * Smaller bodies are copied, because they are views of a read buffer that they must not keep alive; larger ones have
 * their own memory.
 */
const OWN_BUFFER_BYTES = 64 * 1024;

/** Returns the body as bytes that belong to the app. */
export function readBytes(body: Buffer): Uint8Array {
  if (body.length > OWN_BUFFER_BYTES) return new Uint8Array(body.buffer, body.byteOffset, body.length);
  return Uint8Array.prototype.slice.call(body);
}

/** Copies nothing: the bytes belong to the app. */
export function writeBytes(value: Uint8Array | ArrayBuffer): EncodedOutput {
  const body = value instanceof Uint8Array ? value : new Uint8Array(value);
  return { contentType: 'application/octet-stream', body };
}

export const FORMAT: InputFormat = { itemType: 'application/octet-stream', read: readBytes };
