/** The handler of requests over real HTTP, with what a test gives it in place of a server's parts. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { ServeError } from '../../../protocol/errors.js';
import {
  type Admission,
  Arrivals,
  ByteBudget,
  Place,
  UnroutedBodies,
} from '../../../supervisor/dispatch/arrivals.js';
import type { BatchWorker } from '../../../supervisor/dispatch/batcher.js';
import type { Call } from '../../../supervisor/dispatch/call.js';
import { ApiKeys } from '../../../supervisor/http/access/api-keys.js';
import type { Backend, RequestObserver } from '../../../supervisor/http/request/request-context.js';
import type { Dialects } from '../../../supervisor/http/dialects/index.js';
import { FrontHandler } from '../../../supervisor/http/handler.js';
import type { JobStore } from '../../../supervisor/jobs/job-store.js';
import { KeptJobs } from '../../../supervisor/jobs/kept-jobs.js';
import { MemoryStore } from '../../../supervisor/jobs/memory-store.js';
import type { Models } from '../../../supervisor/models/models.js';
import { digestOf } from '../../../supervisor/options/secrets.js';

export interface ServedParts extends Partial<Pick<Backend, 'jobs'>> {
  readonly models: Models;
  readonly observer?: Partial<RequestObserver>;
  /** Default: the dialects of the main listener. */
  readonly dialects?: Dialects;
  readonly corsOrigin?: '*';
  /** API keys; none are needed without. */
  readonly keys?: readonly string[];
}

/** Resolves to the address, once it listens. Closed when the test ends. */
export async function serveHandler(
  t: TestContext,
  { keys = [], dialects, corsOrigin, observer = {}, ...parts }: ServedParts,
): Promise<string> {
  const backend = {
    options: { maxBody: 1e6, bodyTimeout: 1e9, corsOrigin: corsOrigin ?? null },
    unroutedBodies: new UnroutedBodies(),
    log: {},
    posts: { count: 0 },
    keys: new ApiKeys(keys.map((key) => digestOf(key))),
    jobs: countedJobs(),
    webhooks: { send: () => true },
    end: { isNear: false },
    observer: { settled() {}, refused() {}, answered() {}, broken() {}, cut() {}, ...observer },
    ...parts,
  } as unknown as Backend;
  const handler = new FrontHandler(backend, dialects);
  const server = createServer((request, response) => handler.request(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    void backend.jobs.close();
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The bounds of the jobs of a server, by default. */
export const MEMORY = { retentionMs: 15 * 60_000, maxBytes: 256 * 1024 ** 2 };

/** Kept jobs whose ids are 1, 2, 3. */
export function countedJobs(store: JobStore = new MemoryStore(MEMORY)): KeptJobs {
  let ids = 0;
  return new KeptJobs({
    newId: () => String((ids += 1)),
    statusOf: () => 500,
    store,
    maxResultBytes: 1e6,
  });
}

/** Pulls the jobs of the model `name` as they come; `onJob` gets each one, which nothing runs. */
export function pullJobs(jobs: KeptJobs, name: string, onJob: (call: Call) => void): void {
  const pump = (): void => {
    if (feed.waiting === 0) return;
    void feed.pull({ maxBatch: () => 1 } as unknown as BatchWorker).then((pulled) => pulled.forEach(onJob));
  };
  const target = { model: name, version: '1', isDefault: true, routes: new Map([['/', 1]]) };
  const feed = jobs.openFeed({
    name,
    target: () => target,
    isLoaded: () => true,
    pump,
  });
}

/** Calls that arrive at a model without limits. */
export function freeArrivals(): Arrivals {
  return new Arrivals(new ByteBudget(Infinity), () => new ServeError('SERVE_QUEUE_FULL'));
}

export interface FakeModelParts {
  /** By default no call may come. */
  readonly submit?: (call: Call, place: Admission) => void;
  /** By default there is always a place. */
  readonly admit?: () => Place;
  readonly kind?: 'handler' | 'background';
}

/** A model with the one route `/`, as far as a call's way to its queue goes. */
export function fakeModel(
  name: string,
  { submit = refuse, admit = () => new Place(freeArrivals()), kind = 'handler' }: FakeModelParts = {},
): FakeModel {
  return {
    spec: { name, version: '1' },
    routes: new Map([['/', { path: '/', kind, input: 'any', webhook: '', maxBatch: 1, attempts: 1 }]]),
    dispatcher: { admit, submit },
    health: { noWorkerError: null },
  };
}

export interface FakeModel {
  readonly spec: { readonly name: string; readonly version: string };
  readonly routes: ReadonlyMap<string, object>;
  readonly dispatcher: {
    admit(): Place;
    submit(call: Call, place: Admission): void;
  };
  readonly health: { readonly noWorkerError: null };
}

function refuse(): never {
  throw new Error('no call was expected');
}

/** A registry of one model. */
export function onlyModel(model: FakeModel): Models {
  return { default: model, all: () => [model], find: () => model } as unknown as Models;
}
