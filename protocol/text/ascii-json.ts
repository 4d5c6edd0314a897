/** JSON in pure ASCII, for clients that break any other character. */

/** Writes characters beyond ASCII (U+0080 and up) as `\uXXXX`; they occur only inside JSON strings. */
export function escapeNonAscii(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
