/**
 * Texts in lines of the log: those of clients and apps may neither move the cursor of a terminal nor forge lines, and one with a
 * stack trace, as Python or JavaScript writes it, is split into one line that says what happened, and the stack.
 */
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

/** The path of a request as lines of the log show it: a client may send one of any length, which is cut and ends in its length. */
export function loggedPath(path: string): string {
  return path.length <= MAX_PATH_CHARS
    ? path
    : `${path.slice(0, MAX_PATH_CHARS)}\u2026 (${path.length} characters)`;
}

/** Exceptions of a chain that are shown at its beginning, and at its end. */
const SHOWN = 10;

/** Returns `text` as it is if it has no stack. */
export function messageOf(text: string): { readonly msg: string; readonly stack?: string } {
  const python = text.search(/(?:\+ Exception Group )?Traceback \(most recent call last\):\n/);
  if (python >= 0)
    return { msg: joined(text.slice(0, python), lastOfTraceback(text)), stack: shortChain(text) };
  const first = text.search(/\n\s+at /);
  if (first < 0) return { msg: text };
  return {
    msg: `${text.slice(0, first)}${placed(/at .*?([^/(\s:]+:\d+)(?::\d+)?\)?$/m.exec(text.slice(first))?.[1])}`,
    stack: text,
  };
}

/** The text that stood before the traceback, and the exception. */
function joined(before: string, exception: string): string {
  const said = before.replace(/[\s:]*$/, '').trim();
  return said === '' || LINKS.some((link) => said.includes(link)) ? exception : `${said}: ${exception}`;
}

/** `ZeroDivisionError: division by zero (app.py:31)`: the line behind the last frame, and the place of that frame. */
function lastOfTraceback(text: string): string {
  const lines = text.split('\n');
  const frame = lines.findLastIndex((line) => FRAME.test(line));
  const [, file = '', number = ''] = FRAME.exec(lines[frame] ?? '') ?? [];
  const line = lines.slice(frame + 1).find((after) => /^\S/.test(after)) ?? lines.at(-1) ?? '';
  return `${line}${placed(file === '' ? undefined : `${file.split('/').at(-1)}:${number}`)}`;
}

const FRAME = /^\s+File "(.+)", line (\d+)/;

function placed(place: string | undefined): string {
  return place === undefined ? '' : ` (${place})`;
}

/** Lines of Python between two exceptions of a chain. */
const LINKS = [
  'The above exception was the direct cause of the following exception:',
  'During handling of the above exception, another exception occurred:',
];

/** Leaves out the middle of a long chain of exceptions. */
export function shortChain(text: string): string {
  const link = new RegExp(`\\n\\n(?:${LINKS.join('|')})\\n\\n`, 'g');
  const ends = Array.from(text.matchAll(link), ({ index, 0: found }) => index + found.length);
  const left = ends.length + 1 - 2 * SHOWN;
  if (left <= 0) return text;
  return `${text.slice(0, ends[SHOWN - 1])}(${left} more exceptions)\n\n${text.slice(ends[ends.length - SHOWN])}`;
}
