import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ServeError } from '../../../protocol/errors.js';
import type { Admission } from '../../../supervisor/dispatch/arrivals.js';
import type { Call } from '../../../supervisor/dispatch/call.js';
import { Bench, LOST } from './dispatch-bench.js';
import { FakeWorker, newCall } from './calls.js';

function ids(worker: FakeWorker | undefined): string[] {
  return worker?.ids ?? [];
}

test('calls go to idle workers first, the rest waits in order', (t) => {
  const bench = new Bench(t, 2);
  for (const id of ['a', 'b', 'c', 'd']) bench.submit(id);
  assert.deepEqual(bench.workers.map(ids).flat().sort(), ['a', 'b']);
  assert.equal(bench.dispatcher.queued, 2);
  const [first, second] = bench.workers as [FakeWorker, FakeWorker];
  bench.finish(second);
  assert.deepEqual(ids(second), ['c']);
  bench.finish(first);
  assert.deepEqual(ids(first), ['d']);
  assert.equal(bench.dispatcher.inFlight, 2);
});

test('short calls are sent ahead to the worker with the fewest calls, and never while one is idle', (t) => {
  const bench = new Bench(t, 2, { queueSize: 100 });
  bench.learn(1);
  for (let i = 0; i < 10; i += 1) bench.submit(`${i}`);
  assert.deepEqual(
    bench.workers.map(({ load }) => load),
    [3, 3],
    'one running and two ahead: 2 ms',
  );
  assert.equal(bench.dispatcher.queued, 4);
});

test('nothing is sent ahead behind long calls', (t) => {
  const bench = new Bench(t, 1);
  bench.learn(60);
  for (const id of ['a', 'b']) bench.submit(id);
  assert.equal(bench.workers[0]?.load, 1);
});

for (const [workers, queued] of [
  [1, 0],
  [2, 1],
] as const) {
  test(`behind calls of 40 ms in each of ${workers} workers, ${queued} calls wait for the first worker that is free`, (t) => {
    const bench = new Bench(t, workers);
    bench.learn(40);
    for (let i = 0; i <= workers; i += 1) bench.submit(`${i}`);
    assert.equal(bench.dispatcher.queued, queued);
  });
}

test('nothing is sent ahead behind a call that runs long already, however short the others were', (t) => {
  const bench = new Bench(t, 2, { queueSize: 100 });
  bench.learn(0.1);
  bench.submit('long');
  const long = bench.workers.find(({ load }) => load === 1) as FakeWorker;
  long.runningMs = 26;
  for (let i = 0; i < 50; i += 1) bench.submit(`${i}`);
  assert.deepEqual(ids(long), ['long']);
});

test('workers learn whether calls wait that none of them can begin', (t) => {
  const bench = new Bench(t, 2);
  const seen: boolean[][] = [];
  const look = (): unknown => seen.push(bench.workers.map(({ callersWait }) => callersWait));
  for (const id of ['a', 'b']) bench.submit(id);
  look();
  const waits = bench.submit('c');
  look();
  bench.dispatcher.giveUp(waits, 'SERVE_CANCELLED', 'the client left');
  look();
  bench.submit('d');
  bench.finish(bench.workers[0] as FakeWorker);
  look();
  assert.deepEqual(seen, [
    [false, false],
    [true, true],
    [false, false],
    [false, false],
  ]);
});

test('a frozen worker gets a call only if all are frozen: the call then finds out whether it hangs', (t) => {
  const bench = new Bench(t, 2);
  const [frozen, other] = bench.workers as [FakeWorker, FakeWorker];
  frozen.isFrozen = true;
  for (const id of ['a', 'b']) bench.submit(id);
  assert.deepEqual([frozen.ids, other.ids], [[], ['a']]);
  assert.equal(other.callersWait, true, 'b waits for a worker');
  other.isFrozen = true;
  bench.dispatcher.pump();
  assert.deepEqual([frozen.ids, other.ids], [['b'], ['a']]);
});

test('admit counts waiting calls, and idle workers besides', (t) => {
  const bench = new Bench(t, 1, { queueSize: 2 });
  for (const id of ['runs', 'waits-1', 'waits-2']) bench.submit(id);
  const error = bench.refusal();
  assert.equal(error?.code, 'SERVE_QUEUE_FULL');
  assert.ok((error.retryAfterS as number) >= 1);
});

test('--queue-size 0 takes a call while a worker is idle, and refuses it while none is', (t) => {
  const bench = new Bench(t, 1, { queueSize: 0 });
  bench.submit('runs');
  assert.equal(bench.refusal()?.code, 'SERVE_QUEUE_FULL');
  bench.finish(bench.workers[0] as FakeWorker);
  assert.equal(bench.refusal(), null);
});

