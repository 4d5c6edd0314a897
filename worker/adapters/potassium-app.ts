/**
 * Adapts Potassium apps: an instance of `Potassium`, exported as default or `app`, or served. `config` and `shutdown`
 * may be exported beside it.
 */
import { Blob } from 'node:buffer';
import { describeThrown } from '../../protocol/errors.js';
import { isObject } from '../../protocol/values/tensor.js';
import type { Route } from '../../protocol/wire/messages.js';
import { attemptsOf, type RepeatOptions } from '../api/route-options.js';
import { DEFINITION, type Definition, type Endpoint } from '../api/potassium/definition.js';
import { Request, WebSocketRequest } from '../api/potassium/request.js';
import type { InitContext, WebSocketConnection, CallInfo } from '../api/types.js';
import { ANY_BATCH, type Exports, type LoadedApp } from './loaded-app.js';
import { isPotassiumResponse, isResponse as isWebResponse } from '../reply/reply-of.js';
import { PLAIN_HEAD, Reply } from '../formats/reply.js';
import { iteratorOf } from '../reply/stream.js';
import { onlyEntry } from './batch-entries.js';
import { assertNoGenerator, configOf, shutdownOf, splitConfig, signatureOf, taskOf } from './exports.js';
import { besideSignature } from './schemas.js';
import { isThenable } from '../values/not-data.js';

/** Returns null if the exports are not a Potassium app. @throws a TypeError that names an export of a wrong kind */
export function fromPotassiumApp(exports: Exports): LoadedApp | null {
  const definition = definitionOf(exports) ?? definitionOf(exports['default']) ?? definitionOfNamed(exports);
  if (definition === null) return null;
  assertNoGenerator(definition.init);
  const { repeat, concurrency, modelOptions } = splitConfig(configOf(exports));
  return {
    description: {
      routes: routesOf(definition, repeat),
      modelOptions,
      concurrency,
      example: null,
      ...signatureOf(exports),
      ...taskOf(exports),
      api: 'potassium',
    },
    wishes: (route) => endpointOf(definition, route).wishes,
    ...schemasOf(definition, exports),
    init: (ctx) => initContext(definition, ctx),
    handle: (route, input, ctx) => handle(definition, route, input, ctx),
    handleBatch: (route, inputs, ctxs) => handleBatch(definition, route, inputs, ctxs),
    repeatable: repeat.repeatable === true,
    ...shutdownOf(exports),
  };
}

function definitionOf(value: unknown): Definition | null {
  if (typeof value !== 'object' || value === null || !(DEFINITION in value)) return null;
  return (value as { [DEFINITION]: Definition })[DEFINITION];
}

/**
 * Returns the definition of the export `app`. @throws a TypeError if other Potassium apps are exported beside it,
 * because any choice would be a guess
 */
function definitionOfNamed(exports: Exports): Definition | null {
  const named = definitionOf(exports['app']);
  if (named === null) return null;
  const isOther = (name: string): boolean => ![null, named].includes(definitionOf(exports[name]));
  const others = Object.keys(exports).filter(isOther);
  if (others.length === 0) return named;
  const names = new Intl.ListFormat('en-GB').format(['app', ...others].map((name) => `\`${name}\``));
  throw new TypeError(
    `${names} are Potassium apps, but a file serves only one: call \`serve()\` on that one, or make it the default export`,
  );
}

function routesOf({ endpoints, resultWebhook }: Definition, config: RepeatOptions): Route[] {
  return [...endpoints].map(([path, { kind, input, webhook, batch, repeat }]) => ({
    path,
    kind,
    input,
    webhook: webhook ?? (kind === 'handler' ? resultWebhook : null) ?? '',
    maxBatch: batch ? ANY_BATCH : 1,
    attempts: attemptsOf(repeat, config),
  }));
}

/** @throws a TypeError for a schema beside a signature */
function schemasOf(definition: Definition, { signature }: Exports): Pick<LoadedApp, 'schemas'> {
  const [path] = [...definition.endpoints].find(([, { schemas }]) => schemas !== undefined) ?? [];
  if (path === undefined) return {};
  if (signature !== undefined) throw besideSignature(`\`signature\` is exported, and ${path} has a schema`);
  return { schemas: (route) => endpointOf(definition, route).schemas };
}

async function initContext(definition: Definition, ctx: InitContext): Promise<void> {
  if (definition.init === null) return;
  const returned = await definition.init(ctx.worker.index, ctx);
  if (isObject(returned)) definition.context = returned;
  else if (returned !== undefined || !definition.hasContext)
    throw new TypeError('Potassium init() must return an object, or call setCache() and return nothing');
}

/** Returns the endpoint of a route. The front calls only the routes that the worker listed. */
function endpointOf({ endpoints }: Definition, route: string): Endpoint {
  return endpoints.get(route) as Endpoint;
}

function handle(definition: Definition, route: string, input: unknown, ctx: CallInfo): unknown {
  const { context } = definition;
  const endpoint = endpointOf(definition, route);
  if (endpoint.kind === 'websocket')
    return endpoint.run(context, new WebSocketRequest(input as WebSocketConnection, ctx));
  const { run, legacy, batch, kind } = endpoint;
  const check = legacy ? jsonOf : kind === 'handler' ? responseOf : resultOf;
  const request = legacy ? input : new Request(input, ctx);
  const output = batch ? onlyEntry(run(context, [request])) : run(context, request);
  return isThenable(output) ? output.then(check) : check(output);
}

function handleBatch(
  definition: Definition,
  route: string,
  inputs: readonly unknown[],
  ctxs: readonly CallInfo[],
): unknown {
  const { run } = endpointOf(definition, route);
  const requests = inputs.map((input, i) => new Request(input, ctxs[i] as CallInfo));
  const returned = run(definition.context, requests);
  return isThenable(returned) ? returned.then(entriesOf) : entriesOf(returned);
}

/** Checks each entry of an array; `batch-entries.ts` reports any other value. */
function entriesOf(returned: unknown): unknown {
  return Array.isArray(returned) ? Array.from<unknown, unknown>(returned, entryOf) : returned;
}

/** An entry that is not an answer fails its own call. */
function entryOf(entry: unknown): unknown {
  try {
    return isThenable(entry) ? entry.then(responseOf) : responseOf(entry);
  } catch (wrong) {
    return wrong instanceof Error ? wrong : new Error(describeThrown(wrong).message);
  }
}

/** Whether an output has the same meaning in every kind of app, so that the end of the call encodes it. */
function isCommonOutput(output: unknown): boolean {
  return output instanceof Error || output instanceof Blob || isWebResponse(output);
}

/** A legacy handler may return any JSON value, also a list or text. */
function jsonOf(output: unknown): unknown {
  if (isCommonOutput(output)) return output;
  if (iteratorOf(output) !== null)
    throw new TypeError('a generator was returned as JSON; return it in a Response to stream it');
  return new Reply({ ...PLAIN_HEAD, contentType: 'application/json' }, { kind: 'json', value: output });
}

function responseOf(output: unknown): unknown {
  if (isPotassiumResponse(output) || isCommonOutput(output)) return output;
  throw new TypeError('Potassium Response object not returned');
}

/** A background function may return nothing. */
function resultOf(output: unknown): unknown {
  return isPotassiumResponse(output) ? output : jsonOf(output);
}
