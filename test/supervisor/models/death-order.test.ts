/**
 * The order of a worker's death, with everything real but its process, by the activity of the worker and by moment:
 *
 * - sign: its stream has ended, or its exit is known. It gets no more calls, readiness falls, and one that stands by steps in.
 * - dead: both are known. Its calls go back or fail.
 * - gone: its last output has come. Its slot decides what follows; then log, report, and what the model makes of it.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { MemoryBudget } from '../../../supervisor/budget/memory-budget.js';
import { exactly } from '../../../supervisor/models/bounds.js';
import type { ModelEvent } from '../../../supervisor/models/model-resources.js';
import type { Log } from '../../../supervisor/observe/log.js';
import type { OutputRelay } from '../../../supervisor/observe/output-relay.js';
import type { OrphanGuard } from '../../../supervisor/processes/orphan-guard.js';
import type { SpareProcesses } from '../../../supervisor/processes/spare-processes.js';
import { WorkerHandle } from '../../../supervisor/processes/worker-handle.js';
import { fixture, eventually } from '../../helpers/server.js';
import { nextTurn } from '../../protocol/streams.js';
import { FakeProcess } from './fake-process.js';
import { LIMITS, RealModel, specOf } from './real-model.js';

interface Given {
  /** Workers that stand by. */
  readonly standby?: number;
  /** Calls that may follow the running one into its worker. */
  readonly ahead?: number;
  readonly restartLimit?: number;
}

/** A model with one wanted worker, and the story of all that is done when that one dies. */
class Bench {
  readonly processes: FakeProcess[] = [];
  readonly #story: string[] = [];
  readonly #t: TestContext;
  #real!: RealModel;

  constructor(t: TestContext) {
    this.#t = t;
  }

  static async start(t: TestContext, { standby = 0, ahead = 0, restartLimit = 1 }: Given): Promise<Bench> {
    const bench = new Bench(t);
    const options = { standby, restartLimit };
    const spec = await specOf(fixture('works.mjs'), options);
    bench.#real = new RealModel(t, spec, {
      resources: bench.#resources(ahead),
      tell: (event) => bench.#tell(event),
    });
    bench.#follow();
    t.after(() => bench.processes.forEach((process) => process.end())); // they were killed
    void bench.#real.model.scale(exactly(1), LIMITS).catch(() => {});
    await bench.#until(1);
    return bench;
  }

  get first(): FakeProcess {
    return this.processes[0] as FakeProcess;
  }

  /** All of its workers are ready. */
  async ready(standby = 0): Promise<void> {
    this.first.becomeReady();
    if (standby > 0) await this.#until(2);
    if (standby > 0) this.processes[1]?.becomeReady();
    const { model } = this.#real;
    await soon(() => model.crew.all.every(({ worker }) => worker?.state === 'ready'));
    const nowMs = performance.now();
    this.#t.mock.method(performance, 'now', () => nowMs); // on a slow machine too, calls come together
    this.told();
  }

  call(name: string): void {
    const answer = (): void => void this.#story.push(`${name} is answered`);
    this.#real.submit({ requestId: name }, Buffer.from('{}'), {
      reply: answer,
      head() {},
      chunk() {},
      end() {},
      fail: (_call, { code }) => this.#story.push(`${name} fails: ${code}`),
    });
  }

  close(): void {
    this.#real.model.close(1000);
  }

  /** The story since it was last asked for. Of several looks at the ready workers in a row it has one. */
  told(): string[] {
    return this.#story.splice(0).filter((line, i, all) => line !== all[i - 1]);
  }

  async #until(processes: number): Promise<void> {
    await soon(() => this.processes.length === processes);
  }

  #resources(ahead: number) {
    const say = (line: string): void => void this.#story.push(line);
    const take = () => {
      const process = new FakeProcess(100 + this.processes.length, (signal) => say(signal));
      this.processes.push(process);
      return process.process;
    };
    const ledger = { models: new Set(), remove() {}, hasRoomFor: () => true };
    const memory = { ledger, nudge() {}, makeRoom: () => false };
    return {
      sendAhead: () => ahead,
      guard: { add() {}, remove() {}, close() {} } as unknown as OrphanGuard,
      spares: { take } as unknown as SpareProcesses,
      relay: { attach() {} } as unknown as OutputRelay,
      memory: { ...memory, changed: () => say('memory is looked at') } as unknown as MemoryBudget,
      log: { debug() {}, info() {}, warn() {}, error: () => say('log') } as unknown as Log,
    };
  }

  #tell({ type }: ModelEvent): void {
    const lines: Partial<Record<ModelEvent['type'], string>> = {
      died: `report: ${this.#slotStates}`,
      standstill: 'the model has stopped',
      closed: 'the model is closed',
    };
    const line = lines[type];
    if (line !== undefined) this.#story.push(line);
  }

  get #slotStates(): string {
    return this.#real.model.crew.all.map(({ state }) => state.name).join(', ');
  }

  #follow(): void {
    const { model, devices } = this.#real;
    const story = this.#story;
    this.#t.mock.method(devices, 'noteStandbys', () => story.push(`ready: ${model.crew.ready.length}`));
    const { lost } = model.dispatcher;
    this.#t.mock.method(model.dispatcher, 'lost', (...args: Parameters<typeof lost>) => {
      story.push('its calls go back');
      lost.apply(model.dispatcher, args);
    });
    const { assign } = WorkerHandle.prototype;
    this.#t.mock.method(
      WorkerHandle.prototype,
      'assign',
      function (this: WorkerHandle, calls: Parameters<typeof assign>[0]) {
        for (const { message } of calls) story.push(`worker ${this.index} gets ${message.requestId}`);
        assign.call(this, calls);
      },
    );
  }
}

