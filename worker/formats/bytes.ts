/** Bodies the app reads itself. */

/** Smaller bodies are views of a read buffer, which they must not keep alive; larger ones were joined into their own. */
const OWN_BUFFER_BYTES = 64 * 1024;

/** The body as bytes that are the app's. */
export function readBytes(body: Buffer): Uint8Array {
  if (body.length > OWN_BUFFER_BYTES) return new Uint8Array(body.buffer, body.byteOffset, body.length);
  return Uint8Array.prototype.slice.call(body);
}
