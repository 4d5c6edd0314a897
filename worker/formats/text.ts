/** Text bodies, for apps that ask for them; for others such bodies are read as JSON. */
import { textIn } from '../../protocol/text/charsets.js';
import { badBody } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import type { InputFormat } from './body-format.js';
import { paramsOf } from '../../protocol/text/headers.js';

function charsetOf(contentType: string): string {
  try {
    return paramsOf(contentType).params.get('charset') ?? 'utf-8';
  } catch (cause) {
    const reason = asSentence((cause as Error).message);
    throw badBody(`The content type cannot be read: ${reason}`, cause);
  }
}

export const FORMAT: InputFormat = {
  itemType: 'text/plain',

  /** Decodes the body in the charset of its content type, otherwise as UTF-8. */
  read(body, { contentType }) {
    const charset = charsetOf(contentType);
    try {
      return textIn(charset, body, { fatal: true });
    } catch (cause) {
      throw badBody(`The body is not text in ${JSON.stringify(charset.slice(0, 40))}.`, cause);
    }
  },
};
