/** Describes models and their workers, lists them, and sums them up for `/ping`, as Multi Model Server does. */
import { ServeError } from '../../../../protocol/errors.js';
import type { Model } from '../../../models/model.js';
import type { ModelRef, Registered } from '../../../models/models.js';
import type { RequestContext } from '../../request/request-context.js';
import { hiddenBecause } from '../../access/app-words.js';
import type { AnswerContext } from '../../answer/koa-answers.js';
import type { ModelRecord, ProcessRecord } from '../../request/model-management.js';
import { writeMmsJson } from './answer-style.js';
import { notFound, queryParams } from './request.js';

/** `GET /models`: a page of names, and the token of the next page if there is one. */
export function list(ctx: AnswerContext, context: RequestContext): void {
  const params = queryParams(context);
  const limit = params.number('limit') ?? MOST_LISTED;
  const size = limit < 1 || limit > MOST_LISTED ? MOST_LISTED : limit; // a page without entries would link to itself
  const start = Math.max(0, params.number('next_page_token') ?? 0);
  const models = listed(records(context), params.text('model_name_pattern') ?? '*');
  const end = start + size;
  writeMmsJson(ctx, 200, {
    nextPageToken: end < models.length ? String(end) : undefined,
    models: models.slice(start, end),
  });
}

const MOST_LISTED = 100;

/** One entry per name, that of its default version. */
function listed(all: readonly ModelRecord[], pattern: string): { modelName: string; modelUrl: string }[] {
  const byName = new Map<string, ModelRecord>();
  for (const record of all)
    if (record.isDefaultVersion || !byName.has(record.name)) byName.set(record.name, record);
  return [...byName.values()]
    .filter(({ name }) => matchesPattern(name, pattern))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, model }) => ({ modelName: name, modelUrl: model.spec.url }));
}

/** `GET /models/{model}` and `/models/{model}/{version}`; without a version the default one. @throws as `find` does */
export function describe(ctx: AnswerContext, context: RequestContext, ref: ModelRef): void {
  const versions = versionsOf(records(context), ref.name);
  const isRequested = ({ version, isDefaultVersion }: ModelRecord): boolean =>
    ref.version === undefined ? isDefaultVersion : version === ref.version;
  const record = versions.find(isRequested) ?? (ref.version === undefined ? versions[0] : undefined);
  if (record === undefined) throw notFound(new ServeError('SERVE_VERSION_NOT_FOUND'), ref);
  writeMmsJson(ctx, 200, modelView(record));
}

/** `GET /models/{model}/all`: every version. */
export function describeAll(ctx: AnswerContext, context: RequestContext, name: string): void {
  writeMmsJson(ctx, 200, versionsOf(records(context), name).map(modelView));
}

function records(context: RequestContext): readonly ModelRecord[] {
  return context.backend.describeModels(hiddenBecause(context) === null);
}

/** @throws SERVE_MODEL_NOT_FOUND */
function versionsOf(all: readonly ModelRecord[], name: string): ModelRecord[] {
  const versions = all.filter((record) => record.name === name);
  if (versions.length > 0) return versions;
  throw notFound(new ServeError('SERVE_MODEL_NOT_FOUND'), { name });
}

function modelView(record: ModelRecord): object {
  const { queue, model } = record;
  const { batchSize, maxBatchDelay, runTimeout, initTimeout } = model.options;
  const waitingCalls = queue.waiting + queue.arriving;
  return {
    modelName: record.name,
    modelVersion: record.version,
    modelUrl: model.spec.url,
    runtime: record.runtime,
    minWorkers: record.minWorkers,
    maxWorkers: record.maxWorkers,
    batchSize,
    maxBatchDelay,
    responseTimeout: Math.ceil(runTimeout / 1000),
    startupTimeout: Math.floor(initTimeout / 1000),
    loadedAtStartup: record.loadedAtStartup,
    defaultVersion: record.isDefaultVersion,
    status: statusOf(record),
    workers: record.processes.map(workerView),
    metrics: {
      rejectedRequests: record.recentCalls.rejected,
      waitingQueueSize: waitingCalls,
      requests: record.recentCalls.requests,
    },
    jobQueueStatus: {
      remainingCapacity: Math.max(0, queue.maxCalls - waitingCalls),
      pendingRequests: waitingCalls,
    },
  };
}

function statusOf({ state, minWorkers, processes }: ModelRecord): string {
  if (state === 'unloading') return 'UNLOADING';
  const ready = processes.filter((one) => one.state === 'ready').length;
  const needsNone = state === 'idle' || state === 'unloaded';
  if (hasItsWorkers(ready, minWorkers, needsNone)) return 'Healthy';
  return ready > 0 ? 'Partial Healthy' : 'Unhealthy';
}

function workerView(worker: ProcessRecord): object {
  return {
    id: String(worker.index),
    startTime: worker.startedAt?.toISOString(),
    status: worker.state.toUpperCase(),
    gpu: worker.device !== 'cpu',
    memoryUsage: worker.memoryBytes,
    pid: worker.pid ?? undefined,
    restarts: worker.restarts,
    lastError: worker.lastError === '' ? undefined : worker.lastError,
  };
}

type Pinged = Pick<Registered, 'bounds' | 'isLeaving'> & {
  readonly model: {
    readonly crew: Pick<Model['crew'], 'ready'>;
    readonly health: Pick<Model['health'], 'state' | 'takesCalls'>;
  };
};

/**
 * Returns the result of `/ping` over all models; `Healthy` if there are none. A model that is being unregistered does not count.
 */
export function pingStatus(registered: readonly Pinged[]): string {
  const present = registered.filter(({ isLeaving }) => !isLeaving);
  const isLoaded = ({ model: { crew, health }, bounds }: Pinged): boolean =>
    hasItsWorkers(crew.ready.length, bounds.min, health.state === 'idle' || !health.takesCalls);
  if (present.every(isLoaded)) return 'Healthy';
  return present.some(({ model: { crew, health } }) => crew.ready.length > 0 || health.state === 'idle')
    ? 'Partial Healthy'
    : 'Unhealthy';
}

/**
 * Whether a model has its minimum number of workers, and at least one ready worker if it needs any. `needsNone`: it may do
 * without now, because it is idle or takes no calls.
 */
function hasItsWorkers(ready: number, min: number, needsNone: boolean): boolean {
  return ready >= min && (ready > 0 || needsNone);
}

/** Whether a whole name matches a pattern; `*` matches any text, `?` one character. */
export function matchesPattern(name: string, pattern: string): boolean {
  let [at, star, retry] = [0, -1, 0];
  for (let i = 0; i < name.length;) {
    if (pattern[at] === '*') {
      [star, retry] = [at, i];
      at += 1;
    } else if (pattern[at] === '?' || pattern[at] === name[i]) {
      [at, i] = [at + 1, i + 1];
    } else if (star >= 0) {
      // The last star matches one character more; earlier stars need not be tried again.
      retry += 1;
      [at, i] = [star + 1, retry];
    } else {
      return false;
    }
  }
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
}
