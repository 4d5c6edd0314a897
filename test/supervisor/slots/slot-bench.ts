/** A real slot driven by hand, and everything that can happen to it. */
import type { TestContext } from 'node:test';
import { Slot, type SlotListener } from '../../../supervisor/slots/slot.js';
import type { SlotState } from '../../../supervisor/slots/slot-state.js';
import { SpawnGate } from '../../../supervisor/slots/spawn-gate.js';
import type { WorkerDeath } from '../../../supervisor/processes/worker-death.js';
import type { WorkerHandle } from '../../../supervisor/processes/worker-handle.js';
import type { RetireLimits, WorkerListener } from '../../../supervisor/processes/worker-listener.js';

const LIMIT = { ms: 1, name: '--a-limit' };

/** A slot with workers that do as they are told, and a time that passes by hand. */
export class Bench {
  readonly gate: SpawnGate;
  readonly slot: Slot;
  readonly spawned: WorkerListener[] = [];
  readonly handles: { state: string }[] = [];
  readonly stopped: number[] = [];
  readonly retired: RetireLimits[] = [];
  readonly states: string[] = [];
  failSpawn = false;
  restartLimit: number;
  /** A worker in another slot was ready. */
  everReady = false;
  readonly #t: TestContext;
  readonly #immediates: (() => void)[] = [];

  constructor(t: TestContext, restartLimit = 1, gate = new SpawnGate(1), device = 'gpu 0') {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    // By hand: Node 20's own mock mixes up an immediate that a timer asks for.
    t.mock.method(globalThis, 'setImmediate', (callback: () => void) => this.#immediates.push(callback));
    t.mock.method(Math, 'random', () => 1);
    this.#t = t;
    this.gate = gate;
    this.restartLimit = restartLimit;
    this.slot = new Slot({
      index: 0,
      device,
      model: 'm',
      gate,
      rules: () => ({ restartLimit: this.restartLimit, everReady: this.everReady }),
      spawn: (listener) => this.#spawn(listener),
      listener: this.#listener(),
    });
  }

  get state(): SlotState['name'] {
    return this.slot.state.name;
  }

  start(): void {
    this.slot.start();
    this.turn();
  }

  /** The gate's next turn of the event loop. */
  turn(): void {
    for (let next = this.#immediates.shift(); next !== undefined; next = this.#immediates.shift()) next();
  }

  pass(ms: number): void {
    this.tick(ms);
    this.turn();
  }

  /** Time passes, and nobody's turn comes. */
  tick(ms: number): void {
    this.#t.mock.timers.tick(ms);
  }

  /** The worker that was started last is ready. */
  ready(): void {
    const handle = this.handles.at(-1);
    if (handle !== undefined) handle.state = 'ready';
    this.spawned.at(-1)?.onReady();
  }

  die(death: Partial<WorkerDeath> = {}): void {
    this.dieAs(this.spawned.length - 1, death);
  }

  /** The worker that was the nth to be started dies; the first is 0. */
  dieAs(nth: number, death: Partial<WorkerDeath> = {}): void {
    this.spawned[nth]?.onGone({ ...HEALTHY, ...death });
  }

  /** Its turn comes, and the system has no process to give. */
  failToStart(): void {
    this.failSpawn = true;
    this.start();
  }

  /** Whether the device is free for another slot. */
  gateIsOpen(): boolean {
    let open = false;
    this.gate.enter(GPU_START, () => (open = true))();
    return open;
  }

  #spawn(listener: WorkerListener): WorkerHandle {
    if (this.failSpawn) throw new Error('no such program');
    this.spawned.push(listener);
    const handle = {
      state: 'initializing',
      finishedCalls: 0,
      stop: (graceMs: number) => this.stopped.push(graceMs),
      retire: (limits: RetireLimits) => this.retired.push(limits),
    };
    this.handles.push(handle);
    return handle as unknown as WorkerHandle;
  }

  #listener(): SlotListener {
    const ignore = (): void => {};
    return {
      onLoaded: () => ({ initTimeout: LIMIT, runTimeout: LIMIT, maxOutputBytes: 1, toldBatch: 1 }),
      onReady: ignore,
      onFinished: ignore,
      onLost: ignore,
      onAppLog: ignore,
      onMetrics: ignore,
      onWebhook: () => false,
      onCallError: ignore,
      onTransition: ignore,
      onSlotChange: (slot) => this.states.push(slot.state.name),
    };
  }
}

/** The start of a slot of another model, on the same GPU. */
export const GPU_START = { device: 'gpu 0', model: 'other', isRetry: false };

export const HEALTHY: WorkerDeath = {
  pid: 1,
  at: new Date(0),
  exit: { code: 1, signal: null },
  how: 'exit code 1',
  cause: 'exit',
  hint: '',
  fatal: null,
  during: 'call',
  call: null,
  uptimeMs: 1010,
  finishedCalls: 3,
  stderrTail: [],
  wanted: false,
};
export const RETIRE: RetireLimits = { finishMs: 20_000, graceMs: 4000 };
export const AT_START: Partial<WorkerDeath> = { during: 'start', finishedCalls: 0 };
export const PERMANENT: Partial<WorkerDeath> = {
  ...AT_START,
  fatal: {
    code: 'SERVE_APP_INVALID',
    message: 'no inference export',
    detail: '',
    permanent: true,
    transient: false,
  },
};

