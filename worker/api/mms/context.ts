/** `context`: what a custom service knows of its model, of its worker, and of the requests that it answers. */
import type { AppLog, AppMetrics, WorkerInfo } from '../types.js';
import type { ItemPart, Manifest, ReadItem } from './item.js';
import { MetricsStore, takeMetrics, type StoredMetric } from './metrics-store.js';
import type { RequestProperties } from './request-properties.js';
import { RequestProcessor, type ItemRequest } from './request-processor.js';

/** The same facts by their names in Python and in TypeScript. */
export interface SystemProperties {
  /** Absolute path of the model's folder, in which the worker works. */
  readonly model_dir: string;
  readonly modelDir: string;
  /** The GPU to use, counted among those that this worker sees: 0, for it sees one; null on the CPU. */
  readonly gpu_id: number | null;
  readonly gpuId: number | null;
  /** The most items that a batch may have, as configured. */
  readonly batch_size: number;
  readonly batchSize: number;
  /** `MMS`, as handlers expect it. */
  readonly server_name: string;
  readonly serverName: string;
  readonly server_version: string;
  readonly serverVersion: string;
}

/** What stays the same as long as the worker lives. */
export interface ModelFacts {
  readonly modelName: string;
  readonly manifest: Manifest | null;
  readonly systemProperties: SystemProperties;
  readonly worker: WorkerInfo;
  readonly log: AppLog;
  readonly metrics: AppMetrics;
}

/** Gives the context the requests of the next batch, and a new store of metrics. */
export let beginBatch: (
  context: Context,
  items: readonly ReadItem[],
  requests: readonly ItemRequest[],
) => void;

/** The batch is answered: what its requests have brought goes; their ids and headers stay until the next one. */
export let endBatch: (context: Context) => void;

/** Takes what was measured since it was last taken. */
export let takeContextMetrics: (context: Context) => readonly StoredMetric[];

/** What was set for the answer to an item; undefined if the service has not asked for it. */
export let processorOf: (context: Context, idx: number) => RequestProcessor | undefined;

/**
 * One for the whole life of a worker. What belongs to requests is replaced before each batch; `idx` is the number of an
 * item in `data`. While the model is loaded there are no items: methods that need one throw then.
 */
