/** Encodes and decodes the description of an app and its routes in a `loaded` message. */
import { Fields, malformed } from './fields.js';
import { MAX_CONCURRENCY, ROUTE_INPUTS, ROUTE_KINDS, type LoadedInfo, type Route } from './messages.js';
import { readSignature } from './signature-fields.js';

export function loadedField(info: LoadedInfo): unknown {
  return { ...info, routes: info.routes.map(routeField) };
}

/** @throws SERVE_PROTOCOL */
export function readLoaded(info: Record<string, unknown>): LoadedInfo {
  const { routes, modelOptions, example, shutdown, signature, platform, api, concurrency } = info;
  if (!Array.isArray(routes)) throw malformed('loaded.routes is not a list');
  return {
    routes: routes.map(readRoute),
    modelOptions: new Fields([modelOptions ?? {}]).object(0),
    example: new Fields([example ?? '']).string(0),
    ...(shutdown === undefined ? {} : { shutdown: new Fields([shutdown]).boolean(0) }),
    ...(signature === undefined ? {} : { signature: readSignature(signature) }),
    ...(platform === undefined ? {} : { platform: new Fields([platform]).string(0) }),
    ...(api === undefined ? {} : { api: new Fields([api]).string(0) }),
    ...(concurrency === undefined ? {} : { concurrency: readConcurrency(concurrency) }),
  };
}

function readConcurrency(given: unknown): number {
  const concurrency = new Fields([given]).positive(0);
  if (concurrency <= MAX_CONCURRENCY) return concurrency;
  throw malformed(`loaded.concurrency is ${concurrency}; at most ${MAX_CONCURRENCY} is allowed`);
}

function routeField(route: Route): unknown {
  const { attempts, ...others } = route;
  const { path, kind, input, webhook, maxBatch } = others;
  if (attempts > 1) return route;
  const isPlain = kind === 'handler' && input === 'any' && webhook === '' && maxBatch === 1;
  return isPlain ? path : others;
}

/** A bare path stands for a handler that takes any body, one call at a time. */
function readRoute(route: unknown): Route {
  if (typeof route === 'string') return readRoute({ path: route });
  const given = new Fields([route]).object(0);
  const { path, kind = 'handler', input = 'any', webhook = '', maxBatch = 1, attempts = 1 } = given;
  const fields = new Fields([path, kind, input, webhook, maxBatch, attempts]);
  return {
    path: fields.string(0),
    kind: fields.oneOf(1, ROUTE_KINDS, 'a kind of route'),
    input: fields.oneOf(2, ROUTE_INPUTS, 'an input of a route'),
    webhook: fields.string(3),
    maxBatch: fields.positive(4),
    attempts: fields.positive(5),
  };
}
