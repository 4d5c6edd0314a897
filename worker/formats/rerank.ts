/** Documents in the order of their relevance, in the form of Cohere's API, which Jina's and others' have too. */
import { badField, ServeError } from '../../protocol/errors.js';
import type { Call } from '../../protocol/wire/messages.js';
import { kindOf, shown } from '../../protocol/values/tensor.js';
import type { DialectFormat, Exchange } from './body-format.js';
import { writeJson } from './json.js';
import { fieldsOf, numbersOf, resultOf, wholeNumber, type Fields } from './task-bodies.js';
import type { Reply } from './reply.js';

class RerankExchange implements Exchange {
  readonly #call: Call;
  #documents: readonly string[] = [];
  #most: number | undefined;
  #returnsDocuments = false;

  constructor(call: Call) {
    this.#call = call;
  }

  read(body: Buffer): object {
    const fields = fieldsOf(body);
    const { query, return_documents: given } = fields;
    const returned = given ?? false;
    if (typeof query !== 'string') throw badField('query', `"query" must be a text, not ${kindOf(query)}.`);
    if (typeof returned !== 'boolean')
      throw badField(
        'return_documents',
        `"return_documents" must be true or false, not ${kindOf(returned)}.`,
      );
    this.#documents = documentsOf(fields);
    this.#most = wholeNumber(fields, 'top_n');
    this.#returnsDocuments = returned;
    return { query, documents: this.#documents };
  }

  write(answer: Reply): Reply {
    const { requestId } = this.#call;
    return resultOf(answer, this.#call, 'scores', (value, { model, tokens }) => {
      const { data, shape } = numbersOf(value, 'scores');
      const count = this.#documents.length;
      if (shape.length !== 1 || shape[0] !== count) throw wrongScores(shape, count);
      const results = Array.from(data, (score, index) => ({ index, relevance_score: score }))
        .sort((one, other) => other.relevance_score - one.relevance_score)
        .slice(0, this.#most)
        .map((result) => (this.#returnsDocuments ? { ...result, document: this.#document(result) } : result));
      const usage = tokens === undefined ? {} : { usage: { total_tokens: tokens } };
      return writeJson({ id: requestId, model, results, ...usage }, this.#call);
    });
  }

  #document({ index }: { readonly index: number }): object {
    return { text: this.#documents[index] };
  }
}

function wrongScores(shape: readonly number[], documents: number): ServeError {
  const message = `The app returned scores of the shape ${shown(shape)} for ${documents} documents; it must return one number for each.`;
  return new ServeError('SERVE_OUTPUT_INVALID', message);
}

/** A document may be an object with a `text`, as Cohere's first clients send them. @throws SERVE_BAD_BODY */
function documentsOf({ documents }: Fields): string[] {
  if (!Array.isArray(documents) || documents.length === 0)
    throw badField('documents', '"documents" must be a list of texts that is not empty.');
  return documents.map((given: unknown, i) => {
    const text: unknown = typeof given === 'object' && given !== null ? (given as Fields)['text'] : given;
    if (typeof text === 'string') return text;
    throw badField('documents', `"documents" must be texts, and number ${i} is ${kindOf(given)}.`);
  });
}

export const FORMAT: DialectFormat = {
  itemRefusal:
    'A custom service of Multi Model Server takes no documents to rank; call it at /predictions/{model_name}.',
  exchange: (call) => new RerankExchange(call),
};
