/** `--watch`: the app's author saves, and the next call is answered by what was saved; no call is lost meanwhile. */
import assert from 'node:assert/strict';
import { utimesSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import { editedApp } from '../helpers/edited-app.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { SAVED_APPS, type SavedApps } from '../helpers/saved-apps.js';
import { startHere } from '../helpers/here.js';
import {
  eventually,
  isAlive,
  startServer,
  type Answer,
  type Server,
  type Status,
} from '../helpers/server.js';
import { answer, changes, readiness, watched } from '../helpers/watched.js';
import { openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 240_000 };

withEachRuntime(({ language }) => {
  const apps = SAVED_APPS[language];

  test(
    'saved code answers the next call: init runs again, the port stays open, no restart is counted',
    LIMIT,
    async (t) => {
      const {
        app: [file, text],
        part,
      } = apps.inParts(1);
      const app = editedApp(t, { [file]: text, [part[0]]: part[1] });
      const server = await watched(t, app, file);
      assert.deepEqual(await answer(server), { answer: 1, loads: 1 });
      const [before] = (await server.status()).model.workers;

      app.save(...apps.inParts(2).part);
      await server.untilPrinted(`${part[0]} changed: starting the workers again`);
      assert.deepEqual(await answer(server), { answer: 2, loads: 1 });
      const [after] = (await server.status()).model.workers;
      assert.notEqual(after?.pid, before?.pid);
      assert.equal(isAlive(before?.pid as number), false);
      assert.deepEqual([after?.restarts, after?.lastExit, after?.calls], [0, null, 2]);
      assert.deepEqual(await server.stop(), { code: 0, signal: null });
      assert.equal(changes(server).length, 1);
      assert.doesNotMatch(server.stderr(), /died/);
    },
  );

  test(
    'a file that is no code of the app, or is saved unchanged, starts nothing again; calls and WebSockets end in the old code, the next ones run in the new',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const others = Object.fromEntries(apps.filesOfOthers.map((path) => [path, '']));
      const app = editedApp(t, { [apps.file]: apps.version(1), 'same.json': '{}', ...others });
      const server = await watched(t, app, apps.file, [], cues.env);
      await answer(server);
      for (const path of apps.filesOfOthers)
        for (const changed of [path, join(dirname(path), 'new', basename(path))])
          app.save(changed, 'changed');
      app.save('notes.txt', 'new');
      app.save('banana.json', `{ "app": "./${apps.file}" }`);
      app.save('same.json', '{}');
      utimesSync(app.path('same.json'), new Date(), new Date());
      app.save(apps.file, apps.waiting(2));
      await eventually(async () => (await answer(server))['version'] === 2, 60_000, server.stderr);
      assert.deepEqual(changes(server), [apps.file]);

      await t.test(
        'a call that runs ends first, by the old code and undisturbed; one that comes meanwhile waits for the new',
        async () => {
          cues.forget();
          const running = ask(server, { until: 'finish' });
          await cues.untilNoted('begun 2');
          app.save(apps.file, apps.waiting(3));
          await server.until(({ model }) => model.workers[0]?.state === 'finishing');
          const next = ask(server, {});
          await server.until(({ model }) => model.queue.waiting + model.queue.arriving === 1);
          cues.give('finish');
          assert.deepEqual((await running).json(), { version: 2, aborted: false });
          assert.deepEqual((await next).json(), { version: 3, aborted: false });
        },
      );

      await t.test(
        'a WebSocket sends its last message and is closed; the next one talks with the new code',
        async (t) => {
          app.save(apps.file, apps.talking(4));
          await eventually(() => changes(server).length === 3, 60_000, server.stderr);
          const first = await openSocket(t, server, '/');
          first.socket.send('hello');
          await first.heard(1);
          app.save(apps.file, apps.talking(5));
          const why = 'SERVE_SHUTTING_DOWN: The worker of this connection is replaced.';
          assert.deepEqual(await first.closed, [1001, why]);
          const second = await openSocket(t, server, '/');
          second.socket.send('hello');
          assert.deepEqual([...first.messages, ...(await second.heard(1))], ['4: hello', '5: hello']);
        },
      );
      await server.stop();
      assert.deepEqual(changes(server), Array(4).fill(apps.file));
    },
  );
});

