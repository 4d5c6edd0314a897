/**
 * Describes the paths of Multi Model Server: in its own words, OpenAPI 3.0.1, of which each listener answers its own paths
 * (`description.json`); and in OpenAPI 3.1 for the document of all dialects, with the calls of every model that there is.
 */
import type { Models } from '../../../models/models.js';
import { CALL_FAILURES, NO_MODEL, type NamedSchema } from '../../openapi/errors.js';
import {
  describesClientsOf,
  operationIdOf,
  operationsOf,
  pathsOf,
  encodedPath,
  type ApiPaths,
  type DescribedOperation,
  type DescribedServer,
} from '../../openapi/operation.js';
import { ASSUMED, callParts, describedRoutes } from '../../openapi/routes.js';
import { BYTES } from '../../openapi/schemas.js';
import file from './description.json' with { type: 'json' };

/** The body of an error in the document of all dialects. */
export const ERROR_BODY: NamedSchema = { name: 'MmsError', schema: file.parts.errorBody };

/** The paths of a listener with calls and management. */
export const WHOLE_API: ApiPaths = pathsOf(file);
export const INFERENCE_API = pathsWhere((path) => !manages(path));
export const MANAGEMENT_API = pathsWhere((path) => path === '/' || manages(path));

function pathsWhere(isThere: (path: string) => boolean): ApiPaths {
  return Object.fromEntries(Object.entries(WHOLE_API).filter(([path]) => isThere(path)));
}

function manages(path: string): boolean {
  return /^\/models(?:\/|$)/.test(path) && !path.endsWith('/invoke');
}

/** Returns the whole description, to be sent as JSON. */
export function describeApi(paths: ApiPaths): object {
  const { openapi, info } = file;
  return { openapi, info, paths };
}

/** Describes the calls of one model; empty `version`: the default version. */
export function modelApi(name: string, version: string): ApiPaths {
  const path = ['predictions', name, version].filter((segment) => segment !== '').map(encodeURIComponent);
  const { parameters: _, ...call } = WHOLE_API['/predictions/{model_name}']!['post']!;
  return { [`/${path.join('/')}`]: { post: { ...call, description: `Calls the model ${name}.` } } };
}

const NAME = '{model_name}';
const VERSION = '{model_version}';

/** Describes the calls of every model, if an app is written for such clients, or models come from a store. */
export function* describeInference(server: DescribedServer): Generator<DescribedOperation> {
  const { isMmsMode, models, options } = server;
  const hasStore = isMmsMode || options.modelStore !== null || options.models !== null;
  if (!hasStore && !describesClientsOf(server, 'mms')) return;
  const named = namedModels(models);
  for (const operation of operationsOf({ paths: INFERENCE_API })) {
    const { path, method } = operation;
    if (path === '/invocations') yield* named.length === 0 ? [] : [invocations(operation, named)];
    else if (path.includes(NAME)) yield* callsOf(operation, named);
    else if (path === '/ping') yield { ...operation, auth: 'none' };
    else if (path !== '/' || isMmsMode) yield { ...operation, operationId: `${method}ApiDescription` };
  }
}

/** Describes the management API where it shares the listener, whose `/` belongs to the others. */
export function describeManagement(): DescribedOperation[] {
  return operationsOf({ paths: MANAGEMENT_API })
    .filter(({ path }) => path !== '/')
    .map((operation) => ({ ...operation, auth: 'management' }));
}

/** `route`: that of a call that names only the model; null if there is none, or several. */
function namedModels(models: Models) {
  return models
    .describe()
    .filter(({ isLeaving }) => !isLeaving)
    .map(({ model, isDefault }) => {
      const { name, version } = model.spec;
      return { name, version, isDefaultVersion: isDefault, route: describedRoutes(model).main };
    });
}

/** The operations of one path, for each model; for each version if the path has one. */
function callsOf(
  { parameters: _, ...operation }: DescribedOperation,
  named: ReturnType<typeof namedModels>,
): DescribedOperation[] {
  const { path, method, description, responses } = operation;
  const isVersioned = path.includes(VERSION);
  const family = path.split('/').findLast((segment) => segment !== '' && !segment.startsWith('{')) ?? '';
  const meant = isVersioned ? named : named.filter(({ isDefaultVersion }) => isDefaultVersion);
  return meant.flatMap(({ name, version, route }): DescribedOperation[] => {
    const versioned = isVersioned ? `Version${version}` : '';
    const common = {
      ...operation,
      path: encodedPath(path.replace(NAME, name).replace(VERSION, version)),
      operationId: operationIdOf(method === 'options' ? 'describe' : 'call', name, versioned, family),
      description: `${description} The model is ${name}.`,
    };
    if (method === 'options') return [{ ...common, responses: { 200: responses[200]! }, failures: NO_MODEL }];
    return route === null ? [] : [{ ...common, ...callParts(route) }];
  });
}

/** Only the query or the body says which model is called, so its input is known if there is one. */
function invocations(
  operation: DescribedOperation,
  named: ReturnType<typeof namedModels>,
): DescribedOperation {
  const routes = named.filter(({ isDefaultVersion }) => isDefaultVersion).map(({ route }) => route);
  const {
    requestBody,
    responses,
    schemas = {},
  } = callParts((routes.length === 1 ? routes[0] : null) ?? ASSUMED);
  const content = { ...requestBody.content, 'multipart/form-data': { schema: BYTES } };
  return {
    ...operation,
    operationId: 'callInvocations',
    requestBody: { ...requestBody, content },
    responses,
    failures: CALL_FAILURES,
    schemas,
  };
}
