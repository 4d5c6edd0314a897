/** Describes the gateway's paths as its clients write them, with a slash at the end; people may leave it out. */
import {
  describesClientsOf,
  operationsOf,
  type DescribedOperation,
  type DescribedServer,
} from '../../openapi/operation.js';
import { describedRoutes } from '../../openapi/routes.js';
import { FREE } from '../../openapi/schemas.js';
import { GATEWAY_ROUTE } from './start.js';
import paths from './paths.json' with { type: 'json' };

/** The models' route `/` may differ in its inputs, so they are described if only the default model can be called. */
export function describePaths(server: DescribedServer): DescribedOperation[] {
  if (!describesClientsOf(server, 'banana')) return [];
  const { models } = server;
  const { default: model } = models;
  const isOnly = models.describe().every(({ model: other, isDefault }) => !isDefault || other === model);
  const route = isOnly && model !== null ? describedRoutes(model).all.find(isCalled) : undefined;
  const { input = FREE, output = FREE } = route ?? {};
  return operationsOf(paths, { input, output });
}

function isCalled({ path, kind }: { readonly path: string; readonly kind: string }): boolean {
  return path === GATEWAY_ROUTE && kind !== 'websocket';
}
