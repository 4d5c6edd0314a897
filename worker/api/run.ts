/** `run({ init, inference })`: serves the Banana functions of a file from the file itself. */
import { placeServed, serveInWorker, appFile, starter, type AppServeOptions } from './serving.js';
import { callingFile } from '../process/stack-frame.js';
import type { RouteSchemas, SchemaInput, StandardSchema } from './standard-schema.js';
import type { BananaApp, Inference, InferenceBatch } from './types.js';

/** The members that are the app's, and no options of its server. */
const OF_THE_APP = [
  ...['init', 'inference', 'inferenceBatch', 'shutdown', 'example', 'config'],
  ...['input', 'output', 'signature', 'task', 'tokenInput'],
];

/**
 * The functions of an app together with options of its server: `host`, `port` and the others of docs/options.md.
 * @example
 * import { run, type ServedFunctions } from 'banana-serve';
 * const app: ServedFunctions = { inference: (input) => input, port: 8001, workers: 2 };
 * await run(app);
 */
export type ServedFunctions<
  In extends StandardSchema = StandardSchema,
  Out extends StandardSchema = StandardSchema,
> = AppServeOptions &
  RouteSchemas<In, Out> &
  Pick<BananaApp, 'init' | 'shutdown' | 'config' | 'signature' | 'task' | 'tokenInput'> & {
    readonly example?: SchemaInput<In>;
  } & (
    | { readonly inference: Inference<In, Out>; readonly inferenceBatch?: InferenceBatch<In, Out> }
    | { readonly inference?: undefined; readonly inferenceBatch: InferenceBatch<In, Out> }
  );

/**
 * Serves the given functions from this process, as `banana-serve` would serve a file that exports them. Resolves when
 * the server has ended, with `process.exitCode` set; it should be the last line of the file. A worker runs the same
 * file and takes the functions from the same line, where the promise never settles. Rejects with a TypeError if
 * `inference` is not a function.
 * @example
 * import { run } from 'banana-serve';
 * let model: (text: string) => string;
 * const init = () => void (model = (text) => text.toUpperCase());
 * const inference = ({ prompt }: { prompt: string }) => ({ answer: model(prompt) });
 * await run({ init, inference, port: 8001 });
 */
export function run<In extends StandardSchema = StandardSchema, Out extends StandardSchema = StandardSchema>(
  app: ServedFunctions<In, Out>,
): Promise<void> {
  const { inference, inferenceBatch } = app;
  const identity: unknown = inference ?? inferenceBatch;
  if (typeof identity !== 'function') {
    const what = `run({ inference }) needs a function, not ${typeof identity}`;
    return Promise.reject(new TypeError(what));
  }
  const file = appFile(callingFile());
  const place = placeServed(identity, file);
  const inWorker = serveInWorker(app, place);
  if (inWorker !== null) return inWorker;
  const options: Record<string, unknown> = { ...app };
  for (const name of OF_THE_APP) delete options[name];
  return starter().serve({ file, place }, options);
}