export class Context {
  readonly modelName: string;
  /** `MAR-INF/MANIFEST.json` of the model's folder; null if there is none. */
  readonly manifest: Manifest | null;
  readonly systemProperties: SystemProperties;
  readonly worker: WorkerInfo;
  readonly log: AppLog;
  readonly #own: AppMetrics;
  #metrics: MetricsStore | null = null;
  #items: readonly ReadItem[] = [];
  /** Null while the model is loaded. */
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
  }

  constructor({ modelName, manifest, systemProperties, worker, log, metrics }: ModelFacts) {
    this.modelName = modelName;
    this.manifest = manifest;
    this.systemProperties = systemProperties;
    this.worker = worker;
    this.log = log;
    this.#own = metrics;
  }

  /** Metrics of this batch, or of the load. */
  get metrics(): MetricsStore {
    return (this.#metrics ??= new MetricsStore(this.modelName, this.#requests?.length ?? 0, this.#own));
  }

  /** Ids of the requests by the numbers of their items; null while the model is loaded. */
  get requestIds(): ReadonlyMap<number, string> | null {
    return this.#requests === null ? null : new Map(this.#requests.map(({ requestId }, i) => [i, requestId]));
  }

  /** One for each item; null while the model is loaded. */
  get requestProcessor(): readonly RequestProcessor[] | null {
    return this.#requests === null ? null : this.#requests.map((_, idx) => this.#processor(idx));
  }

  /** The id of a request, which is also in its reply and in the log; undefined if there is no such item. */
  getRequestId(idx = 0): string | undefined {
    return this.#requests?.[idx]?.requestId;
  }

  /** A header of the request, by its name in any case; undefined if it was not sent. */
  getRequestHeader(idx: number, name: string): string | undefined {
    return this.#processor(idx).getRequestProperty(name);
  }

  /** All headers of the request, by names in any case, and `{ 'content-type': … }` for each field of the item. */
  getAllRequestHeaders(idx: number): RequestProperties {
    return this.#processor(idx).getRequestProperties();
  }

  /** Every field of the request as it was sent, those that come again included; none once the batch is answered. */
  getParts(idx: number): ItemPart[] {
    this.#request(idx);
    return this.#items[idx]?.parts() ?? [];
  }

  /** Aborts when nobody waits for this item any more: its client has left, or a limit has passed. */
  signal(idx = 0): AbortSignal {
    return this.#request(idx).signal;
  }

  /** Without it the type follows from the result: `application/json`, `text/plain; charset=utf-8` or `application/octet-stream`. */
  setResponseContentType(idx: number, value: string): void {
    this.setResponseHeader(idx, 'content-type', value);
  }

  getResponseContentType(idx: number): string | undefined {
    return this.#processor(idx).getResponseHeader('content-type');
  }

  /** Sets a header of the answer, in place of one of the same name. @throws TypeError if it breaks the line */
  setResponseHeader(idx: number, name: string, value: unknown): void {
    this.#processor(idx).addResponseProperty(name, value);
  }

  getResponseHeaders(idx: number): Record<string, string> {
    return this.#processor(idx).getResponseHeaders();
  }

  /** Sets the status of one item, and the phrase beside it. @throws RangeError unless it is a whole number from 200 to 599 */
  setResponseStatus(code = 200, phrase = '', idx = 0): void {
    this.#processor(idx).reportStatus(code, phrase);
  }

  /** Sets the status of every item of the batch. */
  setAllResponseStatus(code = 200, phrase = ''): void {
    for (const processor of this.requestProcessor ?? []) processor.reportStatus(code, phrase);
  }

  /** Status and phrase of an item. */
  getResponseStatus(idx: number): [code: number, phrase: string] {
    const processor = this.#processor(idx);
    return [processor.getResponseStatusCode(), processor.getResponseStatusPhrase()];
  }

  /** The same as `modelName`. */
  get model_name(): string {
    return this.modelName;
  }

  /** The same as `systemProperties`. */
  get system_properties(): SystemProperties {
    return this.systemProperties;
  }

  /** The same as `requestIds`. */
  get request_ids(): ReadonlyMap<number, string> | null {
    return this.requestIds;
  }

  /** The same as `requestProcessor`. */
  get request_processor(): readonly RequestProcessor[] | null {
    return this.requestProcessor;
  }

  /** The same as `getRequestId`. */
  get_request_id(idx = 0): string | undefined {
    return this.getRequestId(idx);
  }

  /** The same as `getRequestHeader`. */
  get_request_header(idx: number, key: string): string | undefined {
    return this.getRequestHeader(idx, key);
  }

  /** The same as `getAllRequestHeaders`. */
  get_all_request_header(idx: number): RequestProperties {
    return this.getAllRequestHeaders(idx);
  }

  /** The same as `getParts`. */
  get_parts(idx: number): ItemPart[] {
    return this.getParts(idx);
  }

  /** The same as `setResponseContentType`. */
  set_response_content_type(idx: number, value: string): void {
    this.setResponseContentType(idx, value);
  }

  /** The same as `getResponseContentType`. */
  get_response_content_type(idx: number): string | undefined {
    return this.getResponseContentType(idx);
  }

  /** The same as `setResponseHeader`. */
  set_response_header(idx: number, key: string, value: unknown): void {
    this.setResponseHeader(idx, key, value);
  }

  /** The same as `getResponseHeaders`. */
  get_response_headers(idx: number): Record<string, string> {
    return this.getResponseHeaders(idx);
  }

  /** The same as `setResponseStatus`. */
  set_response_status(code = 200, phrase = '', idx = 0): void {
    this.setResponseStatus(code, phrase, idx);
  }

  /** The same as `setAllResponseStatus`. */
  set_all_response_status(code = 200, phrase = ''): void {
    this.setAllResponseStatus(code, phrase);
  }

  /** The same as `getResponseStatus`. */
  get_response_status(idx: number): [code: number, phrase: string] {
    return this.getResponseStatus(idx);
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
    throw new RangeError(`there is no item ${idx}; this batch has ${this.#requests.length}`);
  }
}
