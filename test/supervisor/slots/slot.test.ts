import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import fc from 'fast-check';
import { ServeError } from '../../../protocol/errors.js';
import type { Start } from '../../../supervisor/budget/facts.js';
import type { MemoryBudget } from '../../../supervisor/budget/memory-budget.js';
import type { WorkerDeath } from '../../../supervisor/processes/worker-death.js';
import {
  SLOT_EVENTS,
  SLOT_STATES,
  nextSlotState,
  type SlotEvent,
  type SlotState,
  type SlotStateName,
} from '../../../supervisor/slots/slot-lifecycle.js';
import { SpawnGate } from '../../../supervisor/slots/spawn-gate.js';
import {
  AT_START,
  Bench,
  GPU_START,
  HAPPENS,
  HEALTHY,
  INTO,
  INTO_WITH_ANOTHER,
  PERMANENT,
  RETIRE,
} from './slot-bench.js';
import { enter, startOf } from './start-of.js';

const STATES = Object.keys(SLOT_STATES) as SlotStateName[];
const EVENTS = Object.keys(SLOT_EVENTS) as SlotEvent[];

/** Every state times every event, written down a second time; `-` cannot happen. */
const GRID = `
           started  death   badDeath lastDeath pauseOver nextReady nextDies nextAlone leaves  replace   renew    retire  end
waiting    live     -       backoff  latched   -         -         -        -         -       waiting   -        closing closed
live       -        waiting backoff  latched   -         -         -        -         waiting replacing renewing closing -
renewing   renewing waiting -        -         -         live      live     live      waiting replacing renewing closing -
replacing  -        waiting -        -         -         -         -        -         -       replacing -        closing -
backoff    -        -       -        -         waiting   -         -        -         -       waiting   -        closing closed
latched    -        -       -        -         -         -         -        -         -       waiting   -        closing closed
closing    -        closing -        -         -         -         -        -         -       closing   -        closing closed
closed     -        -       -        -         -         -         -        -         -       closed    -        -       closed
`;

const [header = [], ...rows] = GRID.trim()
  .split('\n')
  .map((line) => line.trim().split(/ +/));

test('the grid covers every state and every event of a slot', () => {
  assert.deepEqual(header, EVENTS);
  assert.deepEqual(
    rows.map(([state]) => state),
    STATES,
  );
});

for (const [state, ...nexts] of rows) {
  for (const [i, next] of nexts.entries()) {
    const [from, event] = [state as SlotStateName, EVENTS[i] as SlotEvent];
    if (next === '-') {
      test(`the table has no ${event} of a slot that is ${from}`, () => {
        assert.throws(() => nextSlotState(from, event), new RegExp(`"${event}" in state "${from}"`));
      });
      continue;
    }
    test(`a slot that is ${from}: ${event} makes it ${next}, as the table has it`, (t) => {
      assert.equal(nextSlotState(from, event), next);
      const another =
        event === 'retire' || (event === 'death' && from === 'closing') ? INTO_WITH_ANOTHER[from] : undefined;
      const onCpu = another !== undefined || from === 'renewing' || event === 'renew' || event === 'leaves';
      const bench = new Bench(t, 1, new SpawnGate(1), onCpu ? 'cpu' : 'gpu 0');
      (another ?? INTO[from])(bench);
      assert.equal(bench.state, from, 'brought there');
      HAPPENS[event](bench);
      assert.equal(bench.state, next);
    });
  }
}

const ANY_DEATH = fc.constantFrom({}, AT_START, PERMANENT);
const ANY_ACTION = fc.oneof(
  fc.constantFrom<(bench: Bench) => void>(
    (bench) => bench.turn(),
    (bench) => bench.tick(30_000),
    (bench) => bench.slot.replace(RETIRE),
    (bench) => bench.slot.renew(RETIRE),
    (bench) => (bench.failSpawn = !bench.failSpawn),
    (bench) => bench.readyIfStarting(),
    (bench) => bench.leave(),
  ),
  fc.tuple(fc.nat(3), ANY_DEATH).map(
    ([nth, death]) =>
      (bench: Bench) =>
        bench.dieIfAlive(nth, death),
  ),
);

