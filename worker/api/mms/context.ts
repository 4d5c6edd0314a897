/** `context` of a custom service: its model, its worker, and the requests of the current batch. */
import type { AppLog, AppMetrics, JobInfo, WorkerInfo } from '../types.js';
import type { ItemPart, Manifest, ReadItem } from './item.js';
import { addPythonNames } from './python-names.js';
import { MetricsStore, takeMetrics, type StoredMetric } from './metrics-store.js';
import { type RequestProperties, RequestProcessor, type ItemRequest } from './request-processor.js';

/**
 * System properties, by their names in Python and in TypeScript.
 * @example
 * const fileIn = ({ modelDir }: SystemProperties, name: string) => `${modelDir}/${name}`;
 */
export interface SystemProperties {
  /** Absolute path of the model's folder, which is the working directory of the worker. */
  readonly model_dir: string;
  readonly modelDir: string;
  /** Index of the GPU among those that this worker sees: always 0, because it sees one; null on the CPU. */
  readonly gpu_id: number | null;
  readonly gpuId: number | null;
  /** Maximum number of items in a batch, as configured. */
  readonly batch_size: number;
  readonly batchSize: number;
  /** Always `MMS`, which handlers expect. */
  readonly server_name: string;
  readonly serverName: string;
  readonly server_version: string;
  readonly serverVersion: string;
}

/** Facts about the model that do not change during the life of the worker. */
type ModelFacts = Pick<Context, 'modelName' | 'manifest' | 'systemProperties' | 'worker' | 'log'> & {
  readonly metrics: AppMetrics;
};

/** Sets the requests of the next batch and a new store of metrics. */
export let beginBatch: (
  context: Context,
  items: readonly ReadItem[],
  requests: readonly ItemRequest[],
) => void;

/** Ends a batch: the bodies of its requests are released; their ids and headers stay until the next batch. */
export let endBatch: (context: Context) => void;

/** Returns the metrics added since the last call, and removes them. */
export let takeContextMetrics: (context: Context) => readonly StoredMetric[];

/** Returns the response settings of an item; undefined if the service has not used them. */
export let processorOf: (context: Context, idx: number) => RequestProcessor | undefined;

/**
 * The context lives as long as the worker. The parts that belong to requests are replaced before each batch; `idx` is
 * the index of an item in `data`. While the model is being loaded there are no items, and methods that need one throw.
 * @example
 * export function handle(data: readonly Item[] | null, context: Context): ItemResult[] | null {
 *   if (data === null) return null; // the model is loaded here
 *   context.metrics.addCounter('Items', data.length);
 *   return data.map((_item, idx) => ({ id: context.getRequestId(idx) }));
 * }
 */
export class Context {
  readonly modelName: string;
  /** `MAR-INF/MANIFEST.json` of the model's folder; null if there is none. */
  readonly manifest: Manifest | null;
  readonly systemProperties: SystemProperties;
  readonly worker: WorkerInfo;
  readonly log: AppLog;
  readonly #own: AppMetrics;
  /** The same under the names of Python. */
  declare readonly model_name: string;
  declare readonly system_properties: SystemProperties;
  declare readonly request_ids: Context['requestIds'];
  declare readonly request_processor: Context['requestProcessor'];
  declare readonly get_request_id: Context['getRequestId'];
  declare readonly get_request_header: Context['getRequestHeader'];
  declare readonly get_all_request_header: Context['getAllRequestHeaders'];
  declare readonly get_parts: Context['getParts'];
  declare readonly set_response_content_type: Context['setResponseContentType'];
  declare readonly get_response_content_type: Context['getResponseContentType'];
  declare readonly set_response_header: Context['setResponseHeader'];
  declare readonly get_response_headers: Context['getResponseHeaders'];
  declare readonly set_response_status: Context['setResponseStatus'];
  declare readonly set_all_response_status: Context['setAllResponseStatus'];
  declare readonly get_response_status: Context['getResponseStatus'];
  #metrics: MetricsStore | null = null;
  #items: readonly ReadItem[] = [];
  /** Null while the model is being loaded. */
  #requests: readonly ItemRequest[] | null = null;
  #processors: RequestProcessor[] = [];

