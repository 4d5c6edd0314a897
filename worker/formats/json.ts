/** JSON bodies. */
import { isUtf8 } from 'node:buffer';
import { ServeError } from '../../protocol/errors.js';

/** Reads a JSON body (UTF-8, an optional byte order mark). @throws SERVE_BAD_BODY */
export function readJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw new ServeError('SERVE_BAD_BODY', 'The body is not valid JSON: it is not UTF-8.');
  const text = body.toString('utf8');
  try {
    return JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  } catch (cause) {
    throw new ServeError('SERVE_BAD_BODY', `The body is not valid JSON: ${(cause as Error).message}`, {
      cause,
    });
  }
}
