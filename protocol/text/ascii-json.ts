/** JSON in ASCII alone, for clients that break any other character. */

/** Writes what is beyond ASCII (U+0080 and up) as `\uXXXX`; only strings of JSON can hold any. */
export function escapeNonAscii(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