/** The front alone replaces workers, whatever their language. */
describe('workers that are replaced', () => {
  const apps = SAVED_APPS.TypeScript;

  test(
    'every worker is replaced; callers that never pause notice nothing of saves that never pause',
    LIMIT,
    async (t) => {
      const app = editedApp(t, { [apps.file]: apps.version(0) });
      const server = await watched(t, app, apps.file, ['--workers', '2']);
      const isReady = (pids: readonly unknown[]) =>
        server.until(({ model: { workers } }) =>
          workers.every(({ state, pid }) => state === 'idle' && !pids.includes(pid)),
        );
      const pids = (await isReady([])).model.workers.map(({ pid }) => pid);
      app.save(apps.file, apps.version(1));
      await isReady(pids);
      const answers = await Promise.all(Array.from({ length: 6 }, () => answer(server)));
      assert.deepEqual(answers, Array(6).fill({ version: 1 }));
      let last = 1;
      const caller = async (): Promise<void> => {
        for (let version = 1; version < 4;) {
          version = Number((await answer(server))['version']);
          assert.ok(version <= last, 'no answer comes from code that was not saved');
        }
      };
      const callers = Promise.all(Array.from({ length: 8 }, caller));
      for (last = 2; last <= 4; last += 1) {
        app.save(apps.file, apps.version(last));
        await eventually(async () => (await answer(server))['version'] === last, 60_000, server.stderr);
      }
      await callers;
      await server.stop();
    },
  );

  test('routes are those of the new code: for calls to come and for calls that wait', LIMIT, async (t) => {
    const cues = makeCues(t);
    const app = editedApp(t, { [apps.file]: apps.routes(['/old', '/both']) });
    const server = await watched(t, app, apps.file, [], cues.env);
    assert.equal(await statusOf(server, '/new'), 404);
    const running = statusOf(server, '/old');
    await cues.untilNoted('begun /old');
    const waiting = ['/old', '/both'].map((path) => statusOf(server, path));
    await server.until(({ model }) => model.queue.waiting + model.queue.arriving === 2);
    app.save(apps.file, apps.routes(['/both', '/new']));
    await server.until(({ model }) => model.workers[0]?.state === 'finishing');
    const held = ['/new', '/old'].map((path) => statusOf(server, path));
    await server.until(({ model }) => model.queue.waiting + model.queue.arriving === 4);
    cues.give('finish');
    assert.equal(await running, 200, 'it ran');
    assert.deepEqual(await Promise.all(waiting), [404, 200], 'they had not begun');
    assert.deepEqual(await Promise.all(held), [200, 404]);
    assert.equal(await statusOf(server, '/old'), 404);
    await server.stop();
  });

  test(
    "the app's config is the new code's, also for options that it does not set any more",
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const app = editedApp(t, { [apps.file]: apps.config({ queueSize: 7, initTimeout: '1ms' }) });
      const server = await watched(t, app, apps.file, ['--drain-timeout', '1s'], cues.env);
      await server.untilPrinted('killed by the server: init timeout');
      app.save(apps.file, apps.config({ queueSize: 7 }));
      await server.until(({ state, model }) => state === 'ready' && maxCallsOf(model) === 7);
      app.save(apps.file, apps.config({}));
      await server.until(({ state, model }) => state === 'ready' && maxCallsOf(model) === 1024);

      await t.test(
        'a call that does not end within the drain timeout is aborted, with that reason',
        async () => {
          app.save(apps.file, apps.waiting(1));
          await eventually(() => changes(server).length === 3, 60_000, server.stderr);
          const running = ask(server, { until: 'never' });
          await cues.untilNoted('begun 1');
          app.save(apps.file, apps.waiting(2));
          assert.equal((await running).status, 500);
          assert.deepEqual((await ask(server, {})).json(), { version: 2, aborted: false });
        },
      );
      await server.stop();
    },
  );

  test(
    'a drain while the old worker ends a call: the call is answered, nothing is left',
    LIMIT,
    async (t) => {
      const { server, cues, running, pid } = await startReplacing(t, apps, 'finish');
      server.process.kill('SIGINT');
      await server.untilPrinted('draining');
      cues.give('finish');
      assert.deepEqual((await running).json(), { version: 1, aborted: false });
      assert.deepEqual(await server.ended, { code: 0, signal: null });
      assert.equal(isAlive(pid), false);
    },
  );

  test(
    'saves and a drain while workers start: the newest answers, calls are held, and nothing is watched any more',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const app = editedApp(t, { [apps.file]: apps.slow(1, 'never') });
      const server = await watched(t, app, apps.file, [], cues.env);

      await t.test('what starts is stopped, the newest answers', async () => {
        await cues.untilNoted('init 1');
        const held = answer(server);
        app.save(apps.file, apps.version(2));
        assert.deepEqual(await held, { version: 2 });
      });

      await t.test('calls that come while the new code starts are held; health is not ready', async () => {
        app.save(apps.file, apps.slow(3, 'go on'));
        await cues.untilNoted('init 3');
        const held = Promise.all([answer(server), answer(server)]);
        await server.until(({ model }) => model.queue.waiting + model.queue.arriving === 2);
        assert.deepEqual(await readiness(server), [503, 'starting']);
        cues.give('go on');
        assert.deepEqual(await held, [{ version: 3 }, { version: 3 }]);
        assert.deepEqual(await readiness(server), [200, 'ready']);
      });

      await t.test('a drain: held calls are answered by the new start', async () => {
        app.save(apps.file, apps.slow(4, 'go on, too'));
        await cues.untilNoted('init 4');
        const held = answer(server);
        await server.until(({ model }) => model.queue.waiting + model.queue.arriving === 1);
        const [worker] = (await server.status()).model.workers;
        server.process.kill('SIGINT');
        await server.untilPrinted('draining');
        app.save(apps.file, apps.version(5));
        cues.give('go on, too');
        assert.deepEqual(await held, { version: 4 });
        assert.deepEqual(await server.ended, { code: 0, signal: null });
        assert.deepEqual(changes(server), Array(3).fill(apps.file));
        assert.equal(isAlive(worker?.pid as number), false);
      });
    },
  );

  test('a second Ctrl-C while workers are replaced stops at once', LIMIT, async (t) => {
    const { server, running, pid } = await startReplacing(t, apps, 'never', startServer);
    const cut = assert.rejects(running);
    server.process.kill('SIGINT');
    await server.untilPrinted('draining');
    server.process.kill('SIGINT');
    assert.deepEqual(await server.ended, { code: 130, signal: null });
    await cut;
    await eventually(
      () => !isAlive(pid),
      60_000,
      () => `worker ${pid} is still there`,
    );
  });
});

async function statusOf(server: Server, path: string): Promise<number> {
  const headers = { 'content-type': 'application/json' };
  return (await fetch(server.url + path, { method: 'POST', body: '{}', headers })).status;
}

function maxCallsOf(model: Status['model']): unknown {
  return (model.queue as unknown as { maxCalls: number }).maxCalls;
}

/** A call runs in a worker that is being replaced, because version 2 was saved; it ends when its cue is given. */
async function startReplacing(
  t: TestContext,
  apps: SavedApps,
  until: string,
  start = startHere,
): Promise<{ server: Server; cues: Cues; running: Promise<Answer>; pid: number }> {
  const cues = makeCues(t);
  const app = editedApp(t, { [apps.file]: apps.waiting(1) });
  const server = await watched(t, app, apps.file, [], cues.env, start);
  const running = ask(server, { until });
  await cues.untilNoted('begun 1');
  app.save(apps.file, apps.waiting(2));
  const { model } = await server.until((status) => status.model.workers[0]?.state === 'finishing');
  return { server, cues, running, pid: model.workers[0]?.pid as number };
}
