/** `GET /openapi.json`: everything that the main listener answers now, as OpenAPI 3.1. Each dialect describes itself. */
import { houseFailure } from '../answer/house-error.js';
import type { WriteAnswer } from '../answer/koa-answers.js';
import { openApiDocument } from '../openapi/document.js';
import { HOUSE_ERROR } from '../openapi/errors.js';
import { operationsOf } from '../openapi/operation.js';
import type { RequestContext, Backend } from '../request/request-context.js';
import type { ServeError } from '../../../protocol/errors.js';
import type { Dialect } from './dialect.js';
import paths from './openapi.json' with { type: 'json' };

const PATH = '/openapi.json';
const METHODS = 'GET, HEAD';
const OPERATIONS = operationsOf(paths);

/** The facts that can change while a server runs: its models, and what their apps have told of themselves. */
function describedOf({ models }: Backend): unknown[] {
  const all = models.describe();
  return [
    models.default,
    ...all.flatMap(({ model, isDefault, isLeaving }) => [
      model,
      isDefault,
      isLeaving,
      model.info,
      model.routes,
    ]),
  ];
}

function isSame(before: readonly unknown[], now: readonly unknown[]): boolean {
  return before.length === now.length && before.every((one, i) => one === now[i]);
}

/** The document is made once per change of the models. `others`: the other dialects of the listener, in order of precedence. Other methods of this path are the app's. */
export function openApiDialect(others: readonly Dialect[]): Dialect {
  let known: { readonly of: readonly unknown[]; readonly bytes: Buffer } | null = null;
  const write: WriteAnswer = (ctx, context) => {
    const of = describedOf(context.backend);
    if (known === null || !isSame(known.of, of))
      known = { of, bytes: Buffer.from(JSON.stringify(documentOf(context))) };
    ctx.type = 'application/json';
    ctx.body = known.bytes;
  };
  const documentOf = (context: RequestContext): object => {
    const { backend, headerNames } = context;
    const { models, keys, management } = backend;
    const described = [dialect, ...others].map(({ describe, errorBody = null, fail }) => ({
      operations: describe(backend),
      errorBody,
      statusOf: (error: ServeError) => fail(error, '', context).status,
    }));
    return openApiDocument(models.default?.spec.name ?? 'banana-serve', described, {
      headers: headerNames.keys,
      toCall: keys.required,
      toManage: management.keys.required,
    });
  };
  const dialect: Dialect = {
    name: 'openapi',
    paths: new Map([[PATH, METHODS]]),
    hasOnlyPages: true,
    claim: ({ path }) =>
      path === PATH ? { auth: 'call', counts: false, methods: METHODS, act: { write } } : null,
    describe: () => OPERATIONS,
    errorBody: HOUSE_ERROR,
    fail: houseFailure,
  };
  return dialect;
}
