/**
 * The same API for CommonJS, `require('banana-serve')`, which Node supports for ES modules since 20.19. It re-exports
 * `index.ts`, so a program that uses both ways has only one copy of the package.
 */
import type * as Package from './index.js' with { 'resolution-mode': 'import' };

export type {
  Accepted,
  AnyTensor,
  AppConfig,
  AppLog,
  AppMetrics,
  AppServeOptions,
  Background,
  BackgroundOptions,
  BananaApp,
  BananaBatchApp,
  CallParams,
  BatchEntry,
  BatchHandler,
  BatchRouteOptions,
  Datatype,
  EmbeddingInput,
  ErrorCode,
  Float16Data,
  FullModelRef,
  FunctionCallOptions,
  FunctionEvents,
  Handler,
  InferenceContext,
  InitContext,
  Item,
  ItemPart,
  ItemResult,
  ItemValue,
  JsonValue,
  LegacyHandler,
  LocalConfig,
  Manifest,
  MemoryConfig,
  MetricLabels,
  MetricsStore,
  ModelRef,
  ModelsHandle,
  ModelSource,
  ModelFunction,
  ModelStatus,
  NamedSource,
  OnnxModel,
  Outcome,
  PotassiumOptions,
  ReplaceOptions,
  RequestProcessor,
  RerankInput,
  RequestProperties,
  RouteOptions,
  ScaleOptions,
  ScalingChange,
  ScalingStatus,
  SendWebhookOptions,
  ServedFunctions,
  ServeOptions,
  ServerEnd,
  ServerHandle,
  ServerStatus,
  Signature,
  StoreOptions,
  SuperviseOptions,
  SystemProperties,
  TensorData,
  TensorSpec,
  TensorValue,
  TestClient,
  TestRequest,
  TestResponse,
  UnregisterOptions,
  UploadedFile,
  WebSocketConnection,
  WebSocketHandler,
  WorkerExit,
  WorkerInfo,
  WorkerStateName,
  WorkerStatus,
} from './index.js' with { 'resolution-mode': 'import' };

// eslint-disable-next-line @typescript-eslint/no-require-imports -- the purpose of this file
const loaded = require('./index.js') as typeof Package;

export const serve: typeof Package.serve = loaded.serve;
export const supervise: typeof Package.supervise = loaded.supervise;
export const sendWebhook: typeof Package.sendWebhook = loaded.sendWebhook;

/* eslint-disable @typescript-eslint/no-explicit-any -- the same types as the classes */
export const Potassium: typeof Package.Potassium = loaded.Potassium;
export type Potassium<Context extends object = any> = Package.Potassium<Context>;
export const Request: typeof Package.Request = loaded.Request;
export type Request<Json = any> = Package.Request<Json>;
export const WebSocketRequest: typeof Package.WebSocketRequest = loaded.WebSocketRequest;
export type WebSocketRequest = Package.WebSocketRequest;
export const RequestHeaders: typeof Package.RequestHeaders = loaded.RequestHeaders;
export type RequestHeaders = Package.RequestHeaders;
export const Response: typeof Package.Response = loaded.Response;
export type Response<Json = unknown> = Package.Response<Json>;
export const PotassiumResponse: typeof Package.PotassiumResponse = loaded.PotassiumResponse;
export type PotassiumResponse<Json = unknown> = Package.PotassiumResponse<Json>;
export const InvalidEndpointTypeException: typeof Package.InvalidEndpointTypeException =
  loaded.InvalidEndpointTypeException;
export type InvalidEndpointTypeException = Package.InvalidEndpointTypeException;
export const RouteAlreadyInUseException: typeof Package.RouteAlreadyInUseException =
  loaded.RouteAlreadyInUseException;
export type RouteAlreadyInUseException = Package.RouteAlreadyInUseException;
export const Context: typeof Package.Context = loaded.Context;
export type Context = Package.Context;
export const Dimension: typeof Package.Dimension = loaded.Dimension;
export type Dimension = Package.Dimension;
export const ModelHandler: typeof Package.ModelHandler = loaded.ModelHandler;
export type ModelHandler<
  Input = readonly Package.Item[],
  Output = readonly Package.ItemResult[],
> = Package.ModelHandler<Input, Output>;
export const ServeError: typeof Package.ServeError = loaded.ServeError;
export type ServeError = Package.ServeError;
export const HttpError: typeof Package.HttpError = loaded.HttpError;
export type HttpError = Package.HttpError;
export const PredictionException: typeof Package.PredictionException = loaded.PredictionException;
export type PredictionException = Package.PredictionException;
export const RedisConfig: typeof Package.RedisConfig = loaded.RedisConfig;
export type RedisConfig = Package.RedisConfig;
export const S3Config: typeof Package.S3Config = loaded.S3Config;
export type S3Config = Package.S3Config;
export const Store: typeof Package.Store = loaded.Store;
export type Store = Package.Store;
export const Tensor: typeof Package.Tensor = loaded.Tensor;
export type Tensor<D extends Package.Datatype = Package.Datatype> = Package.Tensor<D>;
