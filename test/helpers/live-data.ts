/** Data of the page at `/`, as the server would send it, for tests of the page alone. */
import type {
  LiveCall,
  LiveDeath,
  LiveDescription,
  LiveHistory,
  LiveModel,
  LiveRoute,
  LiveSample,
  LiveServer,
  LiveSnapshot,
  LiveWorker,
} from '../../supervisor/status/live-types.js';

/** The time at which the data begins. */
export const START = Date.UTC(2026, 0, 5, 12, 0, 0);

export function liveSample(changes: Partial<LiveSample> = {}): LiveSample {
  return {
    calls: 0,
    failed: 0,
    waiting: 0,
    arriving: 0,
    running: 0,
    queueP50Ms: null,
    queueP95Ms: null,
    queueP99Ms: null,
    runP50Ms: null,
    runP95Ms: null,
    runP99Ms: null,
    batchSize: null,
    readyWorkers: 1,
    memoryBytes: null,
    ...changes,
  };
}

export function liveWorker(changes: Partial<LiveWorker> = {}): LiveWorker {
  return {
    index: 0,
    state: 'idle',
    standby: false,
    since: START,
    pid: 4711,
    device: 'cpu',
    memoryBytes: 182_000_000,
    uptimeMs: 1000,
    initMs: null,
    startedAt: START,
    runningMs: null,
    requestId: '',
    held: 0,
    calls: 0,
    restarts: 0,
    retryInMs: null,
    waitsFor: null,
    next: null,
    failure: null,
    lastDeath: null,
    ...changes,
  };
}

export function liveModel(changes: Partial<LiveModel> = {}): LiveModel {
  return {
    key: 1,
    name: 'digits',
    version: '1',
    state: 'ready',
    problem: null,
    isLatched: false,
    isDefault: true,
    isDefaultVersion: true,
    loadedAtStartup: true,
    app: 'app.ts',
    runtime: 'node',
    interpreter: null,
    task: null,
    routes: ['/'],
    queue: { waiting: 0, arriving: 0, bytes: 0, maxCalls: 1024, maxBytes: 512_000_000 },
    inFlight: 0,
    standby: { wanted: 0, ready: 0 },
    runMs: { mean: null, slow: null },
    wantedWorkers: 1,
    minWorkers: 1,
    maxWorkers: 1,
    changes: [],
    minute: { queueP95Ms: null, runP95Ms: null },
    batchSize: 1,
    initTimeoutMs: 600_000,
    batches: [],
    workers: [liveWorker()],
    sample: liveSample(),
    errors: {},
    ...changes,
  };
}

export function liveRoute(changes: Partial<LiveRoute> = {}): LiveRoute {
  return {
    path: '/',
    kind: 'handler',
    input: 'any',
    schema: '',
    paths: [{ path: '/', dialect: 'banana', isDeprecated: false }],
    ...changes,
  };
}

export function liveDescription(changes: Partial<LiveDescription> = {}): LiveDescription {
  return { key: 1, routes: [liveRoute()], example: '', signature: null, ...changes };
}

export function liveServer(changes: Partial<LiveServer> = {}): LiveServer {
  return {
    state: 'ready',
    version: '0.1.0',
    pid: 4700,
    startedAt: new Date(START).toISOString(),
    uptimeMs: 1000,
    memory: null,
    spares: [],
    replies: {},
    unsent: { clients: 0, bytes: 0, maxBytes: 512_000_000 },
    jobs: { store: 'memory', problem: null },
    front: { rssBytes: 91_000_000, eventLoopDelayMs: { p50: 0.1, p99: 1.2, max: 14 } },
    gpus: [],
    viewers: 1,
    ...changes,
  };
}

export function liveCall(changes: Partial<LiveCall> = {}): LiveCall {
  return {
    id: 1,
    at: START,
    model: 'digits',
    version: '1',
    route: '/',
    method: 'POST',
    path: '/',
    status: 200,
    code: 'ok',
    queueMs: 0.21,
    runMs: 1.4,
    inBytes: 312,
    outBytes: 188,
    worker: 0,
    requestId: 'call-1',
    error: null,
    ...changes,
  };
}

export function liveDeath(changes: Partial<LiveDeath> = {}): LiveDeath {
  return {
    id: 1,
    at: START,
    key: 1,
    model: 'digits',
    version: '1',
    worker: 0,
    pid: 4711,
    how: 'signal SIGSEGV',
    cause: 'signal',
    during: 'call',
    requestId: 'call-1',
    uptimeMs: 61_000,
    calls: 12,
    hint: 'native code crashed; the last lines of stderr may say where',
    why: '',
    stderr: [],
    ...changes,
  };
}

export function liveHistory(changes: Partial<LiveHistory> = {}): LiveHistory {
  return {
    number: 0,
    at: START,
    models: [],
    descriptions: [],
    calls: [],
    deaths: [],
    jobs: [],
    ...changes,
  };
}

export function liveSnapshot(changes: Partial<LiveSnapshot> = {}): LiveSnapshot {
  return {
    number: 1,
    at: START + 1000,
    server: liveServer(),
    models: [],
    descriptions: [],
    calls: [],
    deaths: [],
    jobs: null,
    ...changes,
  };
}
