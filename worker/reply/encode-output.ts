/** Encodes a handler's whole answer: by its type, then by the client's Accept header. */
import { Blob } from 'node:buffer';
import type { Call } from '../../protocol/wire/messages.js';
import type { EncodedOutput } from '../formats/body-format.js';
import { writeBytes } from '../formats/bytes.js';
import { MSGPACK_TYPES } from '../formats/index.js';
import { writeJson } from '../formats/json.js';
import { checkedHeaders } from '../formats/reply.js';

/**
 * Returns a promise for a Blob and for formats that are loaded on first use. @throws SERVE_OUTPUT_INVALID (or rejects
 * with it)
 */
export function encodeOutput(value: unknown, call: Call): EncodedOutput | Promise<EncodedOutput> {
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) return writeBytes(value);
  if (value instanceof Blob) return blobOutput(value);
  if (call.accept !== ANY_TYPE)
    for (const type of MSGPACK_TYPES) if (asksFor(call.accept, type)) return msgpackOutput(value, type);
  return writeJson(value, call);
}

async function msgpackOutput(value: unknown, contentType: string): Promise<EncodedOutput> {
  const { writeMsgpack } = await import('../formats/msgpack.js');
  return { contentType, body: writeMsgpack(value) };
}

/** The header of most clients, which names no type. */
const ANY_TYPE = '*/*';

async function blobOutput(blob: Blob): Promise<EncodedOutput> {
  const contentType = blob.type || 'application/octet-stream';
  checkedHeaders('', contentType);
  return { contentType, body: new Uint8Array(await blob.arrayBuffer()) };
}

/** Whether the client's Accept header lists `type` explicitly, with a quality above 0 and not below that of `application/json`. */
export function asksFor(accept: string, type: string): boolean {
  if (!accept.toLowerCase().includes(type)) return false;
  const wanted = qualityOf(accept, type);
  return wanted > 0 && wanted >= qualityOf(accept, 'application/json');
}

function qualityOf(accept: string, type: string): number {
  for (const range of accept.split(',')) {
    const [name, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    if (name !== type) continue;
    const q = parameters.find((parameter) => parameter.startsWith('q='));
    const quality = q === undefined ? 1 : Number(q.slice(2));
    return Number.isFinite(quality) ? quality : 0;
  }
  return 0;
}
