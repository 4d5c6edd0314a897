/** A real slot that a test drives by hand, and everything that can happen to it. */
import type { TestContext } from 'node:test';
import { Slot } from '../../../supervisor/slots/slot.js';
import type { SlotEvent, SlotStateName } from '../../../supervisor/slots/slot-lifecycle.js';
import { SpawnGate } from '../../../supervisor/slots/spawn-gate.js';
import { enter, startOf } from './start-of.js';
import type { WorkerDeath } from '../../../supervisor/processes/worker-death.js';
import type { WorkerHandle } from '../../../supervisor/processes/worker-handle.js';
import type { RetireLimits } from '../../../supervisor/processes/worker-listener.js';

/** A slot with fake workers and mocked time. */
export class Bench {
  readonly gate: SpawnGate;
  readonly slot: Slot;
  readonly handles: { state: string }[] = [];
  readonly stopped: number[] = [];
  readonly retired: RetireLimits[] = [];
  readonly states: string[] = [];
  failSpawn = false;
  /** Whether other workers of the model are ready. */
  othersServe = false;
  /** Whether another worker leaves for one that ran out of memory. */
  makesRoom = false;
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
      placement: { device, gpu: null, env: {} },
      model: 'm',
      gate,
      rules: () => ({ restartLimit: this.restartLimit, everReady: this.everReady, awaitsChange: false }),
      spawn: () => this.#spawn(),
      othersServe: () => this.othersServe,
      isModelDown: () => this.everReady && !this.othersServe,
      makesRoom: () => this.makesRoom,
      onNotNeeded: (slot) => slot.retire({ finishMs: 0, graceMs: 0 }),
      onChange: (slot) => this.states.push(slot.state.name),
    });
  }

  get state(): SlotStateName {
    return this.slot.state.name;
  }

  start(): void {
    this.slot.start();
    this.turn();
  }

  /** Runs what the gate has scheduled for the next turn of the event loop. */
  turn(): void {
    for (let next = this.#immediates.shift(); next !== undefined; next = this.#immediates.shift()) next();
  }

  pass(ms: number): void {
    this.tick(ms);
    this.turn();
  }

  /** Time passes, without a turn of the event loop. */
  tick(ms: number): void {
    this.#t.mock.timers.tick(ms);
  }

  /** The worker that was started last becomes ready. */
  ready(): void {
    const handle = this.handles.at(-1);
    if (handle === undefined) return;
    handle.state = 'ready';
    this.slot.onReady(handle as unknown as WorkerHandle);
  }

  die(death: Partial<WorkerDeath> = {}): void {
    this.dieAs(this.handles.length - 1, death);
  }

  /** The nth worker that was started dies; the first is 0. */
  dieAs(nth: number, death: Partial<WorkerDeath> = {}): void {
    const handle = this.handles[nth];
    if (handle !== undefined) this.slot.onGone(handle as unknown as WorkerHandle, { ...HEALTHY, ...death });
  }

  /** The nth of the living workers dies, if there are so many. */
  dieIfAlive(nth: number, death: Partial<WorkerDeath> = {}): void {
    const handle = (this.slot.workers as readonly unknown[])[nth];
    const index = this.handles.findIndex((other) => other === handle);
    if (index >= 0) this.dieAs(index, death);
  }

  /** The worker that was started last becomes ready, if it lives. */
  readyIfStarting(): void {
    const handle = this.handles.at(-1);
    if (handle?.state === 'initializing' && (this.slot.workers as readonly unknown[]).includes(handle))
      this.ready();
  }

  /** The worker that serves gets no more calls, if there is one. */
  leave(): void {
    const { worker } = this.slot;
    if (worker !== null) this.slot.onLeaving(worker);
  }

  /** The turn of the slot comes, and its process cannot be started. */
  failToStart(): void {
    this.failSpawn = true;
    this.start();
  }

  /** Whether the device is free for another slot. */
  gateIsOpen(): boolean {
    let open = false;
    enter(this.gate, GPU_START, () => (open = true))();
    return open;
  }

  #spawn(): WorkerHandle {
    if (this.failSpawn) throw new Error('no such program');
    const handle = {
      state: 'initializing',
      finishedCalls: 0,
      stop: (graceMs: number) => this.stopped.push(graceMs),
      retire: (limits: RetireLimits) => this.retired.push(limits),
    };
    this.handles.push(handle);
    return handle as unknown as WorkerHandle;
  }
}

/** A start of another model's slot on the same GPU. */
export const GPU_START = startOf({ device: 'gpu 0', model: 'other' });

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

/** Brings a slot into each of its states. */
export const INTO: Readonly<Record<SlotStateName, (bench: Bench) => void>> = {
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

/** Brings a slot into some of its states with one process more: a worker that was replaced and has not ended. */
export const INTO_WITH_ANOTHER: Readonly<Partial<Record<SlotStateName, (bench: Bench) => void>>> = {
  waiting: (bench) => dieBesideAnother(bench, {}),
  backoff: (bench) => dieBesideAnother(bench, AT_START),
  latched: (bench) => dieBesideAnother(bench, PERMANENT),
  closing: (bench) => {
    INTO.renewing(bench);
    bench.turn();
    bench.slot.close(500);
  },
};

function dieBesideAnother(bench: Bench, death: Partial<WorkerDeath>): void {
  INTO.renewing(bench);
  bench.turn();
  bench.ready();
  bench.die(death);
}

/** Lets each event happen to a slot. */
export const HAPPENS: Readonly<Record<SlotEvent, (bench: Bench) => void>> = {
  started: (bench) => (bench.state === 'waiting' ? bench.start() : bench.turn()),
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
  nextAlone: (bench) => {
    bench.turn();
    bench.dieAs(0);
  },
  leaves: (bench) => bench.leave(),
  replace: (bench) => bench.slot.replace(RETIRE),
  renew: (bench) => {
    if (bench.state === 'live') bench.ready();
    bench.slot.renew(RETIRE);
  },
  retire: (bench) => bench.slot.retire(RETIRE),
  end: (bench) => (bench.state === 'closing' ? bench.die() : bench.slot.close(500)),
};
