/** Says which clients the document is for: those of the ways in which the server's apps are written. */
import type { DescribedServer } from './operation.js';

/** Whether the paths for clients of these apps are described; `api` as in the worker's `LoadedInfo`. */
export function describesClientsOf({ models, options }: DescribedServer, api: string): boolean {
  return options.openapiAll || models.describe().some(({ model }) => model.info?.api === api);
}

/** Whether Multi Model Server's paths are described: its clients also load models from a store. */
export function describesMmsClients(server: DescribedServer): boolean {
  const { modelStore, models } = server.options;
  return server.isMmsMode || modelStore !== null || models !== null || describesClientsOf(server, 'mms');
}