test('bytes count as they arrive, not as announced; a body that cannot be held is refused at once', (t) => {
  const bench = new Bench(t, 0);
  const { dispatcher } = bench;
  const admission = dispatcher.admit(600);
  assert.equal(dispatcher.waitingBytes, 0, 'announced is not arrived');
  assert.equal(bench.refusal(1001)?.code, 'SERVE_QUEUE_FULL');
  assert.equal(bench.refusal(1000), null);
  admission.begin(() => {});
  admission.grow(600);
  assert.equal(bench.refusal(401)?.code, 'SERVE_QUEUE_FULL');
  const chunked = dispatcher.admit(0);
  chunked.begin(() => {});
  chunked.grow(400);
  assert.throws(() => chunked.grow(1), { code: 'SERVE_QUEUE_FULL' });
  assert.equal(dispatcher.waitingBytes, 1000);
  admission.release();
  admission.release();
  chunked.release();
  assert.equal(dispatcher.waitingBytes, 0);
  assert.equal(dispatcher.arriving, 0);
});

/** A body that has begun to arrive; notes in `evicted` when its place is taken away. */
function arrive(bench: Bench, evicted: string[], name: string): Admission {
  const admission = bench.dispatcher.admit(0);
  admission.begin((error) => evicted.push(`${name}: ${error.code}`));
  return admission;
}

test('when places run short the body that arrives most slowly is refused, one at a time', (t) => {
  const bench = new Bench(t, 0, { queueSize: 3 });
  const evicted: string[] = [];
  const [drips, flows] = ['drips', 'flows', 'new'].map((name) => arrive(bench, evicted, name));
  assert.equal(bench.refusal()?.code, 'SERVE_QUEUE_FULL', 'all of them came just now');
  bench.pass(2000);
  drips?.grow(1);
  flows?.grow(100);
  const fourth = arrive(bench, evicted, 'fourth');
  assert.deepEqual(evicted, ['new: SERVE_QUEUE_FULL']);
  arrive(bench, evicted, 'fifth');
  assert.deepEqual(evicted.slice(1), ['drips: SERVE_QUEUE_FULL']);
  fourth.complete();
  flows?.complete();
  bench.pass(2000);
  arrive(bench, evicted, 'sixth');
  assert.deepEqual(evicted.slice(2), ['fifth: SERVE_QUEUE_FULL'], 'what is whole keeps its place');
  assert.equal(bench.refusal()?.code, 'SERVE_QUEUE_FULL');
});

test('an upload that stops loses its place to one that goes on, however fast it was before', (t) => {
  const bench = new Bench(t, 0, { queueSize: 2, queueBytes: 1e9 });
  const evicted: string[] = [];
  const stops = arrive(bench, evicted, 'stops');
  stops.grow(1e6);
  const goesOn = arrive(bench, evicted, 'goes on');
  for (let s = 0; s < 60; s += 1) {
    bench.pass(1000);
    goesOn.grow(10_000);
  }
  arrive(bench, evicted, 'new');
  assert.deepEqual(evicted, ['stops: SERVE_QUEUE_FULL']);
});

test('when bytes run short the slowest that holds enough of them is refused', (t) => {
  const bench = new Bench(t, 0);
  const evicted: string[] = [];
  const [little, much, self] = ['little', 'much', 'self'].map((name) => arrive(bench, evicted, name));
  little?.grow(1);
  much?.grow(500);
  bench.pass(2000);
  self?.grow(499);
  assert.equal(bench.dispatcher.waitingBytes, 1000);
  const newcomer = arrive(bench, evicted, 'newcomer');
  newcomer.grow(300);
  assert.deepEqual(evicted, ['self: SERVE_QUEUE_FULL']);
  much?.grow(400);
  assert.deepEqual(evicted.slice(1), ['much: SERVE_QUEUE_FULL'], 'it may be the slowest itself');
  assert.equal(bench.dispatcher.waitingBytes, 301);
});

test('a call that would miss its deadline in the line is refused at once; before run times are known it is admitted', (t) => {
  const bench = new Bench(t, 1, { queueSize: 100 });
  assert.equal(bench.refusal(0, bench.nowMs + 1), null);
  bench.learn(30);
  for (let i = 0; i < 10; i += 1) bench.submit(`${i}`);
  assert.equal(bench.refusal(0, bench.nowMs + 100)?.code, 'SERVE_OVERLOADED');
  assert.equal(bench.refusal(0, bench.nowMs + 1000), null);
});

