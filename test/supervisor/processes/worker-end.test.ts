import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test, type TestContext } from 'node:test';
import type { Exit } from '../../../supervisor/processes/worker-death.js';
import type { WorkerProcess } from '../../../supervisor/processes/spawn-worker.js';
import { Timers } from '../../../supervisor/machine/limit-timer.js';
import { WorkerEnd } from '../../../supervisor/processes/worker-end.js';

const EXIT: Exit = { code: 1, signal: null };

/** The members of a pipe that are used. */
class Pipe extends EventEmitter {
  closed = false;

  close(): void {
    this.closed = true;
    this.emit('close');
  }
}

/** A fake process whose signs the test gives, and mocked time. */
function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(performance, 'now', () => 0); // timers are never late
  const story: string[] = [];
  const pipes = { stdout: new Pipe(), stderr: new Pipe() };
  let onExit: (exit: Exit) => void = () => {};
  let isEnding = false;
  const process = {
    ...pipes,
    framesIn: { destroy: () => story.push('cut') },
    isEnding: () => isEnding,
    onExit: (callback: (exit: Exit) => void) => (onExit = callback),
    kill: (signal: string) => story.push(signal),
  } as unknown as WorkerProcess;
  const end = new WorkerEnd(process, new Timers(), {
    onSign: () => story.push('sign'),
    onUnreachable: () => story.push('unreachable'),
    onDead: ({ code }) => story.push(`dead ${code}`),
    onGone: ({ code }) => story.push(`gone ${code}`),
  });
  return {
    ...pipes,
    streamEnds: () => end.onStreamEnd(),
    exits: () => onExit(EXIT),
    isEnding: () => void (isEnding = true),
    pass: (ms: number) => t.mock.timers.tick(ms),
    /** Returns the events since the last call. */
    told: (): string[] => story.splice(0),
  };
}

for (const [name, first, second] of [
  ['the end of its stream, then its exit', 'streamEnds', 'exits'],
  ['its exit, then the end of its stream', 'exits', 'streamEnds'],
] as const) {
  test(`a worker is dead with both signs, ${name}, and gone when its output is closed`, (t) => {
    const bench = setUp(t);
    bench[first]();
    assert.deepEqual(bench.told(), ['sign']);
    bench[second]();
    assert.deepEqual(bench.told(), ['sign', 'dead 1', 'SIGKILL']);
    bench.stdout.close();
    assert.deepEqual(bench.told(), []);
    bench.stderr.close();
    assert.deepEqual(bench.told(), ['gone 1']);
    bench.pass(10_000);
    assert.deepEqual(bench.told(), []);
  });
}

test('a worker whose output is closed already is gone at once', (t) => {
  const bench = setUp(t);
  bench.stdout.close();
  bench.stderr.close();
  bench.streamEnds();
  bench.exits();
  assert.deepEqual(bench.told(), ['sign', 'sign', 'dead 1', 'SIGKILL', 'gone 1']);
});

test('another process that holds its output delays the end by 50 ms', (t) => {
  const bench = setUp(t);
  bench.exits();
  bench.streamEnds();
  bench.told();
  bench.pass(49);
  assert.deepEqual(bench.told(), []);
  bench.pass(1);
  assert.deepEqual(bench.told(), ['gone 1']);
  bench.stdout.close();
  bench.stderr.close();
  assert.deepEqual(bench.told(), []);
});

test('a process that closed its stream and lives on is unreachable after 25 ms', (t) => {
  const bench = setUp(t);
  bench.streamEnds();
  bench.pass(24);
  assert.deepEqual(bench.told(), ['sign']);
  bench.pass(1);
  assert.deepEqual(bench.told(), ['unreachable']);
});

test('a process that exits within those 25 ms is not unreachable', (t) => {
  const bench = setUp(t);
  bench.streamEnds();
  bench.pass(24);
  bench.exits();
  bench.pass(1);
  assert.ok(!bench.told().includes('unreachable'));
});

test('a process that the kernel is ending is not unreachable, however long that takes', (t) => {
  const bench = setUp(t);
  bench.streamEnds();
  bench.isEnding();
  bench.pass(10_000);
  assert.deepEqual(bench.told(), ['sign', 'SIGKILL']);
  bench.exits();
  assert.deepEqual(bench.told(), ['sign', 'dead 1', 'SIGKILL']);
});

test('a stream that another process holds open is cut 500 ms after the exit', (t) => {
  const bench = setUp(t);
  bench.exits();
  bench.pass(499);
  assert.deepEqual(bench.told(), ['sign']);
  bench.pass(1);
  assert.deepEqual(bench.told(), ['cut']);
});

test('a stream that has ended is not cut', (t) => {
  const bench = setUp(t);
  bench.exits();
  bench.streamEnds();
  bench.pass(500);
  assert.ok(!bench.told().includes('cut'));
});
