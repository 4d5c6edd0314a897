/** Writes a call for curl, in a POSIX shell. */
import { shownHeaders, type CallBody, type CallRequest, type NamedFile } from './call-request.js';

export function curlOf(request: CallRequest): string {
  const parts = [
    `curl ${request.isStream ? '-N ' : ''}${quote(request.url)}`,
    ...shownHeaders(request).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    bodyOf(request.body),
  ];
  return parts.join(' \\\n  ');
}

function bodyOf(body: CallBody): string {
  switch (body.kind) {
    case 'none':
      return '-X POST';
    case 'text':
      return `${body.text.startsWith('@') ? '--data-raw' : '-d'} ${quote(body.text)}`;
    case 'file':
      return `--data-binary ${quote(`@${body.file.name}`)}`;
    case 'form':
      return `-F ${quote(`${body.field}=@${formPath(body.file)}`)}`;
  }
}

/** curl reads a quoted name until the next quote, so that it may hold a comma or a semicolon. */
function formPath({ name, type }: NamedFile): string {
  const path = /[",;\\]/.test(name) ? `"${name.replace(/["\\]/g, String.raw`\$&`)}"` : name;
  return type === '' ? path : `${path};type=${type}`;
}

/** Between single quotes a shell reads everything as it is, but the quote itself. */
function quote(text: string): string {
  return /^[\w@%+:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
