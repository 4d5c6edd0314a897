/** Documents in the order of their relevance, in the form of Cohere's API, which Jina's and others' have too. */
import { badField, badOutput } from '../../protocol/errors.js';
import type { Call } from '../../protocol/wire/messages.js';
import { kindOf, shown, type Fields } from '../../protocol/values/tensor.js';
import type { DialectFormat, Exchange } from './body-format.js';
import { writeJson } from './json.js';
import { fieldsOf, numbersOf, resultOf, wholeNumber } from './task-bodies.js';

function exchange(call: Call): Exchange {
  let documents: readonly string[] = [];
  let most: number | undefined;
  let returnsDocuments = false;
  return {
    read(body) {
      const fields = fieldsOf(body);
      const { query, return_documents: given } = fields;
      const returned = given ?? false;
      if (typeof query !== 'string') throw badField('query', `"query" must be a text, not ${kindOf(query)}.`);
      if (typeof returned !== 'boolean')
        throw badField(
          'return_documents',
          `"return_documents" must be true or false, not ${kindOf(returned)}.`,
        );
      documents = documentsOf(fields);
      most = wholeNumber(fields, 'top_n');
      returnsDocuments = returned;
      return { query, documents };
    },

    write: (answer) =>
      resultOf(answer, call, 'scores', (value, model, tokens) => {
        const { data, shape } = numbersOf(value, 'scores');
        const count = documents.length;
        if (shape.length !== 1 || shape[0] !== count)
          throw badOutput(
            `The app returned scores of the shape ${shown(shape)} for ${count} documents; it must return one number for each.`,
          );
        const results = Array.from(data, (score, index) => ({ index, relevance_score: score }))
          .sort((one, other) => other.relevance_score - one.relevance_score)
          .slice(0, most)
          .map((one) => (returnsDocuments ? { ...one, document: { text: documents[one.index] } } : one));
        const usage = tokens === undefined ? {} : { usage: { total_tokens: tokens } };
        return writeJson({ id: call.requestId, model, results, ...usage }, call);
      }),
  };
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
  exchange,
};
