/** Forms and text, for apps that ask for them; others get such bodies read as JSON. */
import { ServeError } from '../../protocol/errors.js';
import { collectFields } from './fields.js';
import { paramsOf } from './header-params.js';

/** Every value is text; a name that comes again gets an array. Escapes that are none stay as they are. */
export function readForm(body: Buffer): Record<string, string | string[]> {
  return collectFields(new URLSearchParams(body.toString()));
}

/** In the charset that the type names, else UTF-8. @throws SERVE_BAD_BODY */
export function readText(body: Buffer, contentType: string): string {
  const charset = paramsOf(contentType).params.get('charset') ?? 'utf-8';
  try {
    return new TextDecoder(charset, { fatal: true }).decode(body);
  } catch (cause) {
    throw new ServeError(
      'SERVE_BAD_BODY',
      `The body is not text in ${JSON.stringify(charset.slice(0, 40))}.`,
      {
        cause,
      },
    );
  }
}