test('a deadline that passes in line fails the call, and no worker ever gets it', (t) => {
  const bench = new Bench(t, 1);
  bench.submit('runs');
  bench.submit('waits', { deadlineAtMs: bench.nowMs + 100 });
  bench.pass(100);
  assert.equal(bench.outcomes.get('waits'), 'SERVE_DEADLINE');
  assert.equal(bench.dispatcher.queued, 0);
  bench.finish(bench.workers[0] as FakeWorker);
  assert.equal(bench.workers[0]?.load, 0);
});

test('the error of a running call that is given up has its time in the queue, not its run time', (t) => {
  const bench = new Bench(t, 1);
  const call = bench.submit('runs', { deadlineAtMs: bench.nowMs + 100 });
  const [worker] = bench.workers as [FakeWorker];
  worker.beganUnseen = true;
  bench.pass(100);
  assert.equal(bench.outcomes.get('runs'), 'SERVE_DEADLINE');
  assert.equal(call.queueMs(bench.nowMs + 1000), 100, 'it was asked when it began');
});

test('a deadline that passes while the call runs fails it and cancels it in the worker, which stays busy until the call ends', (t) => {
  const bench = new Bench(t, 1);
  bench.submit('runs', { deadlineAtMs: bench.nowMs + 100 });
  bench.pass(100);
  const [worker] = bench.workers as [FakeWorker];
  assert.equal(bench.outcomes.get('runs'), 'SERVE_DEADLINE');
  assert.deepEqual(worker.abandoned, ["runs: the client's deadline passed"]);
  assert.equal(bench.dispatcher.inFlight, 0);
  bench.submit('next');
  assert.deepEqual(ids(worker), ['runs'], 'one call at a time');
  worker.release();
  bench.dispatcher.pump();
  assert.deepEqual(ids(worker), ['next']);
});

test('--queue-timeout: each waiting call is answered at its own time', (t) => {
  const bench = new Bench(t, 0, { queueTimeoutMs: 1000 });
  bench.submit('a');
  bench.pass(600);
  bench.submit('b');
  bench.pass(399);
  assert.equal(bench.outcomes.size, 0);
  bench.pass(2);
  assert.deepEqual([...bench.outcomes], [['a', 'SERVE_QUEUE_TIMEOUT']]);
  bench.pass(600);
  assert.equal(bench.outcomes.get('b'), 'SERVE_QUEUE_TIMEOUT');
});

test('a dead worker loses its calls that began; the others return to the head in their order, once', (t) => {
  const bench = new Bench(t, 1, { queueSize: 100 });
  bench.learn(1);
  for (const id of ['a', 'b', 'c', 'd', 'e']) bench.submit(id);
  const [first] = bench.workers as [FakeWorker];
  assert.deepEqual(ids(first), ['a', 'b', 'c']);
  first.begin();
  bench.lose(first);
  assert.deepEqual([...bench.outcomes], [['a', 'SERVE_WORKER_LOST']]);

  const second = new FakeWorker();
  bench.workers.push(second);
  bench.dispatcher.pump();
  assert.deepEqual(ids(second), ['b'], 'before those that never left, and not behind another call again');
  bench.finish(second);
  assert.deepEqual(ids(second), ['c', 'd']);
  bench.lose(second);
  assert.equal(bench.outcomes.get('c'), 'SERVE_NOT_BEGUN');
  assert.equal(bench.outcomes.has('d'), false, 'its first loss');
  assert.equal(bench.dispatcher.queued, 2);
  assert.equal(bench.dispatcher.inFlight, 0);
});

test('a call that was lost behind one that kills is not sent ahead again, so that the next killer cannot lose it', (t) => {
  const bench = new Bench(t, 2, { queueSize: 100 });
  bench.learn(1);
  const [first, second] = bench.workers as [FakeWorker, FakeWorker];
  for (const id of ['killer 1', 'killer 2', 'good 1', 'good 2']) bench.submit(id);
  for (const worker of [first, second]) {
    assert.equal(worker.load, 2, 'a good call is sent ahead behind each killer');
    worker.begin();
  }
  bench.lose(first);
  assert.equal(second.load, 2, 'the good call that came back waits for an idle worker');
  assert.equal(bench.dispatcher.queued, 1);
  bench.lose(second);
  const third = new FakeWorker();
  bench.workers.push(third);
  bench.dispatcher.pump();
  for (let i = 0; i < 2; i += 1) bench.finish(third);
  const outcomes = Object.fromEntries(bench.outcomes);
  assert.deepEqual([outcomes['good 1'], outcomes['good 2']], ['ok', 'ok']);
});

