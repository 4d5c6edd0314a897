/** The parts of a server that the live data is about, as far as it reads them; and viewers that keep what they get. */
import type { HiddenBecause } from '../../../../supervisor/http/access/app-words.js';
import type { Viewer } from '../../../../supervisor/http/request/served-page.js';
import { RecentLines } from '../../../../supervisor/observe/recent-lines.js';
import { CallCounts } from '../../../../supervisor/metrics/call-counts.js';
import type { Model } from '../../../../supervisor/models/model.js';
import type { LiveEvents } from '../../../../supervisor/status/live-types.js';
import type { LiveSources } from '../../../../supervisor/status/live/live-view.js';

export interface FakeSlot {
  readonly index: number;
  readonly pid: number;
}

export interface FakeServer extends LiveSources {
  readonly models: Model[];
  /** Number of processes whose memory was read, and of looks at the GPUs. */
  readonly reads: { memory: number; gpus: number };
}

/** A model with idle workers, whose pids begin at `firstPid`. */
export function fakeModel(name: string, workers = 1, firstPid = 100): Model {
  const routes = [{ path: '/', kind: 'handler', input: 'any', webhook: '', maxBatch: 1 }];
  const slots = Array.from({ length: workers }, (_, index) => {
    const worker = {
      state: 'ready',
      isFrozen: false,
      load: 0,
      pid: firstPid + index,
      stateMs: 5,
      uptimeMs: 5,
      initMs: null,
      startedAt: new Date(),
    };
    const state = { name: 'live', worker };
    const counts = { calls: 0, restarts: 0 };
    return {
      index,
      device: 'cpu',
      worker,
      workers: [worker],
      state,
      ...counts,
      failure: null,
      lastDeath: null,
    };
  });
  return {
    spec: { name, version: '1', app: `/srv/${name}.ts`, program: { label: 'node' } },
    options: { queueSize: 1024, batchSize: 1, initTimeout: 1, runTimeout: 1 },
    dispatcher: {
      queued: 0,
      arriving: 0,
      inFlight: 0,
      waitingBytes: 0,
      budget: { limitBytes: 1 },
      service: { meanMs: null, slowMs: null },
    },
    info: { routes, example: '{}' },
    routes: new Map(routes.map((route) => [route.path, route])),
    crew: { all: slots, standbys: [], wanted: workers, ready: { length: workers } },
    health: { standstill: null, problem: null, state: 'ready', takesCalls: true },
    sizing: { rules: null },
  } as unknown as Model;
}

export function fakeServer(models: Model[]): FakeServer {
  const reads = { memory: 0, gpus: 0 };
  const registry = {
    get default() {
      return models[0] ?? null;
    },
    describe: () =>
      models.map((model) => ({
        model,
        isFirst: true,
        isDefault: true,
        isLeaving: false,
        bounds: { min: 1, max: 1 },
      })),
  };
  return {
    models,
    reads,
    facts: {
      startedAt: new Date(),
      eventLoopDelay: { percentile: () => 0, max: 0 },
      replies: new Map(),
    } as unknown as LiveSources['facts'],
    lines: new RecentLines(),
    counts: new CallCounts(),
    jobs: {
      guard: { store: { name: 'memory' }, problem: null },
      list: () => Promise.resolve({ records: [], next: null }),
    } as unknown as LiveSources['jobs'],
    spares: { status: [] },
    memory: null,
    unsent: { describe: () => ({ clients: 0, bytes: 0, maxBytes: 1 }) },
    registry,
    findPaths: ({ route }) => [{ path: route.path, dialect: 'banana', isDeprecated: false }],
    readiness: () => ({ ready: true, state: 'ready', body: {} }),
    readMemory: () => {
      reads.memory += 1;
      return 1000;
    },
    readGpus: () => {
      reads.gpus += 1;
      return Promise.resolve([]);
    },
  };
}

export type LiveEvent = {
  readonly [Name in keyof LiveEvents]: { readonly name: Name; readonly data: LiveEvents[Name] };
}[keyof LiveEvents];

export class FakeViewer implements Viewer {
  readonly hidden: HiddenBecause | null;
  readonly leavesFirst: boolean;
  readonly got: Buffer[] = [];
  reads = true;
  isCut = false;
  isEnded = false;
  leave = (): void => {};

  constructor(hidden: HiddenBecause | null = null, leavesFirst = false) {
    this.hidden = hidden;
    this.leavesFirst = leavesFirst;
  }

  get events(): LiveEvent[] {
    return eventsIn(Buffer.concat(this.got).toString());
  }

  /** The data of the last event of this name. */
  last<Name extends keyof LiveEvents>(name: Name): LiveEvents[Name] | undefined {
    return this.events.findLast((event) => event.name === name)?.data as LiveEvents[Name] | undefined;
  }

  get isFree(): boolean {
    return this.reads;
  }

  send(bytes: Buffer): boolean {
    if (this.reads) this.got.push(bytes);
    return this.reads;
  }

  end(bytes: Buffer): void {
    this.got.push(bytes);
    this.isEnded = true;
  }

  cut(): void {
    this.isCut = true;
  }

  onceGone(callback: () => void): void {
    this.leave = callback;
  }
}

export function eventsIn(text: string): LiveEvent[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((event) => {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? [];
      return { name, data: JSON.parse(data ?? '') as unknown } as LiveEvent;
    });
}
