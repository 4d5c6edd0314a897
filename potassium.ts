/** `banana-serve/potassium`: all that a Potassium app imports, under the names of Potassium. */
import './start.js'; // for `app.serve()` and `app.testClient()`

export { Potassium, type PotassiumOptions } from './worker/api/potassium/potassium.js';
export { Request, WebSocketRequest } from './worker/api/potassium/request.js';
export { RequestHeaders } from './worker/api/potassium/request.js';
export { Response } from './worker/api/potassium/response.js';
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

export type { WebSocketConnection } from './worker/api/types.js';
export type { TestClient, TestRequest, TestResponse } from './worker/api/test-client.js';
