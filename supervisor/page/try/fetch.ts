/** Writes a call for fetch: in Node, and without files also in a page. */
import { readJson } from '../parts/json-text.js';
import { shownHeaders, type CallBody, type CallRequest } from './call-request.js';

export function fetchOf(request: CallRequest): string {
  const { before, value } = bodyOf(request.body);
  const headers = shownHeaders(request).map(([name, text]) => `    ${quote(name)}: ${quote(text)},`);
  return [
    ...before,
    `const response = await fetch(${quote(request.url)}, {`,
    `  method: 'POST',`,
    ...(headers.length > 0 ? ['  headers: {', ...headers, '  },'] : []),
    ...(value === null ? [] : [`  body: ${value},`]),
    '});',
    ...readingOf(request),
  ].join('\n');
}

function readingOf({ isStream }: CallRequest): string[] {
  if (!isStream) return ['console.log(response.status, await response.text());'];
  return [
    'for await (const text of response.body.pipeThrough(new TextDecoderStream()))',
    '  console.log(text);',
  ];
}

const READ_FILE = `import { readFile } from 'node:fs/promises';`;

function bodyOf(body: CallBody): { readonly before: readonly string[]; readonly value: string | null } {
  switch (body.kind) {
    case 'none':
      return { before: [], value: null };
    case 'text':
      return { before: [], value: textOf(body.text) };
    case 'file':
      return { before: [READ_FILE, ''], value: `await readFile(${quote(body.file.name)})` };
    case 'form': {
      const { name, type } = body.file;
      const blob = `new Blob([await readFile(${quote(name)})], { type: ${quote(type)} })`;
      const append = `form.append(${quote(body.field)}, ${blob}, ${quote(name)});`;
      return { before: [READ_FILE, '', 'const form = new FormData();', append], value: 'form' };
    }
  }
}

/** As a literal where JavaScript reads it as JSON does: it rounds long numbers, and __proto__ is no key for it. */
function textOf(text: string): string {
  const isLiteral = readJson(text).node !== null && !/\d{16}|__proto__/.test(text);
  return isLiteral ? `JSON.stringify(${text.trim().replaceAll('\n', '\n  ')})` : quote(text);
}

function quote(text: string): string {
  const inside = JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(String.raw`\"`, '"')
    .replaceAll("'", String.raw`\'`);
  return `'${inside}'`;
}
