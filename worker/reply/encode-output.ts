/** A handler's whole answer to bytes: by what it is, then by what the client accepts. */
import { Blob } from 'node:buffer';
import { escapeNonAscii } from '../../protocol/ascii-json.js';
import type { Call } from '../../protocol/messages.js';
import { asksFor } from './accept.js';
import { jsonText } from './json-encoding.js';
import { utf8InScratch } from './scratch.js';

export interface EncodedOutput {
  readonly contentType: string;
  /** JSON lies in memory that the next answer uses again: it must have left the process by then. */
  readonly body: Uint8Array;
}

/** May return a promise, for a Blob and for formats loaded on first use. @throws SERVE_OUTPUT_INVALID (or rejects with it) */
export function encodeOutput(value: unknown, call: Call): EncodedOutput | Promise<EncodedOutput> {
  if (value instanceof Uint8Array) return { contentType: 'application/octet-stream', body: value };
  if (value instanceof ArrayBuffer) {
    return { contentType: 'application/octet-stream', body: new Uint8Array(value) };
  }
  if (value instanceof Blob) return blobOutput(value);
  if (asksFor(call.accept, 'application/msgpack')) {
    return import('../formats/msgpack.js').then(({ writeMsgpack }) => ({
      contentType: 'application/msgpack',
      body: writeMsgpack(value),
    }));
  }
  return encodeJsonOutput(value, call);
}

async function blobOutput(blob: Blob): Promise<EncodedOutput> {
  const body = new Uint8Array(await blob.arrayBuffer());
  return { contentType: blob.type || 'application/octet-stream', body };
}

/** @throws SERVE_OUTPUT_INVALID */
export function encodeJsonOutput(value: unknown, { headers }: Call): EncodedOutput {
  const text = jsonText(value);
  const body = utf8InScratch(text);
  const needsAscii = body.length > text.length && BANANA_HEADER.test(headers);
  return { contentType: 'application/json', body: needsAscii ? utf8InScratch(escapeNonAscii(text)) : body };
}

/** The header by which a Banana client is known. It decodes an answer chunk by chunk, and breaks a character that two chunks share. */
const BANANA_HEADER = /(?:^|\n)x-banana-(?:api-key|request-id)\n/i;
