/** Adapts Banana apps: `init()` and `inference(modelInputs)`, exported by name or as default. */
import { attemptsOf, inputWishes } from '../api/route-options.js';
import type { BananaApp, CallInfo } from '../api/types.js';
import { onlyEntry } from './batch-entries.js';
import { ANY_BATCH, WARM_UP, type Exports, type LoadedApp, type WarmUp } from './loaded-app.js';
import { exportedSchemas } from './schemas.js';
import {
  signatureOf,
  taskOf,
  assertFunctionOrNone,
  assertNoGenerator,
  configOf,
  shutdownOf,
  splitConfig,
} from './exports.js';

const ROUTE = '/';

/** Returns null if the exports are not a Banana app. @throws a TypeError that names an export of a wrong kind */
export function fromBananaApp(exports: Exports): LoadedApp | null {
  if (typeof exports['inference'] !== 'function' && exports['inferenceBatch'] === undefined) return null;
  assertFunctionOrNone(exports, 'inference');
  assertFunctionOrNone(exports, 'inferenceBatch');
  assertFunctionOrNone(exports, 'init');
  assertNoGenerator(exports['init']);
  const app = exports as unknown as Partial<BananaApp>;
  const { forms, text, ...config } = configOf(exports);
  const { repeat, concurrency, modelOptions } = splitConfig(config);
  const schemas = exportedSchemas(exports);
  const wishes = inputWishes({ forms, text }, 'export `config`');
  return {
    description: {
      routes: [
        {
          path: ROUTE,
          kind: 'handler',
          input: 'any',
          webhook: '',
          maxBatch: app.inferenceBatch === undefined ? 1 : ANY_BATCH,
          attempts: attemptsOf(repeat),
        },
      ],
      modelOptions,
      concurrency,
      example: 'example' in exports ? { route: ROUTE, input: exports['example'] } : null,
      ...signatureOf(exports),
      ...taskOf(exports),
      ...platformOf(exports),
      api: WARM_UP in exports ? 'none' : 'banana',
    },
    wishes: () => wishes,
    ...(schemas === undefined ? {} : { schemas: () => schemas }),
    init: (ctx) => app.init?.(ctx),
    handle: (_route, input, ctx) =>
      app.inference === undefined ? inferAlone(app, input, ctx) : app.inference(input, ctx),
    handleBatch: (_route, inputs, ctxs) => app.inferenceBatch?.(inputs, ctxs),
    repeatable: repeat.repeatable === true,
    ...warmUpOf(exports),
    ...shutdownOf(exports),
  };
}

function warmUpOf(exports: Exports): { warmUp?: WarmUp } {
  const { [WARM_UP]: warmUp } = exports;
  return warmUp === undefined ? {} : { warmUp };
}

/** A loader of files that are no code names their kind; an app of code may, too. */
function platformOf({ platform }: Exports): { platform?: string } {
  return typeof platform === 'string' ? { platform } : {};
}

/** Runs an input as a batch of one. */
function inferAlone(app: Partial<BananaApp>, input: unknown, ctx: CallInfo): unknown {
  return onlyEntry(app.inferenceBatch?.([input], [ctx]));
}
