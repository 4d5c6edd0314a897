import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Exit } from '../../../supervisor/processes/worker-death.js';
import { SpareProcesses } from '../../../supervisor/processes/spare-processes.js';
import type { SpawnOptions, WorkerProcess } from '../../../supervisor/processes/spawn-worker.js';

const NODE: SpawnOptions = { command: ['/bin/node', 'main.js'], env: {}, withheld: null };
const PYTHON: SpawnOptions = { ...NODE, command: ['/bin/python3', 'main.py'] };

class FakeProcess {
  readonly exits: ((exit: Exit) => void)[] = [];
  readonly signals: string[] = [];
  ending = false;
  frozen = false;
  isNoteOpen = true;
  readonly begun = { close: () => void (this.isNoteOpen = false) };

  constructor(
    readonly pid: number,
    readonly program: string,
  ) {}

  isEnding = (): boolean => this.ending;
  isFrozen = (): boolean => this.frozen;
  onExit = (callback: (exit: Exit) => void): void => void this.exits.push(callback);
  kill = (signal: string): void => void this.signals.push(signal);

  end(): void {
    for (const callback of this.exits) callback({ code: null, signal: 'SIGKILL' });
  }
}

function bench(mostEach = 1) {
  const started: FakeProcess[] = [];
  const guarded = new Set<number>();
  const warnings: string[] = [];
  let failure: Error | null = null;
  const spares = new SpareProcesses({
    mostEach,
    guard: { add: (pid) => guarded.add(pid), remove: (pid) => guarded.delete(pid) },
    log: { warn: (text: string) => void warnings.push(text) } as never,
    spawn: ({ command }) => {
      if (failure !== null) throw failure;
      const process = new FakeProcess(100 + started.length, command[0] as string);
      started.push(process);
      return process as unknown as WorkerProcess;
    },
  });
  const fail = (error: Error | null): void => void (failure = error);
  return { spares, started, guarded, warnings, fail };
}

const pidsOf = ({ spares }: ReturnType<typeof bench>): number[] => spares.status.map(({ pid }) => pid);

test('keeps so many of each program, and ends those that no model runs any more', () => {
  const parts = bench(2);
  parts.spares.keep([NODE, PYTHON, { ...NODE }]);
  assert.deepEqual(
    parts.spares.status.map(({ program }) => program),
    ['node', 'node', 'python3', 'python3'],
  );
  assert.deepEqual([...parts.guarded], [100, 101, 102, 103]);
  parts.spares.keep([PYTHON]);
  assert.deepEqual(pidsOf(parts), [102, 103]);
  assert.deepEqual(parts.started[0]?.signals, ['SIGKILL']);
  parts.started[0]?.end();
  assert.ok(!parts.guarded.has(100));
  assert.equal(parts.started[0]?.isNoteOpen, false);
  assert.deepEqual(parts.warnings, []);
});

test('a spare is taken once, by a start of the same program and environment only', () => {
  const parts = bench();
  parts.spares.keep([NODE]);
  assert.equal(parts.spares.take(PYTHON), null);
  assert.equal(parts.spares.take({ ...NODE, env: { MORE: '1' } }), null);
  assert.equal(parts.spares.take({ ...NODE })?.pid, 100);
  assert.equal(parts.spares.take(NODE), null);
  parts.started[0]?.end();
  assert.deepEqual(parts.warnings, [], 'the death of one that was taken is its worker’s');
  assert.ok(parts.guarded.has(100), 'its worker removes it from the guard');
  parts.spares.keep([NODE]);
  assert.deepEqual(pidsOf(parts), [101]);
});

test('a variable of the server that has changed since makes a spare unusable', (t: TestContext) => {
  const parts = bench();
  t.after(() => delete process.env['BANANA_TEST_OF_SPARES']);
  parts.spares.keep([NODE]);
  process.env['BANANA_TEST_OF_SPARES'] = '1';
  assert.equal(parts.spares.take(NODE), null);
  parts.spares.keep([NODE]);
  assert.deepEqual(pidsOf(parts), [101]);
});

test('one that is dying or frozen is not taken', () => {
  const parts = bench(3);
  parts.spares.keep([NODE]);
  const [dying, frozen] = parts.started as [FakeProcess, FakeProcess];
  dying.ending = true;
  frozen.frozen = true;
  assert.equal(parts.spares.take(NODE)?.pid, 102);
  assert.deepEqual([dying.signals, frozen.signals], [['SIGKILL'], ['SIGKILL']]);
  dying.end();
  assert.deepEqual([...parts.guarded], [101, 102]);
});

test('after a death, or a start that fails, the next one waits for ten seconds', (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const parts = bench();
  parts.spares.keep([NODE]);
  parts.started[0]?.end();
  parts.spares.keep([NODE]);
  assert.deepEqual(pidsOf(parts), []);
  assert.deepEqual(parts.warnings, ['a spare process ended (SIGKILL); the next one starts in 10 s']);
  parts.fail(new Error('EAGAIN'));
  t.mock.timers.tick(10_000);
  assert.deepEqual(parts.warnings.slice(1), ['a spare process: EAGAIN; the next one starts in 10 s']);
  parts.fail(null);
  t.mock.timers.tick(10_000);
  assert.deepEqual(pidsOf(parts), [101]);
});

test('after the end there are none, and none is started', () => {
  const parts = bench();
  parts.spares.keep([NODE]);
  parts.spares.close();
  parts.spares.keep([NODE]);
  assert.deepEqual(pidsOf(parts), []);
  assert.deepEqual(
    parts.started.map(({ signals }) => signals),
    [['SIGKILL']],
  );
});
