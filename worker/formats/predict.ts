/** Calls of KServe's first protocol and of Vertex AI: `instances`, each an input of the app, become `predictions`. */
import { badBody } from '../../protocol/errors.js';
import type { CallParams } from '../api/types.js';
import type { DialectFormat, Exchange } from './body-format.js';
import { Inputs } from './inputs.js';
import { checkedParameters, parametersOf } from './open-inference/request.js';
import { Reply } from './reply.js';
import { fieldsOf } from './task-bodies.js';

const FIELD = 'instances';

/** `most`: instances that the app takes together. */
function exchangeOf(most: number): Exchange {
  let params: CallParams = {};
  return {
    get params() {
      return params;
    },

    read(body) {
      const fields = fieldsOf(body);
      const { [FIELD]: instances } = fields;
      if (!Array.isArray(instances) || instances.length === 0)
        throw badBody(`"${FIELD}" must be a list of inputs that is not empty.`);
      params = checkedParameters(parametersOf(fields, (text) => badBody(`The request's ${text}.`)));
      return new Inputs(FIELD, instances, most);
    },

    /** Gets the values of all answers as one. */
    write({ head, body }) {
      const { value: predictions } = body as { readonly value: unknown };
      return new Reply(
        { ...head, contentType: 'application/json' },
        { kind: 'json', value: { predictions } },
      );
    },
  };
}

export const FORMAT: DialectFormat = {
  itemRefusal:
    'A custom service of Multi Model Server takes no instances; call it at /predictions/{model_name}.',
  exchange: ({ dialectParams }) => exchangeOf(Number(new URLSearchParams(dialectParams).get('batch') ?? 1)),
};
