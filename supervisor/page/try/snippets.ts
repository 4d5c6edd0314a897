/** A call as the page sends it, and as code for other programs: curl in a POSIX shell, fetch, and Python with requests. */
import { useState } from 'preact/hooks';
import { KEY_HEADER } from '../live/key.js';
import { CopyButton, segments } from '../parts/controls.js';
import { html, h, type VNode, panel } from '../parts/html.js';
import { readJson } from '../parts/json-text.js';

/** A file is what a request says of it; its type is empty if it is unknown. `form`: a multipart form with the file as this field. */
export type CallBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly name: string; readonly type: string }
  | { readonly kind: 'form'; readonly field: string; readonly name: string; readonly type: string };

export interface CallRequest {
  /** Absolute. */
  readonly url: string;
  /** Without the key, and without the type of a form, which has a boundary in it. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: CallBody;
  readonly needsKey: boolean;
  /** Whether the answer may come in pieces. */
  readonly isStream: boolean;
}

const LANGUAGES = { curl: curlOf, fetch: fetchOf, Python: pythonOf } as const;
type Language = keyof typeof LANGUAGES;
const LANGUAGE_NAMES = (Object.keys(LANGUAGES) as Language[]).map((name) => [name, name] as const);

/** Longer bodies make no readable snippet: it reads them from a file. */
const MAX_SHOWN_TEXT = 8_000;
const INPUT_FILE = 'input.json';

/** The call for other programs. The key in it is a placeholder. */
export function SnippetsView({ request }: { readonly request: CallRequest }): VNode {
  const [language, setLanguage] = useState<Language>('curl');
  const written = forSnippets(request);
  const text = LANGUAGES[language](written);
  const beside = [
    segments('Language', language, LANGUAGE_NAMES, setLanguage),
    h(CopyButton, { text, label: `the call for ${language}` }),
  ];
  const content = html`
    ${written !== request && html`<p class="muted">The input is long: save it as ${INPUT_FILE} first.</p>`}
    <pre tabindex="0" aria-label=${`The call for ${language}`}>${text}</pre>
  `;
  return panel('code', 'The same call as code', 'snippets', beside, content);
}

/** The request as snippets write it. */
export function forSnippets(request: CallRequest): CallRequest {
  if (request.body.kind !== 'text' || request.body.text.length <= MAX_SHOWN_TEXT) return request;
  return { ...request, body: { kind: 'file', name: INPUT_FILE, type: 'application/json' } };
}

/** Stands for the key in everything that is copied. */
export const KEY_PLACEHOLDER = 'YOUR_API_KEY';

function shownHeaders({ headers, needsKey }: CallRequest): CallRequest['headers'] {
  return needsKey ? [...headers, [KEY_HEADER, KEY_PLACEHOLDER]] : headers;
}

export function curlOf(request: CallRequest): string {
  const parts = [
    `curl ${request.isStream ? '-N ' : ''}${shellWord(request.url)}`,
    ...shownHeaders(request).map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`),
    curlBody(request.body),
  ];
  return parts.join(' \\\n  ');
}

function curlBody(body: CallBody): string {
  switch (body.kind) {
    case 'none':
      return '-X POST';
    case 'text':
      return `${body.text.startsWith('@') ? '--data-raw' : '-d'} ${shellWord(body.text)}`;
    case 'file':
      return `--data-binary ${shellWord(`@${body.name}`)}`;
    case 'form': {
      const { field, name, type } = body;
      // curl reads a quoted name until the next quote, so that it may hold a comma or a semicolon.
      const path = /[",;\\]/.test(name) ? `"${name.replace(/["\\]/g, String.raw`\$&`)}"` : name;
      return `-F ${shellWord(`${field}=@${path}${type === '' ? '' : `;type=${type}`}`)}`;
    }
  }
}

