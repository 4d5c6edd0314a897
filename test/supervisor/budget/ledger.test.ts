/** The books of the memory budget: what starts cost, which facts the decision gets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  BudgetedFacts,
  BudgetedModel,
  BudgetedWorker,
  Pool,
  Start,
} from '../../../supervisor/budget/facts.js';
import { CardPool } from '../../../supervisor/budget/card-pool.js';
import { Ledger } from '../../../supervisor/budget/ledger.js';
import type { Readings } from '../../../supervisor/budget/readings.js';
import { startOf } from '../slots/start-of.js';

/** The last reading, as the test has it. */
class Memory {
  readonly held = new Map<number, { pssBytes: number; privateBytes: number }>();
  readonly cards: CardPool[] = [];
  readonly isBlind = false;
  readAtMs = Infinity;

  hold(id: number, pssBytes: number, privateBytes = pssBytes): void {
    this.held.set(id, { pssBytes, privateBytes });
  }

  get pools(): Omit<Pool, 'overSinceMs'>[] {
    const usedBytes = [...this.held.values()].reduce((sum, { pssBytes }) => sum + pssBytes, 0);
    return [
      { name: 'memory', limitBytes: 100, readAtMs: this.readAtMs, ownBytes: usedBytes, usedBytes },
      ...this.cards,
    ];
  }

  poolsOf(device: string): string[] {
    return ['memory', ...this.cards.filter((card) => card.isOf(device)).map(({ name }) => name)];
  }

  memoryOf(id: number): { pssBytes: number; privateBytes: number } | null {
    return this.held.get(id) ?? null;
  }

  bytesOf(id: number): Map<string, number> {
    const host = this.held.get(id);
    return new Map(host === undefined ? [] : [['memory', host.pssBytes]]);
  }
}

class FakeModel implements BudgetedModel {
  readonly name: string;
  pinned = 0;
  wanted = 9;
  hasCallers = true;
  workers: BudgetedWorker[] = [];

  constructor(name: string) {
    this.name = name;
  }

  worker(id: number, state: BudgetedWorker['state'], device = 'cpu'): void {
    const others = this.workers.filter((worker) => worker.id !== id);
    this.workers = [...others, { id, model: this.name, state, device, sinceMs: 0, idleSinceMs: 0 }];
  }

  misfit(): void {}

  facts(): BudgetedFacts {
    const { name, pinned, wanted, hasCallers, workers } = this;
    return { name, pinned, wanted, mayLeave: 1, startMs: 1, queueTimeoutMs: 1, hasCallers, workers };
  }

  memoryRead(): void {}
  sendAway(): void {}
  refuse(): void {}
}

function withModel(): { ledger: Ledger; memory: Memory; model: FakeModel } {
  const memory = new Memory();
  const ledger = new Ledger(memory as unknown as Readings, { ids: [], end() {} });
  const model = new FakeModel('m@1');
  ledger.models.add(model);
  return { ledger, memory, model };
}

function enter(ledger: Ledger, given: Partial<Start> = {}): Start {
  const start = startOf({ model: 'm@1', ...given });
  ledger.starts.add(start);
  return start;
}

/** Kind and need of each start that waits. */
function waiting(ledger: Ledger): [kind: string, needBytes: number | null | undefined][] {
  return ledger.gather(1).starts.map(({ kind, needs }) => [kind, needs.get('memory')]);
}

test('a start costs the peak of the last ones, also while they started; the first one also what is shared', () => {
  const { ledger, memory, model } = withModel();
  model.worker(7, 'starting');
  memory.hold(7, 60, 50);
  ledger.learn();
  enter(ledger);
  assert.deepEqual(waiting(ledger), [['extra', null]], 'it is known once a worker is ready');
  model.worker(7, 'idle');
  memory.hold(7, 40, 30);
  ledger.learn();
  assert.deepEqual(waiting(ledger), [['extra', 60]], 'as the first, as long as no second was seen');
  model.worker(8, 'idle');
  memory.hold(8, 35, 20);
  ledger.learn();
  assert.deepEqual(waiting(ledger), [['extra', 50]]);
  model.workers = [];
  assert.deepEqual(waiting(ledger), [['first', 60]]);
});

test('a worker that always stays costs what one had when it was ready, not what calls have made of it', () => {
  const { ledger, memory, model } = withModel();
  model.pinned = 1;
  model.worker(7, 'idle');
  const readings: [bytes: number, readAtMs: number][] = [
    [10, -1], // began before it was ready: without its model
    [30, 1],
    [90, 2],
  ];
  for (const [bytes, readAtMs] of readings) {
    memory.hold(7, bytes);
    memory.readAtMs = readAtMs;
    ledger.learn();
  }
  model.workers = [];
  enter(ledger);
  enter(ledger);
  assert.deepEqual(waiting(ledger), [
    ['first', 30],
    ['extra', 90],
  ]);
});

