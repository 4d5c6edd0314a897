/** `GET /metrics`, for Prometheus: on the main listener with the key of calls, or on a listener of its own, without one. */
import { ServeError } from '../../../protocol/errors.js';
import type { RequestContext } from '../request/request-context.js';
import { houseFailure } from '../answer/house-error.js';
import { HOUSE_ERROR } from '../openapi/errors.js';
import { operationsOf } from '../openapi/operation.js';
import type { MetricsPage } from '../request/backend.js';
import type { DefaultDialect, Operation } from './dialect.js';
import paths from './metrics.json' with { type: 'json' };

export const METRICS_PATH = '/metrics';
const METHODS = 'GET, HEAD, OPTIONS';
const OPERATIONS = operationsOf(paths);

/** Builds the dialect of `/metrics`. On the main listener the app may have a route of this path for other methods. */
export function metricsDialect(page: MetricsPage): DefaultDialect {
  const scrape: Operation['act'] = {
    write: async (ctx, { request }) => {
      const { contentType, text } = await page.scrape(wantedNames(request.url ?? ''));
      ctx.set('Content-Type', contentType);
      ctx.body = text;
    },
  };
  return {
    name: 'metrics',
    paths: new Map([[METRICS_PATH, METHODS]]),
    claim: (context) => {
      const { method } = context.request;
      if (context.listener === 'metrics' && method === 'OPTIONS') return operation(context, DESCRIBE);
      if (context.path !== METRICS_PATH || context.isWebSocket) return null;
      return method === 'GET' || method === 'HEAD' ? operation(context, scrape) : null;
    },
    unclaimed: (context) => operation(context, { refuse: notFound(context) }),
    fail: houseFailure,
    errorBody: HOUSE_ERROR,
    describe: () => OPERATIONS,
  };
}

const DESCRIBE: Operation['act'] = {
  write: (ctx) => {
    ctx.status = 200;
    ctx.set('Allow', METHODS);
    ctx.body = '';
  },
};

function operation({ listener }: RequestContext, act: Operation['act']): Operation {
  return { auth: listener === 'metrics' ? 'none' : 'call', counts: false, methods: METHODS, act };
}

function notFound({ path, request: { method } }: RequestContext): ServeError {
  return path === METRICS_PATH
    ? new ServeError('SERVE_METHOD_NOT_ALLOWED', `${METRICS_PATH} takes ${METHODS}, not ${method}.`)
    : new ServeError('SERVE_NOT_FOUND', `This port answers only GET ${METRICS_PATH}.`);
}

/** Returns the metrics requested by `?name[]=`, which may be repeated. */
function wantedNames(url: string): string[] {
  const question = url.indexOf('?');
  return question < 0 ? [] : new URLSearchParams(url.slice(question + 1)).getAll('name[]');
}
