/** `require('banana-serve/potassium')`; see index.cts. */
import { runInThisContext } from 'node:vm';
import type * as Package from './potassium.js' with { 'resolution-mode': 'import' };

export type * from './potassium.js' with { 'resolution-mode': 'import' };

const loaded = (runInThisContext('process') as NodeJS.Process)
  .getBuiltinModule('module')
  .createRequire(__filename)('./potassium.js') as typeof Package;

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
export const InvalidEndpointTypeException: typeof Package.InvalidEndpointTypeException =
  loaded.InvalidEndpointTypeException;
export type InvalidEndpointTypeException = Package.InvalidEndpointTypeException;
export const RouteAlreadyInUseException: typeof Package.RouteAlreadyInUseException =
  loaded.RouteAlreadyInUseException;
export type RouteAlreadyInUseException = Package.RouteAlreadyInUseException;