test('the growth of a worker does not keep the next one out for ever beside those that always stay', () => {
  const { ledger, memory, model } = withModel();
  const stays = new FakeModel('stays@1');
  stays.pinned = 1;
  stays.worker(1, 'idle');
  memory.hold(1, 40);
  ledger.models.add(stays);
  model.worker(7, 'idle');
  for (const bytes of [30, 90]) {
    memory.hold(7, bytes);
    ledger.learn();
  }
  model.workers = [];
  enter(ledger);
  assert.deepEqual(waiting(ledger), [['first', 60]], 'all that the other one leaves');
  memory.hold(1, 80);
  assert.deepEqual(waiting(ledger), [['first', 30]], 'it does not fit even as it was when it was ready');
});

test('what a start under way has not taken yet is promised', () => {
  const { ledger, memory, model } = withModel();
  model.worker(7, 'idle');
  memory.hold(7, 60);
  ledger.learn();
  model.workers = [];
  const start = enter(ledger);
  ledger.grant(start);
  assert.notEqual(start.granted, null);
  assert.equal(ledger.gather(1).promised.get('memory'), 60);
  start.pid = 8;
  memory.hold(8, 45);
  assert.equal(ledger.gather(1).promised.get('memory'), 15);
  ledger.starts.delete(start);
  assert.equal(ledger.gather(1).promised.get('memory'), undefined);
});

test('a start without calls is not needed, unless its model always has so many workers', () => {
  const { ledger, model } = withModel();
  model.hasCallers = false;
  enter(ledger);
  const isNeeded = (): boolean[] => ledger.gather(1).starts.map((start) => start.isNeeded);
  assert.deepEqual(isNeeded(), [false]);
  model.hasCallers = true;
  assert.deepEqual(isNeeded(), [true]);
  model.wanted = 0;
  assert.deepEqual(isNeeded(), [false], 'one beyond the wanted ones would only stand by');
  model.pinned = 1;
  assert.deepEqual(isNeeded(), [true]);
});

test('on a GPU one start goes at a time, so that what it takes can be told', () => {
  const { ledger, memory } = withModel();
  memory.cards.push(
    new CardPool({ index: '0', uuid: 'GPU-a', totalBytes: 1000, usedBytes: 0, byGroup: new Map() }, 800),
  );
  const starts = [0, 1].map(() => enter(ledger, { device: 'gpu 0' }));
  for (const start of starts) ledger.grant(start);
  assert.deepEqual(
    starts.map(({ granted }) => granted !== null),
    [true, false],
  );
});

test('the memory of a worker on a GPU that has ended is leaving until the driver gives it back', () => {
  const { ledger, memory, model } = withModel();
  const card = { index: '0', uuid: 'GPU-a', totalBytes: 1000, byGroup: new Map<number, number>() };
  const pool = new CardPool({ ...card, usedBytes: 0 }, 800);
  memory.cards.push(pool);
  pool.starts({ pid: 7 });
  model.worker(7, 'idle', 'gpu 0');
  pool.read({ ...card, usedBytes: 300 }, 0, new Set([7]));
  ledger.gather(1);
  model.workers = [];
  assert.deepEqual(
    ledger.gather(2).workers.map(({ state, bytes }) => [state, bytes.get('gpu 0')]),
    [['leaving', 300]],
  );
  assert.ok(ledger.isMoving, 'so that the card is read soon');
  pool.read({ ...card, usedBytes: 0 }, 3, new Set());
  assert.deepEqual(ledger.gather(3).workers, []);
});

test('a model was well once a worker of it was seen within the budget; one that is removed is forgotten', () => {
  const { ledger, memory, model } = withModel();
  model.worker(7, 'idle');
  memory.hold(7, 120);
  ledger.learn();
  assert.equal(ledger.learner.well.has('m@1'), false);
  assert.notEqual(ledger.gather(1).pools[0]?.overSinceMs, null);
  memory.hold(7, 80);
  ledger.learn();
  assert.equal(ledger.learner.well.has('m@1'), true);
  assert.equal(ledger.gather(1).workers[0]?.isProven, true);
  ledger.remove(model);
  assert.equal(ledger.learner.well.has('m@1'), false);
  assert.deepEqual(ledger.learner.costs, []);
});
