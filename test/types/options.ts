/**
 * The types of options, as an editor checks them. Compiled and not run: `@ts-expect-error` marks each line that must be refused, and is an
 * error itself if the line is accepted.
 */
import {
  run,
  serve,
  type AppConfig,
  type AppServeOptions,
  type Outcome,
  type BananaBatchApp,
  type ServedFunctions,
  type ServeOptions,
  type ServerStatus,
} from '../../index.js';
import { Potassium } from '../../potassium.js';

const inference = (input: { prompt: string }): string => input.prompt;
const app = new Potassium('types');

export const refused = async (): Promise<void> => {
  // @ts-expect-error there is no such option
  await serve({ prot: 1 });
  // @ts-expect-error nor with an app
  await serve({ app: './app.ts', prot: 1 });
  // @ts-expect-error nor beside functions
  await run({ inference, prot: 1 });
  // @ts-expect-error a server has a few levels
  await serve({ logLevel: 'loud' });
  // @ts-expect-error a number is no function
  await run({ inference: 5 });
  // @ts-expect-error a batch function returns an array
  await run({ inferenceBatch: () => 5 });
  // @ts-expect-error there is no such option
  await app.serve({ prot: 1 });
  // @ts-expect-error workers are a number
  await app.testClient({ workers: 'two' });
};

export const refusedModels = async (): Promise<void> => {
  // @ts-expect-error the port is the server's
  await serve({ models: { digits: { app: './digits.ts', port: 80 } } });
  // @ts-expect-error the store's models are texts
  await serve({ modelStore: './models', models: [1] });
  const { models } = await serve({ models: { digits: './digits.ts' } });
  // @ts-expect-error a model has a name
  await models.register({ app: './digits.ts' });
  // @ts-expect-error a default is one version
  models.setDefault({ name: 'digits' });
};

// @ts-expect-error the machine is the operator's
const _workers: AppConfig = { workers: 2 };
// @ts-expect-error a duration has a unit in an app's config
const _bare: AppConfig = { runTimeout: 30 };
// @ts-expect-error the bytes that wait are counted for all models together
const _bytes: AppConfig = { queueBytes: '1mb' };
// @ts-expect-error the port is the server's
const _port: AppConfig = { port: 80 };
const _config: AppConfig = { runTimeout: '30s', queueSize: 5, restartLimit: undefined };
export const options: ServeOptions = {
  app: './app.ts',
  cwd: '.',
  runTimeout: 30,
  port: '8000',
  ...(_config as object),
};
export const appOptions: AppServeOptions = { host: '::', port: 0, accessLog: true };
export const functions: ServedFunctions = {
  inference,
  config: _config,
  example: { prompt: 'a' },
  workers: 2,
};

// @ts-expect-error one of the two functions has to be there
export const none: ServedFunctions = { init: () => {} };
export const batches: ServedFunctions = {
  inferenceBatch: (inputs: readonly { prompt: string }[], ctxs) =>
    inputs.map((_input, i) => ctxs[i]?.requestId),
  config: { repeatable: true, batchSize: 8 },
};
const batchApp: BananaBatchApp<number, string> = {
  inferenceBatch: async (inputs) => Promise.resolve(inputs.map((input) => input.toFixed())),
  example: 5,
};

export const allowed = async (): Promise<string> => {
  await run({ init: () => {}, inference, port: 0, runTimeout: '1m' });
  await run({ ...batchApp, inference, port: 0 });
  await run(batchApp);
  await serve(batchApp); // the former name
  await app.serve({ port: Number(process.env['PORT'] ?? 8000) });
  const server = await serve({ app: './app.ts', apiKey: process.env['KEY'], gpus: 0 });
  const status: ServerStatus = server.status();
  await serve({ models: { a: './a.ts', b: { app: './b.ts', workers: 2, runTimeout: 30, version: '2' } } });
  const stored = await serve({ modelStore: './models', models: 'all', managementPort: '/run/m.sock' });
  await serve({ modelStore: './models', models: ['digits', 'cats=zoo/cats'], managementKey: ['a', 'b'] });
  void stored.managementUrl?.length;
  await server.models.register({ name: 'c', app: './c.ts', gpus: 0, maxBatchDelay: '5ms' });
  const { accepted, settled } = server.models.scale({ name: 'c' }, { min: 1, max: 2, drainTimeoutMs: 1000 });
  const outcome: Outcome = await settled;
  void [accepted.version, outcome.error?.code, server.models.describe()[0]?.minWorkers];
  // @ts-expect-error no such field
  void status.wokers;
  return status.model.workers.map(({ state, lastExit }) => `${state} ${lastExit?.how ?? ''}`).join(', ');
};
