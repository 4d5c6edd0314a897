/** kill -9 of the server itself: nothing it started outlives it, not even a worker that cannot notice. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { eventually, isAlive, startServer, type Answer, type Server } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };

/** Workers and their children are killed within about a second; the rest is for a machine that stands still. */
const ROOM_MS = 90_000;

/** Apps whose call starts a child, writes its pid, and answers once there is a file `go`. */
const STUBBORN: Readonly<Record<Language, { readonly file: string; readonly source: string }>> = {
  TypeScript: {
    file: 'app.mjs',
    source: `import { spawn } from 'node:child_process';
import { existsSync, renameSync, writeFileSync } from 'node:fs';
export function inference() {
  writeFileSync('child.new', String(spawn('sleep', ['300'], { stdio: 'ignore' }).pid));
  renameSync('child.new', 'child');
  while (existsSync('child') && !existsSync('go'));
  return 'this answer is never read';
}
`,
  },
  Python: {
    file: 'app.py',
    source: `import os, subprocess
def inference(model_inputs):
    with open("child.new", "w") as new:
        new.write(str(subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).pid))
    os.rename("child.new", "child")
    while os.path.exists("child") and not os.path.exists("go"):
        pass
    return "this answer is never read"
`,
  },
};

withEachRuntime(({ app, language }) => {
  test('kill -9 of the server while a worker spins: the worker and its child die, too', LIMIT, async (t) => {
    const cues = makeCues(t);
    const { server, call } = await startSpinning(t, app('spins'), cues);
    await killServer(server, cues);
    await assert.rejects(call);
  });

  test('kill -9 of the server while init spins and another worker is idle', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startServer(app('spins'), {
      t,
      env: { ...cues.env, CHILD: 'yes', SPIN: 'init' },
      args: ['--workers', '2'],
    });
    await eventually(
      () => pidsIn(cues).length === 4,
      ROOM_MS,
      () => cues.notes().join(),
    );
    await killServer(server, cues);
  });

  test(
    'a guard that was killed is replaced: kill -9 of the server still leaves nothing',
    { ...LIMIT, skip: process.platform !== 'linux' },
    async (t) => {
      const cues = makeCues(t);
      const { server, call } = await startSpinning(t, app('spins'), cues);
      const guard = guardOf(server.pid);
      assert.ok(guard !== null, 'there is a guard');
      process.kill(guard, 'SIGKILL');
      await eventually(
        () => ![null, guard].includes(guardOf(server.pid)),
        60_000,
        () => 'no new guard',
      );
      await killServer(server, cues);
      await assert.rejects(call);
    },
  );

  test(
    'kill -9 of the server and its guard: a worker that is in a call then ends what it has started',
    { ...LIMIT, skip: process.platform !== 'linux' },
    async (t) => {
      const { file, source } = STUBBORN[language];
      const cwd = appFolder(t, { [file]: source });
      const server = await startServer(file, { t, cwd });
      const call = ask(server, {});
      call.catch(() => {});
      await eventually(
        () => existsSync(join(cwd, 'child')),
        ROOM_MS,
        () => server.stderr(),
      );
      const child = Number(readFileSync(join(cwd, 'child'), 'utf8'));
      t.after(() => isAlive(child) && process.kill(child, 'SIGKILL'));
      assert.ok(isAlive(child), 'alive before');
      await killWithGuard(server);
      writeFileSync(join(cwd, 'go'), ''); // a worker in Python may have noticed before
      await eventually(
        () => !isAlive(child),
        ROOM_MS,
        () => `${child} lives on`,
      );
      await assert.rejects(call);
    },
  );
});

/** A server whose one worker, which has a child, is deep in a call. */
async function startSpinning(
  t: TestContext,
  app: string,
  cues: Cues,
): Promise<{ server: Server; call: Promise<Answer> }> {
  const server = await startServer(app, { t, env: { ...cues.env, CHILD: 'yes' } });
  const call = ask(server, { spin: true });
  call.catch(() => {});
  await server.untilPrinted('armed: spins');
  return { server, call };
}

async function killServer(server: Server, cues: Cues): Promise<void> {
  const pids = pidsIn(cues);
  assert.ok(pids.length >= 2 && pids.every(isAlive), 'all alive before');
  const guard = guardOf(server.pid);
  server.process.kill('SIGKILL');
  await eventually(
    () => !pids.some(isAlive),
    ROOM_MS,
    () => `${pids.filter(isAlive).join()} live on`,
  );
  assert.equal((await server.ended).signal, 'SIGKILL');
  if (guard !== null)
    await eventually(
      () => !isAlive(guard),
      ROOM_MS,
      () => 'the guard lives on',
    );
}

/** The guard is not replaced: the server stands still when it dies. */
async function killWithGuard(server: Server): Promise<void> {
  const guard = guardOf(server.pid);
  assert.ok(guard !== null, 'there is a guard');
  server.process.kill('SIGSTOP');
  await eventually(
    () => / T \d+ /.test(readFileSync(`/proc/${server.pid}/stat`, 'utf8')),
    ROOM_MS,
    () => 'the server does not stand still',
  );
  process.kill(guard, 'SIGKILL');
  server.process.kill('SIGKILL');
  assert.equal((await server.ended).signal, 'SIGKILL');
}

/** Workers and their children. */
function pidsIn(cues: Cues): number[] {
  return cues.notes().map((line) => Number(line.split(' ')[1]));
}

/** The server's orphan guard, by its command line; null if there is none (or no /proc). */
function guardOf(server: number): number | null {
  if (process.platform !== 'linux') return null;
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const found = pids.find((pid) => {
    try {
      const parent = / [A-Z] (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1];
      return (
        Number(parent) === server && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('orphan-guard')
      );
    } catch {
      return false; // ended meanwhile
    }
  });
  return found === undefined ? null : Number(found);
}
