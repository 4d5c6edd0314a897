/** The text of an error that the app has answered itself, for formats that word it in their own way. */
import { isUtf8 } from 'node:buffer';
import { mediaType } from '../../protocol/text/headers.js';
import type { Reply } from './reply.js';

/** Empty for a stream. */
export function errorText({ head, body }: Reply): string {
  if (body.kind === 'stream') return '';
  if (body.kind !== 'bytes') return textOf(body.value);
  if (!isUtf8(body.bytes)) return 'The app refused this call.';
  const text = Buffer.from(body.bytes).toString();
  return mediaType(head.contentType) === 'application/json' ? textOf(parsed(text)) : text;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Returns the message of an error as most apps write one, else all of it. */
function textOf(value: unknown): string {
  const { error = value } = (value ?? {}) as { readonly error?: unknown };
  const { message = error } = (error ?? {}) as { readonly message?: unknown };
  return typeof message === 'string' ? message : JSON.stringify(value) || '';
}
