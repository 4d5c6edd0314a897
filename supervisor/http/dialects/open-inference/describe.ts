/** Describes the protocol's paths for the OpenAPI document: pages by the names of models, and a call for each version. */
import type { LoadedInfo } from '../../../../protocol/wire/messages.js';
import { CALL_FAILURES } from '../../openapi/errors.js';
import {
  operationIdOf,
  operationsOf,
  writtenPath,
  type DescribedOperation,
  type DescribedServer,
} from '../../openapi/operation.js';
import { describedRoutes } from '../../openapi/routes.js';
import { DATATYPE } from '../../openapi/schemas.js';
import paths from './paths.json' with { type: 'json' };

const OPERATIONS = operationsOf(paths, { datatype: DATATYPE });
const CALLS = OPERATIONS.filter(({ path }) => path.endsWith('/infer'));
const PAGES = OPERATIONS.filter((operation) => !CALLS.includes(operation));

/** `managesModels`: with the paths of the model repository. */
export function* describeOpenInference(
  { models, options: { openapiAll } }: DescribedServer,
  managesModels: boolean,
): Generator<DescribedOperation> {
  const described = models.describe();
  const takesTensors = ({ info }: { readonly info: LoadedInfo | null }): boolean =>
    openapiAll || info?.signature !== undefined;
  if (!openapiAll && !described.some(({ model }) => takesTensors(model))) return;
  yield* PAGES.filter(({ auth }) => managesModels || auth !== 'management');
  for (const { model, isDefault, isLeaving } of described) {
    if (isLeaving || !takesTensors(model) || describedRoutes(model).main?.kind !== 'handler') continue;
    for (const call of CALLS) if (isDefault || namesVersion(call)) yield callOf(call, model.spec);
  }
}

function namesVersion({ path }: DescribedOperation): boolean {
  return path.includes('{version}');
}

function callOf(
  call: DescribedOperation,
  { name, version }: { readonly name: string; readonly version: string },
): DescribedOperation {
  const filled = (text: string): string => text.replace('{model}', name).replace('{version}', version);
  const versioned = namesVersion(call) ? `Version${version}` : '';
  return {
    ...call,
    path: writtenPath(filled(call.path)),
    operationId: operationIdOf('call', name, versioned, 'V2'),
    description: filled(call.description),
    failures: CALL_FAILURES,
  };
}