const soon = (isTrue: () => boolean): Promise<void> => eventually(isTrue, 60_000, () => 'not in time');

/** The signs of an end, in both orders. */
const SIGNS = [
  ['endStream', 'exit'],
  ['exit', 'endStream'],
] as const;

interface Row extends Given {
  readonly activity: string;
  readonly set: (bench: Bench) => Promise<void> | void;
  readonly sign: readonly string[];
  readonly dead: readonly string[];
  readonly gone: readonly string[];
}

/** It runs `a` with `b` behind it, as far as `ahead` allows; `c` waits in line. */
async function run(bench: Bench, standby = 0): Promise<void> {
  await bench.ready(standby);
  for (const name of 'abc') bench.call(name);
  bench.first.begin();
}

const ROWS: readonly Row[] = [
  {
    activity: 'idle',
    set: (bench) => bench.ready(),
    sign: ['ready: 0'],
    dead: ['SIGKILL'],
    gone: ['ready: 0', 'log', 'report: backoff', 'memory is looked at'],
  },
  {
    activity: 'idle, and another one stands by',
    standby: 1,
    set: (bench) => bench.ready(1),
    sign: ['ready: 1'],
    dead: ['SIGKILL'],
    gone: ['ready: 1', 'log', 'report: backoff, live', 'memory is looked at'],
  },
  {
    activity: 'running a call',
    set: (bench) => run(bench),
    sign: ['ready: 0'],
    dead: ['ready: 0', 'its calls go back', 'a fails: SERVE_WORKER_LOST', 'SIGKILL'],
    gone: ['ready: 0', 'log', 'report: waiting', 'memory is looked at'],
  },
  {
    activity: 'running a call, and another one stands by',
    standby: 1,
    set: (bench) => run(bench, 1),
    sign: ['ready: 1', 'worker 1 gets b'],
    dead: ['ready: 1', 'its calls go back', 'a fails: SERVE_WORKER_LOST', 'SIGKILL'],
    gone: ['ready: 1', 'log', 'report: waiting, live', 'memory is looked at'],
  },
  {
    activity: 'running a call with one behind it, and another one stands by',
    standby: 1,
    ahead: 1,
    set: (bench) => run(bench, 1),
    sign: ['ready: 1'],
    dead: [
      'ready: 1',
      'its calls go back',
      'a fails: SERVE_WORKER_LOST',
      'worker 1 gets b',
      'worker 1 gets c',
      'SIGKILL',
    ],
    gone: ['ready: 1', 'log', 'report: waiting, live', 'memory is looked at'],
  },
  {
    activity: 'starting for the last time, and calls wait',
    restartLimit: 0,
    set: (bench) => bench.call('a'),
    sign: ['ready: 0'],
    dead: ['SIGKILL'],
    gone: [
      'ready: 0',
      'log',
      'report: latched',
      'a fails: SERVE_NOT_READY',
      'the model has stopped',
      'memory is looked at',
    ],
  },
  {
    activity: 'asked to stop',
    async set(bench) {
      await run(bench);
      bench.close();
    },
    sign: ['ready: 0'],
    dead: ['ready: 0', 'its calls go back', 'a fails: SERVE_WORKER_LOST', 'SIGKILL'],
    gone: ['ready: 0', 'report: closed', 'ready: 0', 'the model is closed', 'memory is looked at'],
  },
];

for (const { activity, set, sign, dead, gone, ...given } of ROWS)
  for (const [first, second] of SIGNS)
    test(`a worker dies while it is ${activity}; the first sign: ${first}`, async (t) => {
      const bench = await Bench.start(t, given);
      await set(bench);
      bench.told();
      const { first: process } = bench;
      process[first]();
      await nextTurn();
      assert.deepEqual(bench.told(), sign, 'sign');
      process[second]();
      await nextTurn();
      assert.deepEqual(bench.told(), dead, 'dead');
      process.closeOutput();
      assert.deepEqual(bench.told(), gone, 'gone');
    });
