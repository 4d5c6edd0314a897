/** Bodies the app reads itself. */

/** The body as bytes the app owns: a copy, so that a small body does not hold a whole read buffer alive. */
export function readBytes(body: Buffer): Uint8Array {
  return Uint8Array.prototype.slice.call(body);
}
