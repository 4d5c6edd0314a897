/**
 * Describes the inference API for OpenAPI 3.1: the pages of its own description (`inference-api.ts`), and its calls for
 * every model that there is.
 */
import type { FullModelRef, Models } from '../../../models/models.js';
import { CALL_FAILURES, NO_MODEL } from '../../openapi/call-failures.js';
import { describesMmsClients } from '../../openapi/described-clients.js';
import { ASSUMED, describedRoutes, type DescribedRoute } from '../../openapi/model-routes.js';
import {
  BYTES,
  writtenPath,
  type DescribedOperation,
  type DescribedServer,
} from '../../openapi/operation.js';
import { operationIdOf } from '../../openapi/operation-id.js';
import { callParts } from '../../openapi/route-operations.js';
import type { ApiMethod, ApiOperation, ApiPaths } from './describe-api.js';
import { INFERENCE_API } from './inference-api.js';

const NAME = '{model_name}';
const VERSION = '{model_version}';
const INVOCATIONS = '/invocations';

export function* describeInference(server: DescribedServer): Generator<DescribedOperation> {
  if (!describesMmsClients(server)) return;
  const { models, isMmsMode } = server;
  const named = namedModels(models);
  for (const { path, method, operation } of operationsOf(INFERENCE_API)) {
    if (path === INVOCATIONS) yield* named.length === 0 ? [] : [invocations(operation, named)];
    else if (path.includes(NAME)) yield* callsOf(path, method, operation, named);
    else if (path !== '/' || isMmsMode) yield pageOf(path, method, operation);
  }
}

/** Describes the management API where it shares the listener, whose `/` belongs to the others. */
export function* describeManagement(api: ApiPaths): Generator<DescribedOperation> {
  for (const { path, method, operation } of operationsOf(api))
    if (path !== '/') yield { ...operation, path, method, auth: 'management' };
}

interface PathOperation {
  readonly path: string;
  readonly method: ApiMethod;
  readonly operation: ApiOperation;
}

function operationsOf(api: ApiPaths): PathOperation[] {
  return Object.entries(api).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method as ApiMethod, operation })),
  );
}

interface NamedModel extends FullModelRef {
  readonly isDefaultVersion: boolean;
  /** The route of a call that names only the model; null if there is none, or several. */
  readonly route: DescribedRoute | null;
}

function namedModels(models: Models): NamedModel[] {
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
  path: string,
  method: ApiMethod,
  { description, deprecated, responses }: ApiOperation,
  named: readonly NamedModel[],
): DescribedOperation[] {
  const meant = path.includes(VERSION) ? named : named.filter(({ isDefaultVersion }) => isDefaultVersion);
  return meant.flatMap(({ name, version, route }): DescribedOperation[] => {
    const family = path.split('/').findLast((segment) => segment !== '' && !segment.startsWith('{')) ?? '';
    const versioned = path.includes(VERSION) ? `Version${version}` : '';
    const common = {
      path: writtenPath(path.replace(NAME, name).replace(VERSION, version)),
      method,
      operationId: operationIdOf(method === 'options' ? 'describe' : 'call', name, versioned, family),
      description: `${description} The model is ${name}.`,
      auth: 'call',
      ...(deprecated !== undefined && { deprecated }),
    } as const;
    if (method === 'options') return [{ ...common, responses: { 200: responses[200]! }, failures: NO_MODEL }];
    return route === null ? [] : [{ ...common, ...callParts(route) }];
  });
}

/** Only the query or the body says which model is called, so its input is known if there is one. */
function invocations(operation: ApiOperation, named: readonly NamedModel[]): DescribedOperation {
  const routes = named.filter(({ isDefaultVersion }) => isDefaultVersion).map(({ route }) => route);
  const { requestBody, responses } = callParts((routes.length === 1 ? routes[0] : null) ?? ASSUMED);
  return {
    ...operation,
    path: INVOCATIONS,
    method: 'post',
    operationId: 'callInvocations',
    auth: 'call',
    requestBody: {
      ...requestBody,
      content: { ...requestBody?.content, 'multipart/form-data': { schema: BYTES } },
    },
    responses,
    failures: CALL_FAILURES,
  };
}

function pageOf(path: string, method: ApiMethod, operation: ApiOperation): DescribedOperation {
  if (path === '/ping') return { ...operation, path, method, auth: 'none' };
  return { ...operation, path, method, operationId: `${method}ApiDescription`, auth: 'call' };
}