/** How to bring a slot into each of its states. */
export const INTO: Readonly<Record<SlotState['name'], (bench: Bench) => void>> = {
  waiting: () => {},
  live: (bench) => bench.start(),
  renewing: (bench) => {
    bench.start();
    bench.ready();
    bench.slot.renew(RETIRE);
  },
  replacing: (bench) => {
    bench.start();
    bench.slot.replace(RETIRE);
  },
  backoff: (bench) => {
    bench.start();
    bench.die(AT_START);
  },
  latched: (bench) => {
    bench.start();
    bench.die(PERMANENT);
  },
  closing: (bench) => {
    bench.start();
    bench.slot.close(500);
  },
  closed: (bench) => bench.slot.close(500),
};

/** What can happen to a slot, in the words of docs/lifecycle.md. */
export const SLOT_EVENTS = {
  turn: 'Its device and `--spawn-concurrency` allow a start.',
  death: 'Its worker dies during a call, or idle after a finished one: the next one may start at once.',
  badDeath: 'Its worker dies at any other time, or there is no process to be had: the next one has to wait.',
  lastDeath: 'The same, once too often, or of what would happen again: there is no next one.',
  pauseOver: 'The pause before the next start is over.',
  nextReady: 'The next worker is ready.',
  nextDies: 'The next worker dies before it is ready, or there is no process to be had for it.',
  replace: 'The app has changed: the slot begins anew.',
  renew: 'Its worker is to be replaced without a gap; on a GPU, or if it is not ready, as by `replace`.',
  retire: 'Fewer workers are wanted: the slot is given up.',
  serverStops: 'The server stops: no worker follows the present one.',
} as const;

export type SlotEvent = keyof typeof SLOT_EVENTS;

export const HAPPENS: Readonly<Record<SlotEvent, (bench: Bench) => void>> = {
  turn: (bench) => (bench.state === 'waiting' ? bench.start() : bench.turn()),
  death: (bench) => bench.die(),
  badDeath: (bench) => (bench.state === 'waiting' ? bench.failToStart() : bench.die(AT_START)),
  lastDeath: (bench) => {
    bench.restartLimit = 0;
    HAPPENS.badDeath(bench);
  },
  pauseOver: (bench) => bench.tick(30_000),
  nextReady: (bench) => {
    bench.turn();
    bench.ready();
  },
  nextDies: (bench) => {
    bench.turn();
    bench.die(AT_START);
  },
  replace: (bench) => bench.slot.replace(RETIRE),
  renew: (bench) => {
    if (bench.state === 'live') bench.ready();
    bench.slot.renew(RETIRE);
  },
  retire: (bench) => bench.slot.retire(RETIRE),
  serverStops: (bench) => bench.slot.close(500),
};

/** Every state times every event that can happen in it. `slot.test.ts` drives a slot through all; the page prints them. */
export const SLOT_GRID: readonly (readonly [SlotState['name'], SlotEvent, SlotState['name']])[] = [
  ['waiting', 'turn', 'live'],
  ['waiting', 'badDeath', 'backoff'],
  ['waiting', 'lastDeath', 'latched'],
  ['waiting', 'replace', 'waiting'],
  ['waiting', 'renew', 'waiting'],
  ['waiting', 'retire', 'closed'],
  ['waiting', 'serverStops', 'closed'],
  ['live', 'death', 'waiting'],
  ['live', 'badDeath', 'backoff'],
  ['live', 'lastDeath', 'latched'],
  ['live', 'replace', 'replacing'],
  ['live', 'renew', 'renewing'],
  ['live', 'retire', 'closing'],
  ['live', 'serverStops', 'closing'],
  ['renewing', 'turn', 'renewing'],
  ['renewing', 'death', 'waiting'],
  ['renewing', 'badDeath', 'waiting'],
  ['renewing', 'lastDeath', 'waiting'],
  ['renewing', 'nextReady', 'live'],
  ['renewing', 'nextDies', 'live'],
  ['renewing', 'replace', 'replacing'],
  ['renewing', 'renew', 'renewing'],
  ['renewing', 'retire', 'closing'],
  ['renewing', 'serverStops', 'closing'],
  ['replacing', 'death', 'waiting'],
  ['replacing', 'badDeath', 'waiting'],
  ['replacing', 'lastDeath', 'waiting'],
  ['replacing', 'replace', 'replacing'],
  ['replacing', 'renew', 'replacing'],
  ['replacing', 'retire', 'closing'],
  ['replacing', 'serverStops', 'closing'],
  ['backoff', 'pauseOver', 'waiting'],
  ['backoff', 'replace', 'waiting'],
  ['backoff', 'renew', 'waiting'],
  ['backoff', 'retire', 'closed'],
  ['backoff', 'serverStops', 'closed'],
  ['latched', 'pauseOver', 'latched'],
  ['latched', 'replace', 'waiting'],
  ['latched', 'renew', 'waiting'],
  ['latched', 'retire', 'closed'],
  ['latched', 'serverStops', 'closed'],
  ['closing', 'death', 'closed'],
  ['closing', 'badDeath', 'closed'],
  ['closing', 'lastDeath', 'closed'],
  ['closing', 'replace', 'closing'],
  ['closing', 'renew', 'closing'],
  ['closing', 'retire', 'closing'],
  ['closing', 'serverStops', 'closing'],
  ['closed', 'pauseOver', 'closed'],
  ['closed', 'replace', 'closed'],
  ['closed', 'renew', 'closed'],
  ['closed', 'retire', 'closed'],
  ['closed', 'serverStops', 'closed'],
];
