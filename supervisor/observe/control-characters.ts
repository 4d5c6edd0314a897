/** Keeps texts of clients and apps from moving the cursor of a terminal, and from forging lines of the log. */
import { stripVTControlCharacters } from 'node:util';

/** All but tab and line feed, which stacks contain. U+0080 to U+009F begin sequences as ESC does; U+2028 and U+2029 end lines. */
// eslint-disable-next-line no-control-regex -- they are what this is about
const CONTROLS = /[\0-\x08\v-\x1f\x7f-\x9f\u2028\u2029]/g;
const UNESCAPED_IN_JSON = /[\x7f-\x9f\u2028\u2029]/g;

/** The text without colours, and with a space for every other control character. */
export function withoutControls(text: string): string {
  return text.search(CONTROLS) < 0 ? text : stripVTControlCharacters(text).replace(CONTROLS, ' ');
}

/**
 * The text with indented lines after the first: a line that is not indented begins an event. If one of them is not, all are
 * moved, so that a traceback keeps its shape.
 */
export function indented(text: string): string {
  return /\n\S/.test(text) ? text.replace(/\n(?=.)/g, '\n    ') : text;
}

/** JSON with escapes for the control characters that it may contain as they are. */
export function escapeControls(json: string): string {
  return json.replace(UNESCAPED_IN_JSON, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const MAX_PATH_CHARS = 1024;

/** The path of a request, which its client may choose as long as it likes, as lines of the log show it; one that was cut ends in its length. */
export function loggedPath(path: string): string {
  return path.length <= MAX_PATH_CHARS
    ? path
    : `${path.slice(0, MAX_PATH_CHARS)}\u2026 (${path.length} characters)`;
}
