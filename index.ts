/**
 * `banana-serve`: what authors of apps import, and programs that serve or call them. Two families of apps have entries of
 * their own, potassium.ts and mms.ts.
 */
import { startServer } from './start.js';
import type { ServeOptions } from './supervisor/plan/given-options.js';
import type { ServerHandle } from './supervisor/server/server-handle.js';
import type { SuperviseOptions } from './supervisor/embed/given.js';
import type { ModelFunction, OnnxModel } from './supervisor/functions/function-types.js';
import { run, type ServedFunctions } from './worker/api/run.js';

export type {
  AppConfig,
  AppLog,
  AppMetrics,
  BananaApp,
  BananaBatchApp,
  CallParams,
  EmbeddingInput,
  Inference,
  InferenceBatch,
  InferenceContext,
  InitContext,
  JobInfo,
  MetricLabels,
  RerankInput,
  UploadedFile,
  WorkerInfo,
} from './worker/api/types.js';

export type { StandardSchema } from './worker/api/standard-schema.js';
export { HttpError } from './worker/api/http-error.js';
export type { AppServeOptions } from './worker/api/serving.js';
export { run, type ServedFunctions } from './worker/api/run.js';
export {
  Tensor,
  type AnyTensor,
  type Datatype,
  type Float16Data,
  type Signature,
  type TensorData,
  type TensorSpec,
} from './protocol/values/tensor.js';

export { sendWebhook, type SendWebhookOptions } from './worker/api/send-webhook.js';
export type { ModelSource, ServeOptions } from './supervisor/plan/given-options.js';
export type {
  ModelsHandle,
  NamedSource,
  ReplaceOptions,
  ScaleOptions,
  ServerHandle,
  UnregisterOptions,
} from './supervisor/server/server-handle.js';

export type { Accepted, FullModelRef, ModelRef, Outcome } from './supervisor/models/models.js';
export type { ServerEnd, ServerStatus } from './supervisor/status/server-status.js';
export type {
  ModelStatus,
  ScalingStatus,
  WorkerExit,
  WorkerStateName,
  WorkerStatus,
} from './supervisor/models/model-status.js';

export type { ScalingChange } from './supervisor/models/scaling-changes.js';
export type { SuperviseOptions } from './supervisor/embed/given.js';
export type {
  FunctionCallOptions,
  FunctionEvents,
  ModelFunction,
  OnnxModel,
  TensorValue,
} from './supervisor/functions/function-types.js';

export { ServeError, type ErrorCode } from './protocol/errors.js';
export type { LocalConfig, MemoryConfig, StoreOptions } from './worker/api/store/config.js';
export { RedisConfig, S3Config } from './worker/api/store/config.js';
export { Store } from './worker/api/store/store.js';

// The former places of the two families, until the first release.
export {
  /** @deprecated Import it from `banana-serve/potassium`. */
  Potassium,
  /** @deprecated Import it from `banana-serve/potassium`. */
  Request,
  /** @deprecated Import it from `banana-serve/potassium`. */
  WebSocketRequest,
  /** @deprecated Import it from `banana-serve/potassium`. */
  RequestHeaders,
  /** @deprecated Import it from `banana-serve/potassium`. */
  Response,
  /** @deprecated Import `Response` from `banana-serve/potassium`. */
  Response as PotassiumResponse,
  /** @deprecated Import it from `banana-serve/potassium`. */
  InvalidEndpointTypeException,
  /** @deprecated Import it from `banana-serve/potassium`. */
  RouteAlreadyInUseException,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type PotassiumOptions,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type Background,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type BackgroundOptions,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type BatchEntry,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type BatchHandler,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type BatchRouteOptions,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type Handler,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type LegacyHandler,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type RouteOptions,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type WebSocketHandler,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type WebSocketConnection,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type TestClient,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type TestRequest,
  /** @deprecated Import it from `banana-serve/potassium`. */
  type TestResponse,
} from './potassium.js';

export {
  /** @deprecated Import it from `banana-serve/mms`. */
  Context,
  /** @deprecated Import it from `banana-serve/mms`. */
  Dimension,
  /** @deprecated Import it from `banana-serve/mms`. */
  ModelHandler,
  /** @deprecated Import it from `banana-serve/mms`. */
  PredictionException,
  /** @deprecated Import it from `banana-serve/mms`. */
  type SystemProperties,
  /** @deprecated Import it from `banana-serve/mms`. */
  type Item,
  /** @deprecated Import it from `banana-serve/mms`. */
  type ItemPart,
  /** @deprecated Import it from `banana-serve/mms`. */
  type ItemResult,
  /** @deprecated Import it from `banana-serve/mms`. */
  type ItemValue,
  /** @deprecated Import it from `banana-serve/mms`. */
  type JsonValue,
  /** @deprecated Import it from `banana-serve/mms`. */
  type Manifest,
  /** @deprecated Import it from `banana-serve/mms`. */
  type MetricsStore,
  /** @deprecated Import it from `banana-serve/mms`. */
  type RequestProcessor,
  /** @deprecated Import it from `banana-serve/mms`. */
  type RequestProperties,
} from './mms.js';

/**
 * Serves an app from this process and resolves once the port is open; calls wait until a worker is ready. Rejects with
 * `code: 'SERVE_CONFIG'` if an option is wrong, with nothing started, and with the system's error if the port cannot be
 * opened. Signals are left to the caller, who should call `close()`.
 * @example
 * import { serve } from 'banana-serve';
 * const server = await serve({ app: './app.ts', port: 0, workers: 2 });
 * await server.ready;
 * const reply = await fetch(server.url, { method: 'POST', body: '{"prompt":"hello"}' });
 * await server.close();
 */
export function serve(options?: ServeOptions): Promise<ServerHandle>;
/** @deprecated Use `run`. */
export function serve(app: ServedFunctions): Promise<void>;
export function serve(given: ServeOptions | ServedFunctions = {}): Promise<ServerHandle | void> {
  return isServedFunctions(given) ? run(given) : startServer(given);
}

/**
 * Starts workers of an app and resolves with the app as a function once one is ready: no port is opened. `App` is the type of
 * the app's module, `typeof import('./embed.js')`, from which the types of input and answer follow. Rejects with a
 * `ServeError`: `SERVE_CONFIG` for a wrong option, with nothing started, else the reason why the app cannot start.
 * @example
 * import { supervise } from 'banana-serve';
 * await using embed = await supervise('./embed.ts', { maxWorkers: 2 });
 * const vector = await embed({ text: 'hello' }, { timeoutMs: 5000 });
 */
export function supervise<App = OnnxModel>(
  app: `${string}.onnx`,
  options?: SuperviseOptions,
): Promise<ModelFunction<App>>;
export function supervise<App = unknown>(
  app: string | URL,
  options?: SuperviseOptions,
): Promise<ModelFunction<App>>;
export async function supervise(app: string | URL, options: SuperviseOptions = {}): Promise<ModelFunction> {
  const front = await import('#front');
  return front.supervise(app, options);
}

function isServedFunctions(given: ServeOptions | ServedFunctions): given is ServedFunctions {
  if (typeof given !== 'object' || given === null) return false;
  const { inference, inferenceBatch } = given as Readonly<Record<string, unknown>>;
  return (inference ?? inferenceBatch) !== undefined;
}