/** Between single quotes a shell reads everything as it is, but the quote itself. */
function shellWord(text: string): string {
  return /^[\w@%+:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** For Node, and without files also for a page. */
export function fetchOf(request: CallRequest): string {
  const { before, value } = fetchBody(request.body);
  const headers = shownHeaders(request).map(([name, text]) => `    ${jsText(name)}: ${jsText(text)},`);
  const reading = request.isStream
    ? ['for await (const text of response.body.pipeThrough(new TextDecoderStream()))', '  console.log(text);']
    : ['console.log(response.status, await response.text());'];
  return [
    ...before,
    `const response = await fetch(${jsText(request.url)}, {`,
    `  method: 'POST',`,
    ...(headers.length > 0 ? ['  headers: {', ...headers, '  },'] : []),
    ...(value === null ? [] : [`  body: ${value},`]),
    '});',
    ...reading,
  ].join('\n');
}

const READ_FILE = `import { readFile } from 'node:fs/promises';`;

function fetchBody(body: CallBody): { readonly before: readonly string[]; readonly value: string | null } {
  switch (body.kind) {
    case 'none':
      return { before: [], value: null };
    case 'text':
      return { before: [], value: jsJson(body.text) };
    case 'file':
      return { before: [READ_FILE, ''], value: `await readFile(${jsText(body.name)})` };
    case 'form': {
      const { field, name, type } = body;
      const blob = `new Blob([await readFile(${jsText(name)})], { type: ${jsText(type)} })`;
      const append = `form.append(${jsText(field)}, ${blob}, ${jsText(name)});`;
      return { before: [READ_FILE, '', 'const form = new FormData();', append], value: 'form' };
    }
  }
}

/** As a literal where JavaScript reads it as JSON does: it rounds long numbers, and __proto__ is no key for it. */
function jsJson(text: string): string {
  const isLiteral = readJson(text).node !== null && !/\d{16}|__proto__/.test(text);
  return isLiteral ? `JSON.stringify(${text.trim().replaceAll('\n', '\n  ')})` : jsText(text);
}

function jsText(text: string): string {
  const inside = JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(String.raw`\"`, '"')
    .replaceAll("'", String.raw`\'`);
  return `'${inside}'`;
}

export function pythonOf(request: CallRequest): string {
  const body = pythonBody(request.body);
  // `json=` sends its type itself.
  const isTypeSent = body.startsWith('json=');
  const headers = shownHeaders(request).filter(([name]) => !(isTypeSent && name === 'Content-Type'));
  const entries = headers.map(([name, text]) => `${pyText(name)}: ${pyText(text)}`).join(', ');
  const reading = request.isStream
    ? ['for line in response.iter_lines():', '    print(line.decode())']
    : ['print(response.status_code, response.text)'];
  return [
    'import requests',
    '',
    'response = requests.post(',
    `    ${pyText(request.url)},`,
    ...(headers.length > 0 ? [`    headers={${entries}},`] : []),
    ...(body === '' ? [] : [`    ${body},`]),
    ...(request.isStream ? ['    stream=True,'] : []),
    ')',
    ...reading,
  ].join('\n');
}

function pythonBody(body: CallBody): string {
  switch (body.kind) {
    case 'none':
      return '';
    case 'text':
      return pythonJson(body.text);
    case 'file':
      return `data=open(${pyText(body.name)}, "rb")`;
    case 'form': {
      const { field, name, type } = body;
      return `files={${pyText(field)}: (${pyText(name)}, open(${pyText(name)}, "rb"), ${pyText(type)})}`;
    }
  }
}

const STRING_OR_WORD = /"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g;
const WORDS: Readonly<Record<string, string>> = { true: 'True', false: 'False', null: 'None' };

/** JSON is a Python literal but for three words and a few escapes; numbers stay as they are written. */
function pythonJson(text: string): string {
  if (readJson(text).node === null) return `data=${pyText(text)}.encode()`;
  const literal = text
    .trim()
    .replace(STRING_OR_WORD, (token) => WORDS[token] ?? pyText(JSON.parse(token) as string));
  return `json=${literal.replaceAll('\n', '\n    ')}`;
}

/** JSON's escapes are Python's, but for halves of surrogate pairs, which no text that was sent has. */
function pyText(text: string): string {
  return JSON.stringify(text);
}
