/**
 * The management API of Multi Model Server: models are registered, described, scaled and unregistered while the server
 * runs. `backend.modelManagement` does all that; this folder has the paths, the parameters and the messages.
 */
import { ServeError } from '../../../../protocol/errors.js';
import type { Models } from '../../../models/models.js';
import type { WriteAnswer } from '../../answer/koa-answers.js';
import { noteModel } from '../../call/find-model.js';
import { maxSmallBody, type RequestContext } from '../../request/request-context.js';
import type { DefaultDialect, Operation } from '../dialect.js';
import { mmsStyleFor, writeMmsJson } from './answer-style.js';
import { MANAGEMENT_API, describeApi, describeManagement } from './describe.js';
import { register, restartWorker, scale, setDefault, unregister } from './management-changes.js';
import { describe, describeAll, list } from './management-views.js';
import { segmentsOf } from './request.js';

/** Takes the place of a version in a path, for all versions. */
const ALL_VERSIONS = 'all';

export const mmsManagement: DefaultDialect = {
  name: 'mms-management',
  paths: new Map(Object.entries(MANAGEMENT_API).map(([path, operations]) => [path, allow(operations)])),
  claim,
  describe: describeManagement,
  unclaimed: () => operation('', { refuse: new ServeError('SERVE_NOT_FOUND') }),
  ...mmsStyleFor(maxSmallBody),
};

/**
 * Claims a request. On a shared listener, a method that this path does not have is left to other dialects: `POST
 * /models/{model}/invoke` is a call.
 */
function claim(context: RequestContext, models: Models): Operation | null {
  const isAlone = context.listener === 'management';
  const segments = segmentsOf(context);
  const methods = segments.length === 0 && !isAlone ? null : methodsOf(segments);
  if (methods === null) return null;
  const write = context.isWebSocket ? undefined : methods[context.request.method ?? ''];
  const [, name, version] = segments;
  if (write !== undefined) {
    const hasVersion = version !== undefined && version !== ALL_VERSIONS;
    if (name !== undefined) noteModel(context, models, hasVersion ? { name, version } : { name });
    return operation(allow(methods), { write });
  }
  return isAlone ? operation(allow(methods), { refuse: new ServeError('SERVE_METHOD_NOT_ALLOWED') }) : null;
}

/** The operations of a path, by method. */
function methodsOf([first, name, version, action, worker = '', verb]: readonly string[]): Readonly<
  Partial<Record<string, WriteAnswer>>
> | null {
  if (first === undefined) return { OPTIONS: (ctx) => writeMmsJson(ctx, 200, describeApi(MANAGEMENT_API)) };
  if (first !== 'models') return null;
  if (name === undefined) return { GET: list, POST: register };
  if (version === ALL_VERSIONS) return { GET: (ctx, context) => describeAll(ctx, context, name) };
  const ref = version === undefined ? { name } : { name, version };
  if (action === 'workers' && verb === 'restart')
    return { PUT: (ctx, context) => restartWorker(ctx, context, ref, worker) };
  return {
    GET: (ctx, context) => describe(ctx, context, ref),
    PUT: (ctx, context) =>
      version !== undefined && action === 'set-default'
        ? setDefault(ctx, context, { name, version })
        : scale(ctx, context, ref),
    DELETE: (ctx, context) => unregister(ctx, context, ref),
  };
}

function operation(methods: string, act: Operation['act']): Operation {
  return { auth: 'management', counts: false, isLogged: true, methods, act };
}

/** The methods as an `Allow` header lists them. */
function allow(methods: object): string {
  return Object.keys(methods)
    .map((method) => method.toUpperCase())
    .join(', ');
}
