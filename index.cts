/**
 * The same API for CommonJS, `require('banana-serve')`, which Node supports for ES modules since 20.19. It re-exports
 * `index.ts`, so a program that uses both ways has only one copy of the package.
 */
import { runInThisContext } from 'node:vm';
import type * as Package from './index.js' with { 'resolution-mode': 'import' };

export type * from './index.js' with { 'resolution-mode': 'import' };

// The `require` of Node's own process: what jest gives instead of either reads no ES modules.
const loaded = (runInThisContext('process') as NodeJS.Process)
  .getBuiltinModule('module')
  .createRequire(__filename)('./index.js') as typeof Package;

export const run: typeof Package.run = loaded.run;
export const serve: typeof Package.serve = loaded.serve;
export const supervise: typeof Package.supervise = loaded.supervise;
export const sendWebhook: typeof Package.sendWebhook = loaded.sendWebhook;
export const HttpError: typeof Package.HttpError = loaded.HttpError;
export type HttpError = Package.HttpError;
export const ServeError: typeof Package.ServeError = loaded.ServeError;
export type ServeError = Package.ServeError;
export const RedisConfig: typeof Package.RedisConfig = loaded.RedisConfig;
export type RedisConfig = Package.RedisConfig;
export const S3Config: typeof Package.S3Config = loaded.S3Config;
export type S3Config = Package.S3Config;
export const Store: typeof Package.Store = loaded.Store;
export type Store = Package.Store;
export const Tensor: typeof Package.Tensor = loaded.Tensor;
export type Tensor<D extends Package.Datatype = Package.Datatype> = Package.Tensor<D>;

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
} from './potassium.cjs';
export {
  /** @deprecated Import it from `banana-serve/mms`. */
  Context,
  /** @deprecated Import it from `banana-serve/mms`. */
  Dimension,
  /** @deprecated Import it from `banana-serve/mms`. */
  ModelHandler,
  /** @deprecated Import it from `banana-serve/mms`. */
  PredictionException,
} from './mms.cjs';
