/** Tests with real processes as the guard's shell, so that every death is a real one; the pauses are mocked. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import {
  FIRST_PAUSE_MS,
  HEALTHY_MS,
  MAX_REPLACEMENTS,
  OrphanGuard,
} from '../../../../supervisor/processes/orphan-guard.js';

const LIMIT = { timeout: 240_000 };

/** Longer than any pause. */
const LONG_MS = 600_000;

class Bench {
  readonly shells: ChildProcess[] = [];
  /** The groups that each of them was started with. */
  readonly groups: (readonly number[])[] = [];
  readonly missing: string[] = [];
  readonly guard: OrphanGuard;
  nowMs = 0;
  readonly #t: TestContext;

  constructor(t: TestContext, startShell: () => ChildProcess) {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    t.mock.method(performance, 'now', () => this.nowMs);
    this.#t = t;
    this.guard = new OrphanGuard(
      (why) => this.missing.push(why),
      (groups) => {
        const shell = startShell();
        this.shells.push(shell);
        this.groups.push(groups);
        t.after(() => shell.kill('SIGKILL'));
        return shell;
      },
    );
    t.after(() => this.guard.close());
  }

  get shell(): ChildProcess {
    return this.shells.at(-1) as ChildProcess;
  }

  /** Resolves once the present shell is dead and the guard knows: its listener came first. */
  async died(): Promise<void> {
    this.shell.ref(); // the guard's own do not keep a program alive
    if (this.shell.exitCode === null && this.shell.signalCode === null) await once(this.shell, 'exit');
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.#t.mock.timers.tick(ms);
  }
}

const diesAtOnce = (): ChildProcess =>
  spawn('/bin/sh', ['-c', 'exit 3'], { stdio: ['pipe', 'pipe', 'ignore'] });
const waits = (): ChildProcess => spawn('/bin/cat', { stdio: ['pipe', 'pipe', 'ignore'] });

test(
  'a shell that dies at once is replaced a few times, then no more, and that is reported once',
  LIMIT,
  async (t) => {
    const bench = new Bench(t, diesAtOnce);
    for (let i = 0; i < MAX_REPLACEMENTS; i += 1) {
      await bench.died();
      bench.pass(HEALTHY_MS - 1);
      assert.equal(bench.shells.length, i + 2, 'replaced');
      assert.deepEqual(bench.missing, []);
    }
    await bench.died();
    bench.pass(LONG_MS);
    assert.equal(bench.shells.length, MAX_REPLACEMENTS + 1);
    assert.equal(bench.missing.length, 1);
    assert.match(bench.missing[0] ?? '', /exit code 3/);
    bench.guard.add(1); // without a shell it does nothing, and must not fail
  },
);

test('the first replacement comes at once, the next ones after pauses that double', LIMIT, async (t) => {
  const bench = new Bench(t, diesAtOnce);
  await bench.died();
  assert.equal(bench.shells.length, 2, 'no gap for a guard that somebody killed');
  for (let pauseMs = FIRST_PAUSE_MS, i = 2; i <= MAX_REPLACEMENTS; pauseMs *= 2, i += 1) {
    await bench.died();
    bench.pass(pauseMs - 1);
    assert.equal(bench.shells.length, i);
    bench.pass(1);
    assert.equal(bench.shells.length, i + 1);
  }
});

test('a shell that is killed now and then is always replaced', LIMIT, async (t) => {
  const bench = new Bench(t, waits);
  for (let i = 0; i < 2 * MAX_REPLACEMENTS; i += 1) {
    bench.pass(HEALTHY_MS);
    bench.shell.kill('SIGKILL');
    await bench.died();
    assert.equal(bench.shells.length, i + 2);
  }
  assert.deepEqual(bench.missing, []);
});

test(
  'a replacement is started with all existing groups, including those added during the pause',
  LIMIT,
  async (t) => {
    const bench = new Bench(t, waits);
    for (const pid of [11, 12]) bench.guard.add(pid);
    for (let i = 0; i < 2; i += 1) {
      bench.shell.kill('SIGKILL');
      await bench.died();
    }
    assert.equal(bench.shells.length, 2, 'a pause');
    bench.guard.remove(11);
    bench.guard.add(13);
    bench.pass(FIRST_PAUSE_MS);
    bench.guard.add(14);
    bench.guard.remove(12);
    bench.guard.close();
    assert.deepEqual(bench.groups, [[], [11, 12], [12, 13]]);
    assert.ok(bench.shell.stdout !== null);
    assert.equal(await text(bench.shell.stdout), '+14\n-12\n', 'and is told what changes');
  },
);

test('a missing shell is reported at once and not looked for again', LIMIT, async (t) => {
  const bench = new Bench(t, () => spawn('/no/such/shell', { stdio: ['pipe', 'ignore', 'ignore'] }));
  await new Promise((resolve) => bench.shell.once('error', resolve));
  bench.pass(LONG_MS);
  assert.deepEqual([bench.shells.length, bench.missing], [1, ['spawn /no/such/shell ENOENT']]);
});

test('a process that cannot be started just now is tried again, then reported once', LIMIT, (t) => {
  const bench = new Bench(t, () => {
    throw new Error('spawn ENOMEM');
  });
  for (let i = 0; i < MAX_REPLACEMENTS; i += 1) bench.pass(HEALTHY_MS - 1);
  bench.pass(LONG_MS);
  assert.deepEqual(bench.missing, ['spawn ENOMEM']);
});

test('a guard closed during a pause starts no shell', LIMIT, async (t) => {
  const bench = new Bench(t, diesAtOnce);
  await bench.died();
  await bench.died();
  bench.guard.close();
  bench.pass(LONG_MS);
  assert.deepEqual([bench.shells.length, bench.missing], [2, []]);
});
