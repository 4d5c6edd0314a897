/**
 * The public API of banana-serve: the imports of model authors, and `serve()` for programs. The supervisor is loaded on
 * first use, so that an app that imports this file loads no HTTP server into its worker.
 */
import type { ServeOptions } from './supervisor/plan/given-options.js';
import type { ServerHandle } from './supervisor/server/server-handle.js';
import type { SuperviseOptions } from './supervisor/embed/given.js';
import type { ModelFunction, OnnxModel } from './supervisor/functions/function-types.js';
import type { BananaApp } from './worker/api/types.js';
import { setStarter } from './worker/api/starter.js';
import { serveFunctions, type ServedFunctions } from './worker/api/serve-functions.js';

export type {
  AppConfig,
  AppLog,
  AppMetrics,
  BananaApp,
  BananaBatchApp,
  CallParams,
  EmbeddingInput,
  InferenceContext,
  InitContext,
  MetricLabels,
  RerankInput,
  UploadedFile,
  WebSocketConnection,
  WorkerInfo,
} from './worker/api/types.js';
export { HttpError } from './worker/api/http-error.js';
export { Request, WebSocketRequest } from './worker/api/potassium/request.js';
export { RequestHeaders } from './worker/api/potassium/request-headers.js';
export { Response, Response as PotassiumResponse } from './worker/api/potassium/response.js';
export { Potassium } from './worker/api/potassium/potassium.js';
export { Context, type SystemProperties } from './worker/api/mms/context.js';
export type { Item, ItemPart, ItemResult, ItemValue, JsonValue, Manifest } from './worker/api/mms/item.js';
export { Dimension, type MetricsStore } from './worker/api/mms/metrics-store.js';
export { ModelHandler } from './worker/api/mms/model-handler.js';
export { PredictionException } from './worker/api/mms/prediction-exception.js';
export type { RequestProcessor, RequestProperties } from './worker/api/mms/request-processor.js';
export type { AppServeOptions } from './worker/api/starter.js';
export type { TestClient, TestRequest, TestResponse } from './worker/api/test-client.js';
export type { PotassiumOptions } from './worker/api/potassium/potassium.js';
export {
  InvalidEndpointTypeException,
  RouteAlreadyInUseException,
  type Background,
  type BackgroundOptions,
  type BatchEntry,
  type BatchHandler,
  type BatchRouteOptions,
  type Handler,
  type LegacyHandler,
  type RouteOptions,
  type WebSocketHandler,
} from './worker/api/potassium/definition.js';
export type { ServedFunctions } from './worker/api/serve-functions.js';
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

/**
 * Serves the given functions from this process, as `banana-serve` would serve a file that exports them. Resolves when
 * the server has ended, with `process.exitCode` set; it should be the last line of the file. A worker runs the same
 * file and takes the functions from the same line. Rejects with a TypeError if `inference` is not a function.
 */
export function serve(app: ServedFunctions): Promise<void>;
/**
 * Serves an app from this process and resolves once the port is open; calls wait until a worker is ready. Rejects with
 * `code: 'SERVE_CONFIG'` if an option is wrong, with nothing started, and with the system's error if the port cannot be
 * opened. Signals are left to the caller, who should call `close()`.
 */
export function serve(options?: ServeOptions): Promise<ServerHandle>;
export function serve(given: ServeOptions | ServedFunctions = {}): Promise<ServerHandle | void> {
  return isServedFunctions(given) ? serveFunctions(given) : serveFile(given);
}

/**
 * Starts workers of an app and resolves with the app as a function once one is ready: no port is opened. `App` is the type of
 * the app's module, `typeof import('./embed.js')`, from which the types of input and answer follow. Rejects with a
 * `ServeError`: `SERVE_CONFIG` for a wrong option, with nothing started, else the reason why the app cannot start.
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
  const { inference, inferenceBatch } = given as Partial<BananaApp>;
  return (inference ?? inferenceBatch) !== undefined;
}

async function serveFile(options: ServeOptions, appPlace = ''): Promise<ServerHandle> {
  const { serve } = await import('#front');
  return serve(options, { appPlace });
}

// Starts the server of an app that calls `serve()`; the files that authors import must not import the supervisor.
setStarter({
  async serve({ file, place }, options) {
    const { EXIT_CODES, runServerProcess } = await import('#front');
    const reason = await runServerProcess(() => serveFile({ ...options, app: file }, place));
    process.exitCode = EXIT_CODES[reason].code;
  },
  async startForTest({ file, place }, options) {
    const { startTestServer } = await import('#front');
    const server = await startTestServer({ ...options, app: file }, place);
    return { url: server.url, close: async () => void (await server.close()) };
  },
});
