import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Slot, type SlotListener, type SlotState } from '../../../supervisor/pool/slot.js';
import { SpawnGate } from '../../../supervisor/pool/spawn-gate.js';
import type { WorkerDeath } from '../../../supervisor/pool/worker-death.js';
import type { WorkerHandle, WorkerListener } from '../../../supervisor/pool/worker-handle.js';

/** A seat with workers that do as they are told, and a time that passes by hand. */
class Bench {
  readonly gate: SpawnGate;
  readonly slot: Slot;
  readonly spawned: WorkerListener[] = [];
  readonly stopped: number[] = [];
  readonly states: string[] = [];
  failSpawn = false;
  readonly #t: TestContext;
  readonly #immediates: (() => void)[] = [];

  constructor(t: TestContext, restartLimit = 1, gate = new SpawnGate(1)) {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    // By hand: Node 20's own mock mixes up an immediate that a timer asks for.
    t.mock.method(globalThis, 'setImmediate', (callback: () => void) => this.#immediates.push(callback));
    t.mock.method(Math, 'random', () => 1);
    this.#t = t;
    this.gate = gate;
    this.slot = new Slot({
      index: 0,
      device: 'gpu 0',
      gate,
      restartLimit: () => restartLimit,
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
    this.#t.mock.timers.tick(ms);
    this.turn();
  }

  ready(): void {
    this.spawned.at(-1)?.onReady();
  }

  die(death: Partial<WorkerDeath> = {}): void {
    this.spawned.at(-1)?.onGone({ ...HEALTHY, ...death });
  }

  /** Whether the device is free for another seat. */
  gateIsOpen(): boolean {
    let open = false;
    this.gate.enter('gpu 0', () => (open = true))();
    return open;
  }

  #spawn(listener: WorkerListener): WorkerHandle {
    if (this.failSpawn) throw new Error('no such program');
    this.spawned.push(listener);
    return {
      finishedCalls: 0,
      stop: (graceMs: number) => this.stopped.push(graceMs),
    } as unknown as WorkerHandle;
  }

  #listener(): SlotListener {
    const ignore = (): void => {};
    return {
      onLoaded: () => ({ initTimeoutMs: 1, runTimeoutMs: 1, maxOutputBytes: 1 }),
      onReady: ignore,
      onFinished: ignore,
      onLost: ignore,
      onAppLog: ignore,
      onCallError: ignore,
      onTransition: ignore,
      onSlotChange: (slot) => this.states.push(slot.state.name),
    };
  }
}

const HEALTHY: WorkerDeath = {
  pid: 1,
  at: new Date(0),
  exit: { code: 1, signal: null },
  how: 'exit code 1',
  hint: '',
  fatal: null,
  during: 'call',
  requestId: null,
  readyMs: 1000,
  initMs: 10,
  uptimeMs: 1010,
  finishedCalls: 3,
  stderrTail: [],
  wanted: false,
};
const AT_START: Partial<WorkerDeath> = { during: 'start', finishedCalls: 0, readyMs: 0 };
const PERMANENT: Partial<WorkerDeath> = {
  ...AT_START,
  fatal: { code: 'SERVE_APP_INVALID', message: 'no inference export', detail: '', permanent: true },
};

/** How to bring a seat into each of its states. */
const INTO: Readonly<Record<SlotState['name'], (bench: Bench) => void>> = {
  waiting: () => {},
  live: (bench) => bench.start(),
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

type Event =
  'its turn comes' | 'the server stops' | 'the pause ends' | 'its worker dies' | 'its worker dies for good';

const HAPPENS: Readonly<Record<Event, (bench: Bench) => void>> = {
  'its turn comes': (bench) => bench.start(),
  'the server stops': (bench) => bench.slot.close(500),
  'the pause ends': (bench) => bench.pass(30_000),
  'its worker dies': (bench) => bench.die(),
  'its worker dies for good': (bench) => bench.die(PERMANENT),
};

/** Every state times every event that can happen in it. */
const GRID: readonly [SlotState['name'], Event, SlotState['name']][] = [
  ['waiting', 'its turn comes', 'live'],
  ['waiting', 'the server stops', 'closed'],
  ['live', 'its worker dies', 'waiting'],
  ['live', 'its worker dies for good', 'latched'],
  ['live', 'the server stops', 'closing'],
  ['backoff', 'the pause ends', 'live'],
  ['backoff', 'the server stops', 'closed'],
  ['latched', 'the pause ends', 'latched'],
  ['latched', 'the server stops', 'closed'],
  ['closing', 'its worker dies', 'closed'],
  ['closing', 'its worker dies for good', 'closed'],
  ['closed', 'the server stops', 'closed'],
  ['closed', 'the pause ends', 'closed'],
];

for (const [from, event, to] of GRID) {
  test(`a seat that is ${from}: ${event}, and it is ${to}`, (t) => {
    const bench = new Bench(t);
    INTO[from](bench);
    assert.equal(bench.state, from, 'brought there');
    HAPPENS[event](bench);
    assert.equal(bench.state, to);
  });
}

test('the device is taken from the start of a worker until it is ready', (t) => {
  const bench = new Bench(t);
  bench.start();
  assert.equal(bench.gateIsOpen(), false);
  bench.ready();
  assert.equal(bench.gateIsOpen(), true);
  bench.die();
  bench.turn();
  assert.equal(bench.spawned.length, 2);
  assert.equal(bench.gateIsOpen(), false, 'its successor starts');
});

test('a worker that dies before it is ready gives the device back', (t) => {
  const bench = new Bench(t);
  bench.start();
  bench.die(AT_START);
  assert.equal(bench.gateIsOpen(), true);
});

test('a seat closed while it waits for its device never starts a worker, and holds nobody up', (t) => {
  const bench = new Bench(t);
  const leave = bench.gate.enter('gpu 0', () => {});
  bench.start();
  bench.slot.close(500);
  leave();
  bench.pass(60_000);
  assert.deepEqual(bench.spawned, []);
  assert.equal(bench.gateIsOpen(), true);
});

test('a seat closed in the very turn in which its worker would start', (t) => {
  const bench = new Bench(t);
  bench.slot.start();
  bench.slot.close(500);
  bench.turn();
  assert.deepEqual(bench.spawned, []);
  assert.equal(bench.gateIsOpen(), true);
});

test('closing asks the worker to stop, with the grace it was given, and counts no restart', (t) => {
  const bench = new Bench(t);
  bench.start();
  bench.slot.close(700);
  assert.deepEqual(bench.stopped, [700]);
  bench.die();
  assert.equal(bench.slot.restarts, 0);
});

test('a worker for which there is no process is tried again later, and its device is free meanwhile', (t) => {
  const bench = new Bench(t, 1);
  bench.failSpawn = true;
  bench.start();
  assert.equal(bench.state, 'backoff');
  assert.equal(bench.slot.lastDeath?.how, 'could not be started: no such program');
  assert.equal(bench.gateIsOpen(), true);
});

test('a worker for which there is no process, and no restart allowed, latches the seat and says why', (t) => {
  const bench = new Bench(t, 0);
  bench.failSpawn = true;
  bench.start();
  assert.equal(bench.state, 'latched');
  const { error } = bench.slot.state as SlotState & { name: 'latched' };
  assert.equal(error.detail, 'could not be started: no such program');
});

test('strikes latch a seat with the cause of the last death; restarts and calls are counted over all its workers', (t) => {
  const bench = new Bench(t, 1);
  bench.start();
  bench.die();
  bench.turn();
  bench.die(AT_START);
  bench.pass(30_000);
  bench.die({ ...AT_START, how: 'signal SIGSEGV', hint: 'native code crashed' });
  assert.equal(bench.slot.restarts, 2);
  assert.equal(bench.slot.calls, 3);
  const { state } = bench.slot;
  assert.ok(state.name === 'latched');
  assert.equal(state.error.code, 'SERVE_CRASH_LOOP');
  assert.equal(state.error.detail, 'signal SIGSEGV native code crashed');
});