test('a slot obeys its table whatever happens in whatever order, and is closed once it was retired and its processes have ended', (t) => {
  fc.assert(
    fc.property(
      fc.constantFrom('cpu', 'gpu 0'),
      fc.array(ANY_ACTION, { maxLength: 30 }),
      fc.array(ANY_ACTION, { maxLength: 5 }),
      (device, before, after) => {
        t.mock.reset();
        t.mock.timers.reset();
        const bench = new Bench(t, 2, new SpawnGate(1), device);
        bench.slot.start();
        for (const act of before) act(bench);
        bench.slot.retire(RETIRE);
        for (const act of after) act(bench);
        for (let nth = bench.handles.length; nth >= 0; nth -= 1) bench.dieIfAlive(0);
        assert.deepEqual([bench.state, bench.slot.workers.length], ['closed', 0]);
      },
    ),
  );
});

test('a slot whose last start failed reports that to the gate, until a worker has lived', (t) => {
  const gate = new SpawnGate(1);
  const asked = t.mock.method(gate, 'enter');
  const bench = new Bench(t, 5, gate);
  bench.start();
  bench.die(AT_START);
  bench.pass(30_000);
  bench.die();
  const starts = asked.mock.calls.map(({ arguments: [{ model, isRetry }] }) => [model, isRetry]);
  assert.deepEqual(starts, [
    ['m', false],
    ['m', true],
    ['m', false],
  ]);
});

test('the device is taken from the start of a worker until it is ready', (t) => {
  const bench = new Bench(t);
  bench.start();
  assert.equal(bench.gateIsOpen(), false);
  bench.ready();
  assert.equal(bench.gateIsOpen(), true);
  bench.die();
  bench.turn();
  assert.equal(bench.handles.length, 2);
  assert.equal(bench.gateIsOpen(), false, 'its successor starts');
});

test('a worker that dies before it is ready gives the device back', (t) => {
  const bench = new Bench(t);
  bench.start();
  bench.die(AT_START);
  assert.equal(bench.gateIsOpen(), true);
});

test('a slot closed while it waits for its device never starts a worker, and frees the gate', (t) => {
  const bench = new Bench(t);
  const leave = enter(bench.gate, GPU_START);
  bench.start();
  bench.slot.close(500);
  leave();
  bench.pass(60_000);
  assert.deepEqual(bench.handles, []);
  assert.equal(bench.gateIsOpen(), true);
});