  static {
    beginBatch = (context, items, requests) => {
      context.#items = items;
      context.#requests = requests;
      context.#processors = [];
      context.#metrics = null;
    };
    endBatch = (context) => {
      context.#items = [];
      context.#processors = [];
    };
    takeContextMetrics = (context) => (context.#metrics === null ? [] : takeMetrics(context.#metrics));
    processorOf = (context, idx) => context.#processors[idx];
    addPythonNames(Context.prototype, {
      modelName: 'model_name',
      systemProperties: 'system_properties',
      getAllRequestHeaders: 'get_all_request_header',
    });
  }

  constructor({ modelName, manifest, systemProperties, worker, log, metrics }: ModelFacts) {
    this.modelName = modelName;
    this.manifest = manifest;
    this.systemProperties = systemProperties;
    this.worker = worker;
    this.log = log;
    this.#own = metrics;
  }

  /** Metrics of this batch, or of the loading. */
  get metrics(): MetricsStore {
    return (this.#metrics ??= new MetricsStore(this.modelName, this.#requests?.length ?? 0, this.#own));
  }

  /** Request ids by the index of their items; null while the model is being loaded. */
  get requestIds(): ReadonlyMap<number, string> | null {
    return this.#requests === null ? null : new Map(this.#requests.map(({ requestId }, i) => [i, requestId]));
  }

  /** One for each item; null while the model is being loaded. */
  get requestProcessor(): readonly RequestProcessor[] | null {
    return this.#requests === null ? null : this.#requests.map((_, idx) => this.#processor(idx));
  }

  /** The id of a request, which is also in its reply and in the log; undefined if there is no such item. */
  getRequestId(idx = 0): string | undefined {
    return this.#requests?.[idx]?.requestId;
  }

  /** A request header, looked up in any case; undefined if it was not sent. */
  getRequestHeader(idx: number, name: string): string | undefined {
    return this.#processor(idx).getRequestProperty(name);
  }

  /** All request headers, looked up in any case, and `{ 'content-type': … }` for each field of the item. */
  getAllRequestHeaders(idx: number): RequestProperties {
    return this.#processor(idx).getRequestProperties();
  }

  /** Every field of the request as it was sent, repeated ones included; empty once the batch is answered. */
  getParts(idx: number): ItemPart[] {
    this.#request(idx);
    return this.#items[idx]?.parts() ?? [];
  }

  /** The job of the first item; null if its client waits, and while the model is being loaded. */
  get job(): JobInfo | null {
    return this.jobs?.[0] ?? null;
  }

  /** One for each item: the job that it is an attempt at; null while the model is being loaded. */
  get jobs(): readonly (JobInfo | null)[] | null {
    return this.#requests === null ? null : this.#requests.map(({ job }) => job);
  }

  /** Reports how far the job of an item is, or those of all; see `InferenceContext.progress`. */
  progress(fraction: number, text?: string, idx?: number): void {
    const requests = idx === undefined ? (this.#requests ?? []) : [this.#request(idx)];
    for (const request of requests) request.progress(fraction, text);
  }

  /** Aborts when no client waits for this item any more: it has left, or a limit has passed. */
  signal(idx = 0): AbortSignal {
    return this.#request(idx).signal;
  }

  /**
   * Sets the content type of an answer. By default it follows from the result: `application/json`, `text/plain;
   * charset=utf-8` or `application/octet-stream`.
   */
  setResponseContentType(idx: number, value: string): void {
    this.setResponseHeader(idx, 'content-type', value);
  }

  getResponseContentType(idx: number): string | undefined {
    return this.#processor(idx).getResponseHeader('content-type');
  }

  /** Sets a header of the answer and replaces one of the same name. @throws TypeError if it contains a line break */
  setResponseHeader(idx: number, name: string, value: unknown): void {
    this.#processor(idx).addResponseProperty(name, value);
  }

  getResponseHeaders(idx: number): Record<string, string> {
    return this.#processor(idx).getResponseHeaders();
  }

  /** Sets the status of one item, and its reason phrase. @throws RangeError unless it is an integer from 200 to 599 */
  setResponseStatus(code = 200, phrase = '', idx = 0): void {
    this.#processor(idx).reportStatus(code, phrase);
  }

  /** Sets the status of every item of the batch. */
  setAllResponseStatus(code = 200, phrase = ''): void {
    for (const processor of this.requestProcessor ?? []) processor.reportStatus(code, phrase);
  }

  /** Returns status and reason phrase of an item. */
  getResponseStatus(idx: number): [code: number, phrase: string] {
    const processor = this.#processor(idx);
    return [processor.getResponseStatusCode(), processor.getResponseStatusPhrase()];
  }

  #processor(idx: number): RequestProcessor {
    const request = this.#request(idx);
    return (this.#processors[idx] ??= new RequestProcessor(
      request,
      () => this.#items[idx]?.fieldTypes() ?? {},
    ));
  }

  #request(idx: number): ItemRequest {
    const request = this.#requests?.[idx];
    if (request !== undefined) return request;
    if (this.#requests === null) throw new RangeError(`there is no item ${idx} while the model is loaded`);
    throw new RangeError(`there is no item ${idx}; this batch has ${this.#requests.length} items`);
  }
}
