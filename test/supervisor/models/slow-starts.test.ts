import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import {
  slowStarts,
  type StartReporter,
  type StartingWorker,
} from '../../../supervisor/models/slow-starts.js';
import { startPhase, type WorkerState } from '../../../supervisor/processes/worker-lifecycle.js';
import { logReporter } from '../../../supervisor/observe/server-logs.js';

/** Workers whose states the test sets, and a clock that it moves. */
class Bench {
  readonly lines: string[] = [];
  #nowMs = 0;
  #workers: { state: WorkerState | 'waiting'; sinceMs: number; spawnedMs: number }[] = [];
  readonly #t: TestContext;
  label = '';
  readonly #update: () => void;

  constructor(t: TestContext, reporter?: StartReporter) {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    this.#t = t;
    const log = { info: (text: string) => this.lines.push(text) };
    this.#update = slowStarts(
      reporter ?? logReporter(log),
      () => this.#starting(),
      () => 600_000,
      () => this.label,
    );
  }

  enter(worker: number, state: WorkerState | 'waiting'): void {
    const spawnedMs = state === 'spawning' ? this.#nowMs : (this.#workers[worker]?.spawnedMs ?? this.#nowMs);
    this.#workers[worker] = { state, sinceMs: this.#nowMs, spawnedMs };
    this.#update();
  }

  pass(seconds: number): void {
    for (let i = 0; i < seconds; i += 1) {
      this.#nowMs += 1000;
      this.#t.mock.timers.tick(1000);
    }
  }

  #starting(): StartingWorker[] {
    return this.#workers.flatMap(({ state, sinceMs, spawnedMs }, worker) =>
      state === 'ready'
        ? []
        : [
            {
              worker,
              doing:
                state === 'waiting'
                  ? 'waiting for 2 workers of slow (--spawn-concurrency 2)'
                  : (startPhase(state) ?? ''),
              stateMs: this.#nowMs - sinceMs,
              uptimeMs: state === 'waiting' ? null : this.#nowMs - spawnedMs,
            },
          ],
    );
  }
}

test('a start of less than a few seconds is not logged', (t) => {
  const bench = new Bench(t);
  bench.enter(0, 'spawning');
  bench.enter(0, 'loading');
  bench.pass(2);
  bench.enter(0, 'ready');
  bench.pass(600);
  assert.deepEqual(bench.lines, []);
});

test('a slow start is logged with what the worker does, for how long, and the limit with its option', (t) => {
  const bench = new Bench(t);
  bench.enter(0, 'spawning');
  bench.enter(0, 'loading');
  bench.pass(4);
  bench.enter(0, 'initializing');
  bench.pass(4);
  assert.deepEqual(bench.lines, [
    'still starting: worker 0 importing the app for 3 s (limit for each: 10 min, --init-timeout)',
    'still starting: worker 0 running init or the example for 4 s (limit for each: 10 min, --init-timeout)',
  ]);
});

test('several workers are logged in one line, without those that are ready', (t) => {
  const bench = new Bench(t);
  for (const worker of [0, 1, 2, 3]) bench.enter(worker, 'spawning');
  bench.enter(0, 'loading');
  bench.enter(1, 'loading');
  bench.enter(2, 'ready');
  bench.enter(3, 'waiting');
  bench.pass(3);
  assert.deepEqual(bench.lines, [
    'still starting: workers 0, 1 importing the app for 3 s; worker 3 waiting for 2 workers of slow (--spawn-concurrency 2) for 3 s (limit for each: 10 min, --init-timeout)',
  ]);
});

test('a model whose starts all wait is logged with what they wait for', (t) => {
  const bench = new Bench(t);
  bench.enter(0, 'waiting');
  bench.pass(3);
  assert.deepEqual(bench.lines, [
    'still starting: worker 0 waiting for 2 workers of slow (--spawn-concurrency 2) for 3 s',
  ]);
});

test('if there are several models, the line names the model of each worker', (t) => {
  const bench = new Bench(t);
  bench.label = 'digits';
  bench.enter(0, 'loading');
  bench.pass(3);
  assert.deepEqual(bench.lines, [
    'still starting: worker digits/0 importing the app for 3 s (limit for each: 10 min, --init-timeout)',
  ]);
});

test('ten minutes of init give about a dozen lines', (t) => {
  const bench = new Bench(t);
  bench.enter(0, 'spawning');
  bench.enter(0, 'initializing');
  bench.pass(600);
  const times = bench.lines.map((line) => / for (\S+ \S+) \(/.exec(line)?.[1]);
  assert.deepEqual(times.slice(0, 6), ['3 s', '8 s', '18 s', '38 s', '78 s', '2.3 min']);
  assert.equal(bench.lines.length, 13);
});

test('workers that die and start again quickly are not logged, however long that goes on', (t) => {
  const bench = new Bench(t);
  for (let i = 0; i < 60; i += 1) {
    bench.enter(i % 2, 'spawning'); // the other one is still there: some worker is always starting
    bench.pass(1);
  }
  assert.deepEqual(bench.lines, []);
});

test('the reporter is ended once no worker is starting any more, and the next slow start is reported anew', (t) => {
  const story: string[] = [];
  const reporter = {
    pauseMs: () => 1000,
    report: () => story.push('report'),
    end: () => story.push('end'),
  };
  const bench = new Bench(t, reporter);
  for (let start = 0; start < 2; start += 1) {
    bench.enter(0, 'spawning');
    bench.pass(4);
    bench.enter(0, 'ready');
    bench.pass(10);
  }
  assert.deepEqual(story, ['report', 'report', 'end', 'report', 'report', 'end']);
});
