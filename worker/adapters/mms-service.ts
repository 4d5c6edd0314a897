/**
 * Adapts custom services of Multi Model Server: a function `handle(data, context)`, or a class with that method. `data`
 * is an array of items; it is null for the call that loads a function-style service.
 */
import { isObject, type Fields } from '../../protocol/values/tensor.js';
import type { Metric, StartSpec } from '../../protocol/wire/messages.js';
import { ITEMS, RAW_ITEMS, attemptsOf, type InputWishes } from '../api/route-options.js';
import { Context, beginBatch, endBatch, takeContextMetrics } from '../api/mms/context.js';
import type { ReadItem, Manifest } from '../api/mms/item.js';
import type { InitContext, CallInfo } from '../api/types.js';
import type { StoredMetric } from '../api/mms/metrics-store.js';
import { ANY_BATCH, type Exports, type LoadedApp, type Surroundings } from './loaded-app.js';
import { isThenable } from '../values/not-data.js';
import { assertNoGenerator, configOf, shutdownOf, splitConfig } from './exports.js';
import { onlyEntry } from './batch-entries.js';
import { answersOf } from './service-answers.js';
import type { Handle, Handler, ServiceObject } from './service-handler.js';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const ROUTE = '/';

const NO_ITEMS: readonly ReadItem[] = [];

/**
 * `exports` are the exports beside the handler; `modelDir` is the folder with the service's files.
 * @throws a TypeError that names an export of a wrong kind
 */
export function fromService(handler: Handler, exports: Exports, modelDir: string): LoadedApp {
  if (handler.style === 'class') {
    const { initialize } = handler.make.prototype as Partial<ServiceObject>;
    assertNoGenerator(initialize, 'initialize');
  }
  const { repeat, concurrency, modelOptions } = splitConfig(configOf(exports));
  if (concurrency > 1)
    throw new TypeError(
      'export `config`: a custom service runs its calls in batches, never at the same time; remove concurrency and set batchSize',
    );
  const repeatable = repeat.repeatable === true;
  const service = new Service({ handler, modelDir, own: modelOptions, repeatable });
  const limits = { maxBatch: ANY_BATCH, attempts: attemptsOf(repeat) };
  return {
    description: {
      routes: [{ path: ROUTE, kind: 'handler', input: 'any', webhook: '', ...limits }],
      modelOptions,
      concurrency,
      example: null,
      api: 'mms',
    },
    wishes: () => service.wishes,
    initStep:
      handler.style === 'class' ? 'initialize' : 'handle(null, context), the call that loads the model,',
    init: (ctx, surroundings) => service.load(ctx, surroundings),
    handle: (_route, input, ctx) => onlyEntry(service.run([input as ReadItem], [ctx])),
    handleBatch: (_route, inputs, ctxs) => service.run(inputs as readonly ReadItem[], ctxs),
    repeatable,
    ...shutdownOf(exports),
  };
}

interface ServiceFacts {
  readonly handler: Handler;
  readonly modelDir: string;
  /** The options of the app's `config`, which the front checks. */
  readonly own: Fields;
  /** Items may run again. */
  readonly repeatable: boolean;
}

class Service {
  readonly #facts: ServiceFacts;
  #context!: Context;
  #handle!: Handle;
  #surroundings!: Surroundings;
  /** The items of the running batch. */
  #items: readonly ReadItem[] = NO_ITEMS;

  constructor(facts: ServiceFacts) {
    this.#facts = facts;
  }