test('a slot closed in the very turn of the event loop in which its worker would start starts none', (t) => {
  const bench = new Bench(t);
  bench.slot.start();
  bench.slot.close(500);
  bench.turn();
  assert.deepEqual(bench.handles, []);
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

test('a worker whose process cannot be started is tried again later, and its device is free meanwhile', (t) => {
  const bench = new Bench(t, 1);
  bench.failToStart();
  assert.equal(bench.state, 'backoff');
  assert.equal(bench.slot.lastDeath?.how, 'could not be started: no such program');
  assert.equal(bench.gateIsOpen(), true);
});

test('a worker whose process cannot be started latches the slot with the reason if no restart is allowed', (t) => {
  const bench = new Bench(t, 0);
  bench.failToStart();
  assert.equal(bench.state, 'latched');
  const { error } = bench.slot.state as SlotState & { name: 'latched' };
  assert.equal(error.detail, 'could not be started: no such program');
});

test('failed starts in a row latch a slot with the cause of the last death; restarts and calls are counted over all its workers', (t) => {
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
  assert.equal(state.error.detail, 'signal SIGSEGV; native code crashed');
});

const THROWN = {
  code: 'SERVE_INIT_FAILED',
  message: 'no weights',
  detail: '',
  permanent: false,
  transient: false,
};
const BY_INIT = { ...AT_START, fatal: THROWN };

test('an error that init throws twice in a row latches the slot with its own code, however many restarts are allowed', (t) => {
  const bench = new Bench(t, 5);
  bench.start();
  bench.die(BY_INIT);
  assert.equal(bench.state, 'backoff', 'once may be chance');
  bench.pass(30_000);
  bench.die(BY_INIT);
  const { state } = bench.slot;
  assert.ok(state.name === 'latched');
  assert.deepEqual([state.error.code, state.error.detail], ['SERVE_INIT_FAILED', 'no weights']);
});

test('a slot that latches because no restart is allowed says what failed', (t) => {
  const bench = new Bench(t, 0);
  bench.start();
  bench.die(BY_INIT);
  assert.deepEqual([bench.state, codeOf(bench)], ['latched', 'SERVE_INIT_FAILED']);
});

for (const [what, second, everReady] of [
  ['another error', { ...BY_INIT, fatal: { ...THROWN, message: 'no disk' } }, false],
  ['a death without a word', AT_START, false],
  ['what may pass by itself', { ...BY_INIT, fatal: { ...THROWN, transient: true } }, false],
  ['broken frames', { ...BY_INIT, fatal: { ...THROWN, code: 'SERVE_PROTOCOL' } }, false],
  ['the same error once a worker elsewhere was ready', BY_INIT, true],
] as const) {
  test(`an error of init and then ${what}: the slot is tried again`, (t) => {
    const bench = new Bench(t, 5);
    bench.start();
    bench.die({ ...BY_INIT, fatal: { ...THROWN, ...second.fatal, message: THROWN.message } });
    bench.everReady = everReady;
    bench.pass(30_000);
    bench.die(second);
    assert.equal(bench.state, 'backoff');
  });
}

test('a slot of a model that was ready is failing after more failed starts in a row than allowed, and until one succeeds', (t) => {
  const bench = new Bench(t, 1);
  bench.everReady = true;
  bench.start();
  bench.die(PERMANENT);
  assert.deepEqual([bench.state, bench.slot.failure], ['backoff', null], 'one is allowed');
  bench.pass(500);
  bench.die({ ...BY_INIT, fatal: { ...THROWN, transient: true } });
  const { failure } = bench.slot;
  assert.deepEqual(
    [bench.state, failure?.code, failure?.detail],
    ['backoff', 'SERVE_INIT_FAILED', 'no weights'],
  );
  bench.pass(1000);
  assert.deepEqual([bench.state, bench.slot.failure], ['live', failure], 'a start under way may fail');
  bench.ready();
  assert.equal(codeOf(bench), undefined);
  bench.die({ ...HEALTHY, during: 'idle', finishedCalls: 0 });
  assert.equal(codeOf(bench), 'SERVE_CRASH_LOOP', 'it has finished no call');
  bench.pass(2000);
  bench.die();
  assert.deepEqual([bench.state, bench.slot.failure], ['waiting', null], 'its first call may have killed it');
});

const codeOf = ({ slot }: Bench): string | undefined => slot.failure?.code;

for (const [what, everReady, death] of [
  ['failing', true, BY_INIT],
  ['latched', false, PERMANENT],
] as const) {
  test(`a slot that is ${what} starts again at once if asked, as if it had never failed`, (t) => {
    const bench = new Bench(t, 0);
    bench.everReady = everReady;
    bench.start();
    bench.die(death);
    assert.notEqual(bench.slot.failure, null);
    bench.slot.startAgain();
    bench.turn();
    assert.deepEqual([bench.state, bench.slot.failure, bench.handles.length], ['live', null, 2]);
    bench.slot.startAgain();
    assert.deepEqual(bench.retired, [], 'one that is neither is left alone');
  });
}

test('a failing slot that waits at the gate is failing no more once it is replaced, and says so', (t) => {
  const bench = new Bench(t, 0);
  bench.everReady = true;
  bench.start();
  bench.die(AT_START);
  enter(bench.gate, GPU_START);
  bench.pass(500);
  assert.deepEqual([bench.state, codeOf(bench)], ['waiting', 'SERVE_CRASH_LOOP']);
  const told = bench.states.length;
  bench.slot.replace(RETIRE);
  assert.deepEqual([bench.slot.failure, bench.states.slice(told)], [null, ['waiting']]);
});

test('a start of a failing slot that is under way goes on when it is asked to start again', (t) => {
  const bench = new Bench(t, 0);
  bench.everReady = true;
  bench.start();
  bench.die(AT_START);
  bench.pass(500);
  bench.slot.startAgain();
  bench.turn();
  assert.deepEqual([bench.slot.failure, bench.handles.length, bench.retired], [null, 2, []]);
});

test('a replaced slot gives its worker the limits of `replace`, and counts no restart', (t) => {
  const bench = new Bench(t);
  bench.start();
  bench.ready();
  bench.slot.replace(RETIRE);
  bench.slot.replace(RETIRE);
  assert.deepEqual(bench.retired, [RETIRE], 'once');
  bench.turn();
  assert.equal(bench.handles.length, 1, 'two workers never share a slot');
  bench.die({ wanted: true });
  bench.turn();
  assert.equal(bench.handles.length, 2);
  assert.equal(bench.slot.restarts, 0);
  assert.equal(bench.slot.calls, 3);
  assert.equal(bench.slot.lastDeath, null);
});

test('a slot that is replaced while its worker starts keeps the device until that one has gone', (t) => {
  const bench = new Bench(t);
  bench.start();
  bench.slot.replace(RETIRE);
  assert.equal(bench.gateIsOpen(), false);
  bench.die({ ...AT_START, wanted: true });
  assert.equal(bench.state, 'waiting');
  bench.turn();
  assert.equal(bench.handles.length, 2);
});

for (const [from, start] of [
  ['backoff', AT_START],
  [
    'latched',
    { ...AT_START, fatal: { code: '', message: 'broken', detail: '', permanent: true, transient: false } },
  ],
] as const) {
  test(`a slot that is ${from} has no history once it is replaced: no pause, no failed start, no last death`, (t) => {
    const bench = new Bench(t, 1);
    bench.start();
    bench.die(start);
    assert.equal(bench.state, from);
    bench.slot.replace(RETIRE);
    assert.equal(bench.slot.lastDeath, null);
    bench.turn();
    assert.equal(bench.handles.length, 2, 'started at once');
    bench.die(AT_START);
    assert.equal(bench.state, 'backoff', 'the first failed start');
    bench.pass(30_000);
    assert.equal(bench.handles.length, 3, 'the pause before the change starts no worker');
  });
}

/** A slot on the CPU with a ready worker and a next one that starts. */
function renewing(t: TestContext): Bench {
  const bench = new Bench(t, 1, new SpawnGate(1), 'cpu');
  INTO.renewing(bench);
  bench.turn();
  return bench;
}

test('a slot that is renewed retires its worker once the next one is ready, and counts no restart', (t) => {
  const bench = renewing(t);
  assert.deepEqual([bench.handles.length, bench.retired], [2, []]);
  assert.equal(bench.gateIsOpen(), false, 'the next one starts');
  bench.ready();
  assert.deepEqual([bench.state, bench.retired, bench.gateIsOpen()], ['live', [RETIRE], true]);
  assert.equal(bench.slot.workers.length, 2);
  bench.dieAs(0, { wanted: true });
  assert.deepEqual([bench.slot.workers.length, bench.slot.restarts, bench.slot.calls], [1, 0, 3]);
  assert.equal(bench.slot.lastDeath, null);
});

test('if the next worker dies before it is ready, the present one stays, and the slot reports how the other died', (t) => {
  const bench = renewing(t);
  bench.die(PERMANENT);
  assert.deepEqual([bench.state, bench.retired, bench.gateIsOpen()], ['live', [], true]);
  assert.equal(bench.slot.lastDeath?.fatal?.message, 'no inference export');
  bench.pass(60_000);
  assert.equal(bench.handles.length, 2, 'none is tried again');
});

test('if the process of the next worker cannot be started, the present one stays', (t) => {
  const bench = new Bench(t, 1, new SpawnGate(1), 'cpu');
  INTO.renewing(bench);
  bench.failSpawn = true;
  bench.turn();
  assert.deepEqual([bench.state, bench.gateIsOpen()], ['live', true]);
});

test('if the present worker dies while the next one starts, that one takes its place, and may fail as any start', (t) => {
  const bench = renewing(t);
  bench.dieAs(0);
  assert.deepEqual([bench.state, bench.slot.restarts], ['live', 1]);
  bench.die(AT_START);
  assert.equal(bench.state, 'backoff');
});

test('a slot that is renewed again stops the next worker and starts another', (t) => {
  const bench = renewing(t);
  bench.slot.renew(RETIRE);
  assert.deepEqual(bench.retired, [RETIRE], 'the one that started');
  bench.dieAs(1, { ...AT_START, wanted: true });
  bench.turn();
  assert.equal(bench.handles.length, 3);
  bench.ready();
  assert.equal(bench.state, 'live');
});

test('a slot that is closed while it is renewed is closed when both workers have gone', (t) => {
  const bench = renewing(t);
  bench.slot.close(700);
  assert.deepEqual(bench.stopped, [700, 700]);
  bench.dieAs(0, { wanted: true });
  assert.equal(bench.state, 'closing');
  bench.dieAs(1, { wanted: true });
  assert.deepEqual([bench.state, bench.gateIsOpen()], ['closed', true]);
});

test('on a GPU the present worker ends before the next one starts', (t) => {
  const bench = new Bench(t);
  bench.start();
  bench.ready();
  bench.slot.renew(RETIRE);
  bench.turn();
  assert.deepEqual([bench.state, bench.handles.length, bench.retired], ['replacing', 1, [RETIRE]]);
});

test('a worker that gets no more calls is followed at once on the CPU, and reported when it has ended', (t) => {
  const bench = new Bench(t, 1, new SpawnGate(1), 'cpu');
  bench.start();
  bench.ready();
  bench.leave();
  bench.turn();
  assert.deepEqual([bench.state, bench.handles.length, bench.slot.workers.length], ['live', 2, 2]);
  bench.ready();
  bench.dieAs(0, { how: 'killed by the server: run timeout' });
  assert.deepEqual([bench.state, bench.handles.length, bench.slot.restarts], ['live', 2, 1]);
  assert.equal(bench.slot.lastDeath?.how, 'killed by the server: run timeout');
});

test('while one ends its last calls, the next that leaves is followed once it has ended', (t) => {
  const bench = new Bench(t, 1, new SpawnGate(1), 'cpu');
  bench.start();
  bench.ready();
  bench.leave();
  bench.turn();
  bench.ready();
  bench.leave();
  bench.turn();
  assert.deepEqual([bench.handles.length, bench.slot.workers.length], [2, 2]);
  bench.die();
  bench.turn();
  assert.deepEqual([bench.state, bench.handles.length, bench.slot.workers.length], ['live', 3, 2]);
});

test('on a GPU, whose memory may not hold two, its successor starts once it has ended', (t) => {
  const bench = new Bench(t);
  bench.start();
  bench.ready();
  bench.leave();
  bench.turn();
  assert.deepEqual([bench.state, bench.handles.length], ['live', 1]);
  bench.die();
  bench.turn();
  assert.deepEqual([bench.state, bench.handles.length, bench.slot.restarts], ['live', 2, 1]);
});

test('a worker that gets no more calls while its successor starts is not followed by a third', (t) => {
  const bench = new Bench(t, 1, new SpawnGate(1), 'cpu');
  INTO.renewing(bench);
  bench.turn();
  bench.leave();
  bench.turn();
  bench.ready();
  assert.deepEqual([bench.state, bench.handles.length], ['live', 2]);
});

const OUT_OF_MEMORY: Partial<WorkerDeath> = {
  ...AT_START,
  fatal: {
    code: 'SERVE_INIT_FAILED',
    message: 'init threw: RangeError: Array buffer allocation failed',
    detail: '',
    permanent: false,
    transient: true,
  },
};

test('a start that runs out of memory is tried once more if another worker leaves, before it counts as failed', (t) => {
  const bench = new Bench(t, 3);
  bench.makesRoom = true;
  bench.start();
  bench.die(OUT_OF_MEMORY);
  bench.turn();
  assert.deepEqual(bench.states.slice(-2), ['waiting', 'live']);
  bench.die(OUT_OF_MEMORY);
  assert.equal(bench.slot.state.name, 'backoff');
});

test('it counts at once if no worker can leave', (t) => {
  const bench = new Bench(t, 3);
  bench.start();
  bench.die(OUT_OF_MEMORY);
  assert.equal(bench.slot.state.name, 'backoff');
});

test('a start that will never have memory latches its slot', (t) => {
  let refuse = (_error: ServeError): void => {};
  const memory = {
    enter: (start: Start) => (refuse = (error) => start.refuse(error)),
    leave() {},
    mayGo: () => false,
    lackOf: () => '',
  };
  const bench = new Bench(t, 1, new SpawnGate(8, memory as unknown as MemoryBudget));
  bench.start();
  refuse(new ServeError('SERVE_APP_INVALID'));
  assert.equal(bench.slot.state.name, 'latched');
  assert.ok(bench.gate.isIdle, 'it waits no more');
});

test('while other workers serve, the successor of a dead one starts a moment later', (t) => {
  const bench = new Bench(t);
  bench.start();
  bench.ready();
  bench.othersServe = true;
  bench.die();
  bench.turn();
  assert.equal(bench.handles.length, 1);
  bench.tick(20);
  assert.equal(bench.handles.length, 2);
});

test('once the last ready worker of a model has died, a start of it that waits in another slot goes at once', (t) => {
  const bench = new Bench(t, 1, new SpawnGate(1), 'cpu');
  bench.start();
  bench.ready();
  bench.everReady = bench.othersServe = true;
  enter(bench.gate, startOf({ model: 'slow' }));
  let hasGone = false;
  const isModelDown = (): boolean => !bench.othersServe;
  enter(bench.gate, startOf({ model: 'm', isModelDown }), () => (hasGone = true));
  assert.equal(hasGone, false);
  bench.othersServe = false;
  bench.die({ during: 'idle', finishedCalls: 0 });
  assert.deepEqual([bench.state, hasGone], ['backoff', true]);
});

test('a death in the warm-up is followed by a start without it, at once, and counts for nothing', (t) => {
  const bench = new Bench(t, 0);
  bench.start();
  bench.die({ ...AT_START, inWarmUp: true });
  bench.turn();
  assert.deepEqual([bench.state, bench.handles.length, bench.slot.restarts], ['live', 2, 1]);
});
