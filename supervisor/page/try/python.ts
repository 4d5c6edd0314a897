/** Writes a call for the package requests, in Python. */
import { readJson } from '../parts/json-text.js';
import { shownHeaders, type CallBody, type CallRequest } from './call-request.js';

export function pythonOf(request: CallRequest): string {
  const body = bodyOf(request.body);
  // `json=` sends its type itself.
  const isTypeSent = body?.startsWith('json=') === true;
  const headers = shownHeaders(request).filter(([name]) => !(isTypeSent && name === 'Content-Type'));
  const entries = headers.map(([name, text]) => `${quote(name)}: ${quote(text)}`).join(', ');
  return [
    'import requests',
    '',
    'response = requests.post(',
    `    ${quote(request.url)},`,
    ...(headers.length > 0 ? [`    headers={${entries}},`] : []),
    ...(body === null ? [] : [`    ${body},`]),
    ...(request.isStream ? ['    stream=True,'] : []),
    ')',
    ...readingOf(request),
  ].join('\n');
}

function readingOf({ isStream }: CallRequest): string[] {
  if (!isStream) return ['print(response.status_code, response.text)'];
  return ['for line in response.iter_lines():', '    print(line.decode())'];
}

function bodyOf(body: CallBody): string | null {
  switch (body.kind) {
    case 'none':
      return null;
    case 'text':
      return textOf(body.text);
    case 'file':
      return `data=open(${quote(body.file.name)}, "rb")`;
    case 'form': {
      const { name, type } = body.file;
      const file = `(${quote(name)}, open(${quote(name)}, "rb"), ${quote(type)})`;
      return `files={${quote(body.field)}: ${file}}`;
    }
  }
}

const STRING_OR_WORD = /"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g;
const WORDS: Readonly<Record<string, string>> = { true: 'True', false: 'False', null: 'None' };

/** JSON is a Python literal but for three words and a few escapes; numbers stay as they are written. */
function textOf(text: string): string {
  if (readJson(text).node === null) return `data=${quote(text)}.encode()`;
  const literal = text
    .trim()
    .replace(STRING_OR_WORD, (token) => WORDS[token] ?? quote(JSON.parse(token) as string));
  return `json=${literal.replaceAll('\n', '\n    ')}`;
}

/** JSON's escapes are Python's, but for halves of surrogate pairs, which no text that was sent has. */
function quote(text: string): string {
  return JSON.stringify(text);
}
