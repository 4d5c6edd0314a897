/** StartUp: the start of a server's first models, and the end of the server if none of them can start. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import type { Model } from '../../../../supervisor/models/model.js';
import type { Standstill } from '../../../../supervisor/models/slot-summary.js';
import { StartUp } from '../../../../supervisor/server/models/start-up.js';
import { nextTurn } from '../../../protocol/streams.js';

class Fake {
  readonly health: { standstill: Standstill | null; firstReadyAtMs: number | null; takesCalls: boolean } = {
    standstill: null,
    firstReadyAtMs: null,
    takesCalls: false,
  };
}

interface Rules {
  readonly watch?: boolean;
  readonly onCrashLoop?: 'stay' | 'exit';
  readonly isMmsMode?: boolean;
}

function asModel(fake: Fake): Model {
  return fake as unknown as Model;
}

/** Models that a test makes ready or lets give up, in any order. */
class Bench {
  readonly lines: string[] = [];
  readonly ends: ServeError[] = [];
  readonly #startUp: StartUp;
  ready = 'pending';

  constructor(
    models: readonly Fake[],
    { watch = false, onCrashLoop = 'stay', isMmsMode = false }: Rules = {},
  ) {
    const log = { error: (text: string) => this.lines.push(text) };
    const onEnd = (error: ServeError): void => void this.ends.push(error);
    this.#startUp = new StartUp({ watch, onCrashLoop }, isMmsMode, log, onEnd);
    void this.#startUp.ready.then(
      () => (this.ready = 'resolved'),
      () => (this.ready = 'rejected'),
    );
    this.#startUp.begin(models.map(asModel));
  }

  isComingUp(model: Fake): boolean {
    return this.#startUp.comingUp.has(asModel(model));
  }

  async isReady(model: Fake): Promise<void> {
    model.health.firstReadyAtMs ??= 1;
    model.health.standstill = null;
    this.#startUp.onFirstReady(asModel(model));
    await nextTurn();
  }

  async givesUp(model: Fake, label = 'digits'): Promise<void> {
    const state = model.health.firstReadyAtMs === null ? 'latched' : 'failing';
    model.health.standstill = { state, error: new ServeError('SERVE_CRASH_LOOP') };
    this.#startUp.onStandstill(asModel(model), model.health.standstill, label);
    await nextTurn();
  }

  isRegistered(model: Fake): void {
    this.#startUp.onTrial.add(asModel(model));
  }

  isKept(model: Fake): void {
    this.#startUp.onTrial.delete(asModel(model));
  }

  async isScaledTo0(model: Fake): Promise<void> {
    this.#startUp.leaveOut(asModel(model));
    await nextTurn();
  }

  async isUnregistered(model: Fake): Promise<void> {
    this.#startUp.forget(asModel(model));
    await nextTurn();
  }
}

describe('ready', () => {
  test('resolves with the first worker of the only model', async () => {
    const model = new Fake();
    const bench = new Bench([model]);
    assert.equal(bench.ready, 'pending');
    await bench.isReady(model);
    assert.equal(bench.ready, 'resolved');
  });

  test('resolves once each of several models was ready or has given up, if one was ready', async () => {
    const [a, b] = [new Fake(), new Fake()];
    const bench = new Bench([a, b]);
    await bench.isReady(a);
    assert.deepEqual([bench.ready, bench.isComingUp(a), bench.isComingUp(b)], ['pending', false, true]);
    await bench.givesUp(b);
    assert.deepEqual([bench.ready, bench.isComingUp(b), bench.ends], ['resolved', false, []]);
  });

  test('does not wait for a model of which no worker is wanted any more', async () => {
    const [a, b] = [new Fake(), new Fake()];
    const bench = new Bench([a, b]);
    await bench.isReady(a);
    await bench.isScaledTo0(b);
    assert.deepEqual([bench.ready, bench.isComingUp(b)], ['resolved', false]);
  });

  test('resolves if one model has given up and no worker is wanted of the other', async () => {
    const [a, b] = [new Fake(), new Fake()];
    const bench = new Bench([a, b]);
    await bench.isScaledTo0(b);
    assert.equal(bench.ready, 'pending');
    await bench.givesUp(a);
    assert.deepEqual([bench.ready, bench.ends], ['resolved', []]);
  });

  test('rejects once all have given up', async () => {
    const [a, b] = [new Fake(), new Fake()];
    const bench = new Bench([a, b]);
    await bench.givesUp(a);
    assert.deepEqual([bench.ready, bench.ends], ['pending', []]);
    await bench.givesUp(b);
    assert.deepEqual([bench.ready, bench.ends.length], ['rejected', 1]);
  });

  test('does not wait for a model that was unregistered', async () => {
    const [a, b] = [new Fake(), new Fake()];
    const bench = new Bench([a, b]);
    await bench.isReady(a);
    await bench.isUnregistered(b);
    assert.equal(bench.ready, 'resolved');
  });

  test('resolves at once for a server without models', async () => {
    const bench = new Bench([]);
    await nextTurn();
    assert.equal(bench.ready, 'resolved');
  });
});

