/**
 * The models of the server at `/v1/models`, which is a path of OpenAI's API and of KServe's first protocol: the answers have
 * the fields of both, because clients ignore what they do not know.
 */
import { ServeError } from '../../../../protocol/errors.js';
import type { WriteAnswer } from '../../answer/koa-answers.js';
import { modelNames } from '../../call/find-model.js';
import { pathTable } from '../../call/path-table.js';
import { operationsOf } from '../../openapi/operation.js';
import { wrongMethod, type Dialect } from '../dialect.js';
import file from './paths.json' with { type: 'json' };

const METHODS = 'GET, HEAD';
const LIST = '/v1/models';
const ONE = '/v1/models/{model}';
const OPERATIONS = operationsOf(file);

const find = pathTable({ [LIST]: null, [ONE]: null });

const STARTED_AT_S = Math.round(Date.now() / 1000 - process.uptime());

function described(name: string): object {
  return { id: name, object: 'model', created: STARTED_AT_S, owned_by: 'banana-serve' };
}

const writeList: WriteAnswer = (ctx, { backend }) => {
  const models = modelNames(backend.models);
  ctx.body = { object: 'list', data: models.map(described), models };
};

/** @throws SERVE_MODEL_NOT_FOUND; SERVE_NOT_READY, which KServe's clients take for "not yet" */
function writeOne(name: string): WriteAnswer {
  return (ctx, { backend }) => {
    const { ready, state } = backend.readiness({ name });
    if (!ready) throw new ServeError('SERVE_NOT_READY', `The model ${name} is ${state}.`, { retryAfterS: 1 });
    ctx.body = { ...described(name), name, ready };
  };
}

export const v1: Omit<Dialect, 'fail'> = {
  name: 'v1',
  paths: new Map([LIST, ONE].map((path) => [path, METHODS])),
  claim(context) {
    const found = find(context.path);
    if (found === null) return null;
    if (!METHODS.split(', ').includes(context.request.method ?? '')) return wrongMethod(context, METHODS);
    const { model } = found.params;
    const write = model === undefined ? writeList : writeOne(model.replaceAll('%2F', '/'));
    return { auth: 'call', counts: false, methods: METHODS, act: { write } };
  },
  describe: ({ models, options: { openapiAll } }) =>
    openapiAll || models.describe().some(({ model }) => model.info?.task !== undefined) ? OPERATIONS : [],
};
