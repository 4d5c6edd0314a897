/** A handler's whole answer to bytes: by what it is, then by what the client accepts. */
import type { Call } from '../../protocol/messages.js';
import { asksFor } from './accept.js';
import { jsonText } from './json-encoding.js';
import { utf8InScratch } from './scratch.js';

export interface EncodedOutput {
  readonly contentType: string;
  /** JSON lies in memory that the next answer uses again: it must have left the process by then. */
  readonly body: Uint8Array;
}

/** May return a promise, for formats loaded on first use. @throws SERVE_OUTPUT_INVALID (or rejects with it) */
export function encodeOutput(value: unknown, call: Call): EncodedOutput | Promise<EncodedOutput> {
  if (value instanceof Uint8Array) return { contentType: 'application/octet-stream', body: value };
  if (value instanceof ArrayBuffer) {
    return { contentType: 'application/octet-stream', body: new Uint8Array(value) };
  }
  if (asksFor(call.accept, 'application/msgpack')) {
    return import('../formats/msgpack.js').then(({ writeMsgpack }) => ({
      contentType: 'application/msgpack',
      body: writeMsgpack(value),
    }));
  }
  return { contentType: 'application/json', body: utf8InScratch(jsonText(value)) };
}
