/** `banana-serve/mms`: all that a custom service in the form of Multi Model Server's handlers imports. */
export { Context, type SystemProperties } from './worker/api/mms/context.js';
export type { Item, ItemPart, ItemResult, ItemValue, JsonValue, Manifest } from './worker/api/mms/item.js';
export { Dimension, type MetricsStore } from './worker/api/mms/metrics-store.js';
export { ModelHandler } from './worker/api/mms/model-handler.js';
export { PredictionException } from './worker/api/http-error.js';
export type { RequestProcessor, RequestProperties } from './worker/api/mms/request-processor.js';
