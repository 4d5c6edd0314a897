/** Removes control characters from lines of the log: they could move the cursor of a terminal, or forge lines. */
import { stripVTControlCharacters } from 'node:util';

/** All but tab and line feed, which stacks contain. U+0080 to U+009F begin sequences as ESC does. */
// eslint-disable-next-line no-control-regex -- they are what this is about
const CONTROLS = /[\0-\x08\v-\x1f\x7f-\x9f]/g;
const UNESCAPED_IN_JSON = /[\x7f-\x9f]/g;

/** The text without colours, and with a space for every other control character. */
export function withoutControls(text: string): string {
  return text.search(CONTROLS) < 0 ? text : stripVTControlCharacters(text).replace(CONTROLS, ' ');
}

/** JSON with escapes for the control characters that it may contain as they are. */
export function escapeControls(json: string): string {
  return json.replace(UNESCAPED_IN_JSON, (one) => `\\u00${one.charCodeAt(0).toString(16)}`);
}