test('a call whose client left is not sent again when its worker dies', (t) => {
  const bench = new Bench(t, 1);
  const call = bench.submit('a');
  bench.dispatcher.giveUp(call, 'SERVE_CANCELLED', 'the client left');
  bench.lose(bench.workers[0] as FakeWorker);
  assert.equal(bench.dispatcher.queued, 0);
  assert.deepEqual([...bench.outcomes], [['a', 'SERVE_CANCELLED']]);
});

test('nothing is admitted if no worker can come, and the error has the reason', (t) => {
  const bench = new Bench(t, 0);
  bench.noWorker = new ServeError('SERVE_NOT_READY', undefined, { retryAfterS: 30 });
  assert.equal(bench.refusal()?.code, 'SERVE_NOT_READY');
});

test('retryAfterS: from line and workers, else from the next start, within 1 and 300 s', (t) => {
  const bench = new Bench(t, 1, { queueSize: 1000 });
  assert.equal(bench.dispatcher.retryAfterS(), 1);
  bench.readyInMs = 42_500;
  assert.equal(bench.dispatcher.retryAfterS(), 43);
  bench.learn(1000);
  for (let i = 0; i < 12; i += 1) bench.submit(`${i}`);
  assert.equal(bench.dispatcher.retryAfterS(), 12);
  bench.learn(1e6);
  assert.equal(bench.dispatcher.retryAfterS(), 300);
});

test('failInFlight fails every call, with the error that fits its state, and cancels it in its worker', (t) => {
  const bench = new Bench(t, 2);
  for (const id of ['a', 'b', 'c']) bench.submit(id);
  bench.dispatcher.failInFlight(LOST, new ServeError('SERVE_SHUTTING_DOWN'));
  assert.deepEqual(
    [bench.outcomes.get('a'), bench.outcomes.get('b')],
    ['SERVE_SHUTTING_DOWN', 'SERVE_SHUTTING_DOWN'],
  );
  assert.equal(bench.outcomes.has('c'), false);
  assert.equal(bench.workers.flatMap(({ abandoned }) => abandoned).length, 2);
});

for (const ending of ['failInFlight', 'failNotBegun'] as const) {
  test(`${ending} also ends calls of a worker that gets no more, because it stands by`, (t) => {
    const bench = new Bench(t, 2);
    for (const id of ['a', 'b']) bench.submit(id);
    bench.standing.push(bench.workers[1] as FakeWorker);
    bench.dispatcher[ending](new ServeError('SERVE_SHUTTING_DOWN'), new ServeError('SERVE_SHUTTING_DOWN'));
    assert.deepEqual(
      bench.workers.map(({ abandoned }) => abandoned.length),
      [1, 1],
    );
  });
}

test('dropUnfit fails waiting calls that do not fit the routes, and keeps the calls that workers hold', (t) => {
  const bench = new Bench(t, 1, { queueBytes: 1000 });
  for (const id of ['sent', 'fits', 'gone']) bench.submit(id, { bytes: 10 });
  bench.dispatcher.dropUnfit(({ message }) => message.requestId === 'fits');
  assert.deepEqual([...bench.outcomes], [['gone', 'SERVE_NOT_FOUND']]);
  assert.deepEqual([bench.dispatcher.queued, bench.dispatcher.waitingBytes], [1, 10]);
  bench.finish(bench.workers[0] as FakeWorker);
  assert.equal(bench.outcomes.get('sent'), 'ok');
});

test('a free worker is tried even if calls have been slow: a slow period is not assumed for ever', (t) => {
  const bench = new Bench(t, 1);
  bench.learn(700);
  const call = bench.submit('a', { deadlineAtMs: performance.now() + 500 });
  assert.ok(bench.workers[0]?.heldCalls().includes(call));
});

test('a call whose body arrives after the last slot has latched fails at once', (t) => {
  const bench = new Bench(t, 1);
  const call = newCall('late', {});
  const admission = bench.dispatcher.admit(0);
  bench.noWorker = new ServeError('SERVE_NOT_READY');
  bench.dispatcher.submit(call, admission);
  assert.equal(call.settled, true);
  assert.equal(bench.dispatcher.queued + bench.dispatcher.arriving, 0);
});

/** Random events, in any order. */
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('submit' as const),
      deadlineMs: fc.option(fc.integer({ min: 1, max: 200 })),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('finish' as const),
      worker: fc.nat(3),
      runMs: fc.double({ min: 0, max: 40, noNaN: true }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('begin' as const), worker: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('lose' as const), worker: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('start' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), job: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(100) }) },
);