describe('the server', () => {
  test('stays when its models give up after one of them was ready', async () => {
    const [a, b] = [new Fake(), new Fake()];
    const bench = new Bench([a, b]);
    await bench.isReady(a);
    await bench.givesUp(a);
    await bench.givesUp(b);
    assert.deepEqual(bench.ends, []);
  });

  test('ends with --on-crash-loop exit, but only when the last of its first models has given up', async () => {
    const [a, b] = [new Fake(), new Fake()];
    const bench = new Bench([a, b], { onCrashLoop: 'exit' });
    await bench.isReady(a);
    await bench.isReady(b);
    await bench.givesUp(a);
    assert.deepEqual(bench.ends, []);
    await bench.givesUp(b);
    assert.equal(bench.ends.length, 1);
  });

  test('never ends for a model that was registered at run time', async () => {
    const [first, late] = [new Fake(), new Fake()];
    const bench = new Bench([first], { onCrashLoop: 'exit' });
    await bench.isReady(first);
    await bench.isReady(late);
    await bench.givesUp(late);
    assert.deepEqual(bench.ends, []);
    const empty = new Bench([], { onCrashLoop: 'exit' });
    await empty.givesUp(new Fake());
    assert.deepEqual(empty.ends, []);
  });

  test('of a model store without an app stays when none of its models could start', async () => {
    const [a, b] = [new Fake(), new Fake()];
    const bench = new Bench([a, b], { isMmsMode: true });
    await bench.givesUp(a);
    await bench.givesUp(b);
    assert.deepEqual([bench.ends, bench.ready], [[], 'resolved']);
  });

  test('of a model store without an app ends with --on-crash-loop exit', async () => {
    const [a, b] = [new Fake(), new Fake()];
    const bench = new Bench([a, b], { isMmsMode: true, onCrashLoop: 'exit' });
    await bench.givesUp(a);
    await bench.givesUp(b);
    assert.deepEqual([bench.ends.length, bench.ready], [1, 'rejected']);
  });

  test('stays with --watch, and readiness does not wait for a model that gave up', async () => {
    const [a, b] = [new Fake(), new Fake()];
    const bench = new Bench([a, b], { watch: true });
    await bench.givesUp(a);
    await bench.givesUp(b);
    assert.deepEqual([bench.ends, bench.ready, bench.isComingUp(a)], [[], 'pending', false]);
    await bench.isReady(a);
    assert.equal(bench.ready, 'resolved');
  });
});

test('the log names the model without workers, if there are several, and what follows', async () => {
  const [a, b] = [new Fake(), new Fake()];
  const bench = new Bench([a, b]);
  await bench.givesUp(a);
  await bench.isReady(b);
  await bench.givesUp(b, '');
  assert.deepEqual(bench.lines, [
    'digits: no worker could start; see the error above. Staying up and answering 503 for this model',
    'no worker can be restarted; see the error above. Staying up and answering 503 until a start succeeds (--on-crash-loop)',
  ]);
});

test('the log tells a model that is unregistered again from one that stays', async () => {
  const [back, kept] = [new Fake(), new Fake()];
  const bench = new Bench([]);
  bench.isRegistered(back);
  bench.isRegistered(kept);
  bench.isKept(kept);
  for (const model of [back, kept]) await bench.givesUp(model);
  const stays = 'Staying up and answering 503 for this model';
  assert.deepEqual(
    bench.lines.map((line) => line.replace('digits: no worker could start; see the error above. ', '')),
    ['The model is unregistered again', stays],
  );
});
