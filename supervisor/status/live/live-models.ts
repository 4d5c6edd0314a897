/** Describes workers, apps and the newest jobs as they are now, for the page. */
import type { LoadedInfo } from '../../../protocol/wire/messages.js';
import { mainRouteOf } from '../../models/main-route.js';
import type { FindCallPaths } from '../../http/request/call-paths.js';
import type { WorkerStatus } from '../../models/model-status.js';
import type { Registered } from '../../models/models.js';
import type { WorkerHandle } from '../../processes/worker-handle.js';
import type { Slot } from '../../slots/slot.js';
import type { LiveDescription, LiveWorker, LiveJob } from '../live-types.js';
import type { JobRecord } from '../../jobs/job-record.js';
import { shownMessage } from '../../http/access/app-words.js';

/** The description that an app gives of itself, and the facts that it follows from. */
export interface DescribedApp {
  readonly info: LoadedInfo;
  readonly isDefault: boolean;
  readonly isDefaultVersion: boolean;
  readonly description: LiveDescription;
}

/** Describes the app of a model, or returns `known` if nothing has changed; null until it is loaded. `isDefault`: of the server. */
export function describeApp(
  known: DescribedApp | null,
  { model, isDefault: isDefaultVersion }: Registered,
  isDefault: boolean,
  key: number,
  findPaths: FindCallPaths,
): DescribedApp | null {
  const { info, routes, spec } = model;
  if (info === null || routes === null) return null;
  const facts = { info, isDefault, isDefaultVersion };
  if (known?.info === info && known.isDefault === isDefault && known.isDefaultVersion === isDefaultVersion)
    return known;
  const main = mainRouteOf(routes);
  const described = info.routes.map((route) => {
    const { path, kind, input, schemas } = route;
    const schema = schemas?.input ?? '';
    const isMain = path === main;
    return {
      path,
      kind,
      input,
      schema: schema.length > MAX_FORM_CHARS ? '' : schema,
      paths: findPaths({ model: spec, route, isDefault, isDefaultVersion, isMain, task: info.task }),
    };
  });
  const { example, signature = null } = info;
  return { ...facts, description: { key, routes: described, example, signature } };
}

/** No form has so many fields, and every viewer gets all schemas. */
const MAX_FORM_CHARS = 16_384;

/** All workers of a model fail for the same reason, and `LiveDeath.why` has more of it. */
const MAX_FAILURE_CHARS = 300;

/** Adds to the status of a worker what only the page shows. `modelAt`: when its model was registered. */
export function describeWorker(
  { worker, failure, lastDeath }: Slot,
  { lastExit: _, ...status }: WorkerStatus,
  modelAt: number,
  showsWords: boolean,
): Omit<LiveWorker, 'memoryBytes' | 'lastDeath'> {
  const message = showsWords ? (failure?.detail.slice(0, MAX_FAILURE_CHARS) ?? '') : '';
  return {
    ...status,
    since: worker === null ? (lastDeath?.at.getTime() ?? modelAt) : Date.now() - Math.round(worker.stateMs),
    startedAt: worker?.startedAt.getTime() ?? null,
    ...runningCall(worker),
    failure: failure && { code: failure.code, message },
  };
}

function runningCall(worker: WorkerHandle | null): Pick<LiveWorker, 'runningMs' | 'requestId'> {
  const beganAtMs = worker === null || worker.load === 0 ? null : worker.lookUpCallBegan();
  if (worker === null || beganAtMs === null) return { runningMs: null, requestId: '' };
  return {
    runningMs: Math.round(performance.now() - beganAtMs),
    requestId: worker.lookUpRunningRequestId(),
  };
}

/** The messages of 100 jobs are sent to each viewer whenever one job changes; the job's own page has all of one. */
export const MAX_MESSAGE_CHARS = 300;

/** Without `showsWords` a job has no id: with an id, any client may read and cancel it. */
export function describeJob(record: JobRecord, showsWords: boolean): LiveJob {
  const { id, requestId, model, version, route, state, createdAt, progress, end } = record;
  const error = end?.error ?? null;
  return {
    id: showsWords ? id : '',
    requestId,
    model,
    version,
    route,
    state,
    createdAt,
    endedAt: end?.endedAt ?? null,
    runMs: Math.round((end?.runMs ?? 0) * 100) / 100,
    progress: progress === null || showsWords ? progress : { ...progress, text: '' },
    error: error && { code: error.code, message: shortened(shownMessage(error, showsWords)) },
  };
}

function shortened(message: string): string {
  return message.length > MAX_MESSAGE_CHARS ? `${message.slice(0, MAX_MESSAGE_CHARS - 1)}…` : message;
}