test('in any order of events each call is in exactly one place, no place is free while one waits, nothing begins twice', (t) => {
  fc.assert(
    fc.property(fc.constantFrom(1, 1, 3), fc.array(step, { maxLength: 80 }), (places, steps) => {
      t.mock.reset();
      const bench = new Bench(t, 2, { queueSize: 20 });
      for (const worker of bench.workers) worker.places = places;
      const calls: Call[] = [];
      const begun = new Set<Call>();
      for (const now of steps) {
        const worker =
          'worker' in now ? bench.workers[now.worker % Math.max(1, bench.workers.length)] : undefined;
        if (now.do === 'submit' && bench.refusal() === null) {
          const deadlineAtMs = now.deadlineMs === null ? null : bench.nowMs + now.deadlineMs;
          if (bench.refusal(0, deadlineAtMs) === null)
            calls.push(bench.submit(`${calls.length}`, { deadlineAtMs }));
        } else if (now.do === 'start' && bench.workers.length < 4) {
          const added = new FakeWorker();
          added.places = places;
          bench.workers.push(added);
          bench.dispatcher.pump();
        } else if (now.do === 'leave') {
          const call = calls[now.job];
          if (call !== undefined) bench.dispatcher.giveUp(call, 'SERVE_CANCELLED', 'the client left');
        } else if (now.do === 'pass') {
          bench.pass(now.ms);
        } else if (now.do === 'lose' && worker !== undefined) {
          bench.lose(worker);
        } else if (now.do === 'finish' && worker !== undefined && worker.load > 0) {
          beginOnce(worker, begun);
          bench.finish(worker, now.runMs);
        } else if (now.do === 'begin' && worker !== undefined && worker.load > 0) {
          beginOnce(worker, begun);
        }
        assertInvariants(bench, calls);
      }
    }),
    { numRuns: 300 },
  );
});

function beginOnce(worker: FakeWorker, begun: Set<Call>): void {
  const [call] = worker.held as [Call];
  if (call.settled || call.checkBegun()) return;
  assert.ok(!begun.has(call), 'a call begins once');
  begun.add(call);
  worker.begin();
}

function assertInvariants({ dispatcher, workers, outcomes }: Bench, calls: readonly Call[]): void {
  const held = workers.flatMap((worker) => worker.heldCalls());
  const waiting = calls.filter(({ isQueued }) => isQueued);
  const inFlight = calls.filter(({ isQueued, settled }) => !isQueued && !settled);
  assert.equal(dispatcher.queued, waiting.length);
  assert.equal(dispatcher.inFlight, inFlight.length);
  assert.equal(outcomes.size, calls.filter(({ settled }) => settled).length);
  assert.equal(dispatcher.arriving, 0);
  for (const call of inFlight)
    assert.equal(held.filter((other) => other === call).length, 1, 'one worker holds it');
  for (const call of waiting) assert.ok(!held.includes(call));
  if (waiting.length > 0)
    assert.ok(
      workers.every(({ load, places }) => load >= places),
      'no place is free while a call waits',
    );
  for (const { load, places } of workers)
    if (places > 1) assert.ok(load <= places, 'none is sent ahead to a worker with several places');
}

test('nothing is sent ahead behind a WebSocket, and no WebSocket behind another call', (t) => {
  const bench = new Bench(t, 1);
  bench.learn(1);
  const [worker] = bench.workers as [FakeWorker];
  const talk = (id: string): Call => {
    const call = newCall(id, {});
    call.conversation = { data() {}, credit() {}, waiting() {}, goAway() {}, close() {} };
    bench.dispatcher.submit(call, bench.dispatcher.admit(0));
    return call;
  };
  talk('a');
  bench.submit('b');
  assert.deepEqual(worker.ids, ['a']);
  bench.finish(worker);
  assert.deepEqual(worker.ids, ['b']);
  bench.submit('c');
  assert.deepEqual(worker.ids, ['b', 'c'], 'others do go ahead');
  talk('d');
  assert.deepEqual(worker.ids, ['b', 'c']);
});

test('a server that has ended keeps no call, neither waiting ones nor those that a dying worker gives back', (t) => {
  const bench = new Bench(t, 1);
  const [worker] = bench.workers as [FakeWorker];
  bench.submit('sent');
  bench.submit('waits');
  bench.dispatcher.close();
  assert.equal(bench.outcomes.get('waits'), 'SERVE_SHUTTING_DOWN');
  bench.lose(worker);
  assert.equal(bench.outcomes.get('sent'), 'SERVE_SHUTTING_DOWN');
  assert.equal(bench.dispatcher.queued, 0);
});
