/** Splits a text with a stack trace, as Python or JavaScript writes it, into one line that says what happened, and the stack. */

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