  get wishes(): InputWishes {
    return (this.#surroundings.spec.rawItems ?? this.#facts.own['rawItems'] === true) ? RAW_ITEMS : ITEMS;
  }

  async load({ worker, log, metrics }: InitContext, surroundings: Surroundings): Promise<void> {
    this.#surroundings = surroundings;
    const { modelDir, own } = this.#facts;
    const { spec } = surroundings;
    process.chdir(modelDir);
    const batchSize = spec.batchSize === 0 ? Number(own['batchSize'] ?? 1) : spec.batchSize;
    const systemProperties = systemPropertiesOf(spec, modelDir, batchSize);
    const manifest = await readManifest(modelDir);
    this.#context = new Context({ modelName: spec.model, manifest, systemProperties, worker, log, metrics });
    try {
      this.#handle = await this.#begin();
    } finally {
      this.#sendMetrics([]);
    }
  }

  async #begin(): Promise<Handle> {
    const { handler } = this.#facts;
    if (handler.style === 'class') {
      const object = new handler.make();
      await object.initialize?.(this.#context);
      return (data, context) => object.handle(data, context);
    }
    await handler.handle.call(handler.owner, null, this.#context);
    return (data, context) => handler.handle.call(handler.owner, data, context);
  }

  /** Returns an answer for each item, or a promise of them; throws the error of the handler. */
  run(items: readonly ReadItem[], ctxs: readonly CallInfo[]): unknown {
    const context = this.#context;
    this.#sendMetrics([]); // metrics that the previous batch added after its end belong to no call any more
    this.#items = items;
    beginBatch(context, items, ctxs);
    const send = (): void => this.#sendMetrics(ctxs);
    const finish = (returned: unknown): unknown[] => {
      send();
      const onAllEnded = (): void => this.#endBatch(items, ctxs);
      return answersOf(returned, context, ctxs.length, { onStreamEnd: send, onAllEnded });
    };
    const fail = (thrown: unknown): never => {
      send();
      const mayRunAgain = this.#facts.repeatable && items.length > 1;
      if (!mayRunAgain) this.#endBatch(items, ctxs);
      throw thrown;
    };
    const data = items.map(({ item }) => item);
    let returned: unknown;
    try {
      returned = this.#handle(data, context);
    } catch (thrown) {
      return fail(thrown);
    }
    return isThenable(returned) ? returned.then(finish, fail) : finish(returned);
  }

  /**
   * An idle worker keeps no bodies. A stream may still run after its client has left, also after the next batch has
   * begun.
   */
  #endBatch(items: readonly ReadItem[], ctxs: readonly CallInfo[]): void {
    for (const ctx of ctxs) ctx.forgetBody();
    if (this.#items !== items) return;
    this.#items = NO_ITEMS;
    endBatch(this.#context);
  }

  #sendMetrics(ctxs: readonly CallInfo[]): void {
    const metrics = takeContextMetrics(this.#context);
    if (metrics.length > 0) this.#surroundings.sendMetrics(metrics.map((metric) => asMessage(metric, ctxs)));
  }
}

function asMessage(
  { kind, name, value, unit, dimensions, idx }: StoredMetric,
  ctxs: readonly CallInfo[],
): Metric {
  const calls = idx === null ? ctxs : ctxs.slice(idx, idx + 1);
  return {
    kind,
    name,
    value,
    unit,
    dimensions: dimensions.map((dimension) => `${dimension.name}\n${dimension.value}`).join('\n'),
    callIds: kind === 'error' ? [] : calls.map(({ callId }) => callId),
  };
}

function systemPropertiesOf(
  { device, serverVersion }: StartSpec,
  modelDir: string,
  batchSize: number,
): Context['systemProperties'] {
  const gpuId = device.gpu === null ? null : 0;
  return {
    model_dir: modelDir,
    modelDir,
    gpu_id: gpuId,
    gpuId,
    batch_size: batchSize,
    batchSize,
    server_name: 'MMS',
    serverName: 'MMS',
    server_version: serverVersion,
    serverVersion,
  };
}

/**
 * Returns null if the folder has none. @throws Error with the file's path if it cannot be read or is not a JSON object
 */
export async function readManifest(modelDir: string): Promise<Manifest | null> {
  const file = join(modelDir, 'MAR-INF', 'MANIFEST.json');
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw cause;
  }
  return parsed(text, file);
}

function parsed(text: string, file: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Error(`${file} is not JSON: ${(cause as Error).message}`, { cause });
  }
  if (isObject(value)) return value;
  throw new Error(`${file} is not a JSON object`);
}
