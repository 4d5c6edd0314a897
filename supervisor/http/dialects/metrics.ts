/** `GET /metrics`, for Prometheus: on the main listener with the key of calls, or on a listener of its own, without one. */
import { ServeError } from '../../../protocol/errors.js';
import { houseFailure } from '../answer/house-error.js';
import { HOUSE_ERROR } from '../openapi/errors.js';
import { operationsOf } from '../openapi/operation.js';
import type { RequestContext, MetricsPage } from '../request/request-context.js';
import { isRead, queryOf } from '../socket/request-facts.js';
import { methodMistake, writeMethods, type DefaultDialect, type Operation } from './dialect.js';
import paths from './metrics.json' with { type: 'json' };

export const METRICS_PATH = '/metrics';
const METHODS = 'GET, HEAD, OPTIONS';
const OPERATIONS = operationsOf(paths);

/** Builds the dialect of `/metrics`. On the main listener the app may have a route of this path for other methods. */
export function metricsDialect(page: MetricsPage): DefaultDialect {
  const scrape: Operation['act'] = {
    write: async (ctx, context) => {
      const { contentType, text } = await page.scrape(new URLSearchParams(queryOf(context)).getAll('name[]'));
      ctx.set('Content-Type', contentType);
      ctx.body = text;
    },
  };
  return {
    name: 'metrics',
    paths: new Map([[METRICS_PATH, METHODS]]),
    claim: (context) => {
      if (context.listener === 'metrics' && context.request.method === 'OPTIONS')
        return operation(context, { write: writeMethods(METHODS) });
      const isHere = context.path === METRICS_PATH && !context.isWebSocket && isRead(context.request);
      return isHere ? operation(context, scrape) : null;
    },
    unclaimed: (context) =>
      operation(context, {
        refuse:
          context.path === METRICS_PATH
            ? methodMistake(context, METHODS)
            : new ServeError('SERVE_NOT_FOUND', `This port answers only GET ${METRICS_PATH}.`),
      }),
    fail: houseFailure,
    errorBody: HOUSE_ERROR,
    describe: () => OPERATIONS,
  };
}

function operation({ listener }: RequestContext, act: Operation['act']): Operation {
  return { auth: listener === 'metrics' ? 'none' : 'call', counts: false, methods: METHODS, act };
}
