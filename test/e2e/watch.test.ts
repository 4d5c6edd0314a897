/** `--watch`: the app's author saves, and the next call is answered by what was saved; no call is lost meanwhile. */
import assert from 'node:assert/strict';
import { utimesSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { serve } from '../../index.js';
import { ask, errorOf } from '../helpers/ask.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import { CUES_MODULE, PACKAGE, editedApp, type EditedApp } from '../helpers/edited-app.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { SAVED_APPS, type SavedApps } from '../helpers/saved-apps.js';
import {
  eventually,
  isAlive,
  startServer,
  type Answer,
  type Server,
  type Status,
} from '../helpers/server.js';
import { openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 60_000 };

/** What needs no language of its own is tested with one. */
const versionApp = SAVED_APPS.TypeScript.version;

withEachRuntime(({ language }) => {
  const apps = SAVED_APPS[language];

  test(
    'what was saved answers the next call: init runs again, the port stays open, no restart is counted',
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

  test('every worker is replaced', LIMIT, async (t) => {
    const app = editedApp(t, { [apps.file]: apps.version(1) });
    const server = await watched(t, app, apps.file, ['--workers', '3']);
    const isReady = (pids: readonly unknown[]) =>
      server.until(({ model: { workers } }) =>
        workers.every(({ state, pid }) => state === 'idle' && !pids.includes(pid)),
      );
    const pids = (await isReady([])).model.workers.map(({ pid }) => pid);
    app.save(apps.file, apps.version(2));
    await isReady(pids);
    const answers = await Promise.all(Array.from({ length: 9 }, () => answer(server)));
    assert.deepEqual(answers, Array(9).fill({ version: 2 }));
    await server.stop();
  });

  test('calls that come while the new code starts are held; health does not say ready', LIMIT, async (t) => {
    const cues = makeCues(t);
    const app = editedApp(t, { [apps.file]: apps.version(1) });
    const server = await watched(t, app, apps.file, [], cues.env);
    await answer(server);
    app.save(apps.file, apps.slow(2, 'go on'));
    await cues.untilNoted('init 2');
    const held = Promise.all([answer(server), answer(server)]);
    await server.until(({ model }) => model.queue.waiting + model.queue.arriving === 2);
    assert.deepEqual(await readiness(server), [503, 'starting']);
    cues.give('go on');
    assert.deepEqual(await held, [{ version: 2 }, { version: 2 }]);
    assert.deepEqual(await readiness(server), [200, 'ready']);
    await server.stop();
  });

  test(
    'a call that runs ends first, by the old code and undisturbed; one that comes meanwhile waits for the new',
    LIMIT,
    async (t) => {
      const { server, cues, running } = await startReplacing(t, apps, 'finish');
      const next = ask(server, {});
      await server.until(({ model }) => model.queue.waiting + model.queue.arriving === 1);
      cues.give('finish');
      assert.deepEqual((await running).json(), { version: 1, aborted: false });
      assert.deepEqual((await next).json(), { version: 2, aborted: false });
      await server.stop();
    },
  );

  test(
    'a WebSocket says its last word and is closed; the next one talks with the new code',
    LIMIT,
    async (t) => {
      const app = editedApp(t, { [apps.file]: apps.talking(1) });
      const server = await watched(t, app, apps.file);
      const first = await openSocket(t, server, '/');
      first.socket.send('hello');
      await first.heard(1);
      app.save(apps.file, apps.talking(2));
      const why = 'SERVE_SHUTTING_DOWN: The worker of this connection is replaced.';
      assert.deepEqual(await first.closed, [1001, why]);
      const second = await openSocket(t, server, '/');
      second.socket.send('hello');
      assert.deepEqual([...first.messages, ...(await second.heard(1))], ['1: hello', '2: hello']);
      await server.stop();
    },
  );

  test('a call that does not end within the drain timeout is aborted, and told so', LIMIT, async (t) => {
    const cues = makeCues(t);
    const app = editedApp(t, { [apps.file]: apps.waiting(1) });
    const server = await watched(t, app, apps.file, ['--drain-timeout', '1s'], cues.env);
    const running = ask(server, { until: 'never' });
    await cues.untilNoted('begun 1');
    app.save(apps.file, apps.waiting(2));
    assert.equal((await running).status, 500);
    assert.deepEqual((await ask(server, {})).json(), { version: 2, aborted: false });
    await server.stop();
  });

  for (const [what, broken, told] of apps.mistakes) {
    test(
      `${what}: told in the log and by health, 503 for calls; the next save mends it`,
      LIMIT,
      async (t) => {
        const app = editedApp(t, { [apps.file]: apps.version(1) });
        const server = await watched(t, app, apps.file);
        assert.deepEqual(await answer(server), { version: 1 });
        app.save(apps.file, broken);
        await server.untilPrinted(
          /no worker can be restarted; .*Answering 503 until a file of the app changes/,
        );
        assert.match(server.stderr(), told);
        await refusesCalls(server);
        app.save(apps.file, apps.version(2));
        await server.untilPrinted(new RegExp(`${apps.file} changed: .*\\n[^]*${apps.file} changed: `));
        assert.deepEqual(await answer(server), { version: 2 });
        assert.deepEqual(await readiness(server), [200, 'ready']);
        await server.stop();
      },
    );

    test(`${what} at the very start does not end the server; the next save mends it`, LIMIT, async (t) => {
      const app = editedApp(t, { [apps.file]: broken });
      const server = await watched(t, app, apps.file, ['--on-crash-loop', 'exit']);
      await server.untilPrinted(/no worker could start; .*Answering 503 until a file of the app changes/);
      assert.match(server.stderr(), told);
      await refusesCalls(server);
      app.save(apps.file, apps.version(1));
      await server.until(({ state }) => state === 'ready');
      assert.deepEqual(await answer(server), { version: 1 });
      await server.stop();
    });
  }

  test('a start that is broken and saved again and again: every save is tried at once', LIMIT, async (t) => {
    const app = editedApp(t, { [apps.file]: apps.throwing('broken 0') });
    const server = await watched(t, app, apps.file);
    for (let i = 0; i < 4; i += 1) {
      await server.untilPrinted(new RegExp(`broken ${i}[^]*no worker could start; the reason`));
      app.save(apps.file, apps.throwing(`broken ${i + 1}`));
    }
    await server.untilPrinted(/broken 4[^]*no worker could start; the reason/);
    app.save(apps.file, apps.version(1));
    await server.until(({ state }) => state === 'ready');
    assert.doesNotMatch(server.stderr(), /restarting in/);
    await server.stop();
  });

  test('a save while the workers start: what starts is stopped, the newest answers', LIMIT, async (t) => {
    const cues = makeCues(t);
    const app = editedApp(t, { [apps.file]: apps.slow(1, 'never') });
    const server = await watched(t, app, apps.file, [], cues.env);
    await cues.untilNoted('init 1');
    const held = answer(server);
    app.save(apps.file, apps.version(2));
    assert.deepEqual(await held, { version: 2 });
    await server.stop();
  });

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

  test("the app's config is the new code's, also what it does not say any more", LIMIT, async (t) => {
    const app = editedApp(t, { [apps.file]: apps.config({ queueSize: 7, initTimeout: '1ms' }) });
    const server = await watched(t, app, apps.file);
    await server.untilPrinted('killed by the server: init timeout');
    app.save(apps.file, apps.config({ queueSize: 7 }));
    await server.until(({ state, model }) => state === 'ready' && maxCallsOf(model) === 7);
    app.save(apps.file, apps.config({}));
    await server.until(({ state, model }) => state === 'ready' && maxCallsOf(model) === 1024);
    await server.stop();
  });

  test('a file that is no code of the app, or is saved unchanged, starts nothing again', LIMIT, async (t) => {
    const others = Object.fromEntries(apps.filesOfOthers.map((path) => [path, '']));
    const app = editedApp(t, { [apps.file]: apps.version(1), 'same.json': '{}', ...others });
    const server = await watched(t, app, apps.file);
    await answer(server);
    for (const path of apps.filesOfOthers)
      for (const changed of [path, join(dirname(path), 'new', basename(path))]) app.save(changed, 'changed');
    app.save('notes.txt', 'new');
    app.save('banana.json', `{ "app": "./${apps.file}" }`);
    app.save('same.json', '{}');
    utimesSync(app.path('same.json'), new Date(), new Date());
    app.save(apps.file, apps.version(2));
    await eventually(async () => (await answer(server))['version'] === 2, 15_000, server.stderr);
    await server.stop();
    assert.deepEqual(changes(server), [apps.file]);
  });

  test('callers that never pause notice nothing of saves that never pause', LIMIT, async (t) => {
    const app = editedApp(t, { [apps.file]: apps.version(0) });
    const server = await watched(t, app, apps.file, ['--workers', '2']);
    let last = 0;
    const caller = async (): Promise<void> => {
      for (let version = 0; version < 5;) {
        version = Number((await answer(server))['version']);
        assert.ok(version <= last, 'nobody sees what was not saved');
      }
    };
    const callers = Promise.all(Array.from({ length: 8 }, caller));
    for (last = 1; last <= 5; last += 1) {
      app.save(apps.file, apps.version(last));
      await eventually(async () => (await answer(server))['version'] === last, 15_000, server.stderr);
    }
    await callers;
    await server.stop();
  });

  test(
    'a drain during the new start: held calls are answered by it, and nothing is watched any more',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const app = editedApp(t, { [apps.file]: apps.version(1) });
      const server = await watched(t, app, apps.file, [], cues.env);
      await answer(server);
      app.save(apps.file, apps.slow(2, 'go on'));
      await cues.untilNoted('init 2');
      const held = answer(server);
      await server.until(({ model }) => model.queue.waiting + model.queue.arriving === 1);
      const [worker] = (await server.status()).model.workers;
      server.process.kill('SIGINT');
      await server.untilPrinted('draining');
      app.save(apps.file, apps.version(3));
      cues.give('go on');
      assert.deepEqual(await held, { version: 2 });
      assert.deepEqual(await server.ended, { code: 0, signal: null });
      assert.deepEqual(changes(server), [apps.file]);
      assert.equal(isAlive(worker?.pid as number), false);
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

  test('a second Ctrl-C while workers are replaced stops at once', LIMIT, async (t) => {
    const { server, running, pid } = await startReplacing(t, apps, 'never');
    const cut = assert.rejects(running);
    server.process.kill('SIGINT');
    await server.untilPrinted('draining');
    server.process.kill('SIGINT');
    assert.deepEqual(await server.ended, { code: 130, signal: null });
    await cut;
    await eventually(
      () => !isAlive(pid),
      15_000,
      () => `worker ${pid} is still there`,
    );
  });
});

describe('what is watched', () => {
  test('new folders, folders made anew, and files that go: all are seen', LIMIT, async (t) => {
    const app = editedApp(t, { 'app.mjs': reads('deep/er/value.json') });
    const server = await watched(t, app, 'app.mjs');
    assert.deepEqual(await answer(server), { value: null });
    for (const value of [1, 2]) {
      app.save('deep/er/value.json', String(value));
      await eventually(async () => (await answer(server))['value'] === value, 15_000, server.stderr);
      app.remove('deep');
      await eventually(async () => (await answer(server))['value'] === null, 15_000, server.stderr);
    }
    await server.stop();
  });

  test(
    'a checkout that writes 500 files leads to one or two starts, one after the other',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const app = editedApp(t, { 'app.mjs': notingApp(0) });
      const server = await watched(t, app, 'app.mjs', [], cues.env);
      await answer(server);
      server.process.kill('SIGSTOP'); // to the server the checkout is one burst, however slow this machine writes
      for (let i = 0; i < 500; i += 1) app.save(`lib/${i % 25}/${i}.ts`, `export const i = ${i};`);
      app.save('app.mjs', notingApp(1));
      server.process.kill('SIGCONT');
      await eventually(async () => (await answer(server))['version'] === 1, 15_000, server.stderr);
      await server.stop();
      const notes = cues.notes();
      assert.ok(notes.length >= 4 && notes.length <= 6, notes.join(', '));
      assert.ok(
        notes.every((note, i) => note === (i % 2 === 0 ? 'start' : 'end')),
        notes.join(', '),
      );
      assert.match(server.stderr(), /, lib\/\S+ and \d+ more changed: starting the workers again/);
    },
  );

  test('nothing is watched without --watch', LIMIT, async (t) => {
    const app = editedApp(t, { 'app.mjs': versionApp(1) });
    const server = await startServer(app.path('app.mjs'), { t });
    await answer(server);
    app.save('app.mjs', versionApp(2));
    const [worker] = (await server.status()).model.workers;
    process.kill(worker?.pid as number, 'SIGKILL'); // the next one reads what is there
    await server.untilPrinted(/worker 0 died/);
    assert.deepEqual(await answer(server), { version: 2 });
    await server.stop('SIGINT', 1);
    assert.deepEqual(changes(server), []);
  });
});

describe('watch, given in other ways', () => {
  for (const [what, files, env] of [
    ['the environment', {}, { BANANA_WATCH: 'true' }],
    ['banana.json', { 'banana.json': '{ "watch": true }' }, {}],
  ] as const) {
    test(what, LIMIT, async (t) => {
      const app = editedApp(t, { 'app.mjs': versionApp(1), ...files });
      const server = await startServer(app.path('app.mjs'), { t, env, cwd: app.folder });
      await answer(server);
      app.save('app.mjs', versionApp(2));
      await eventually(async () => (await answer(server))['version'] === 2, 15_000, server.stderr);
      await server.stop();
    });
  }

  test('serve({ watch: true }): ready resolves once the app is mended', LIMIT, async (t) => {
    const app = editedApp(t, { 'app.mjs': 'broken(' });
    const options = { host: '127.0.0.1', port: 0, logLevel: 'silent' } as const;
    const server = await serve({ app: app.path('app.mjs'), watch: true, ...options });
    t.after(() => server.kill());
    await eventually(
      async () => (await readiness(server))[1] === 'unhealthy',
      15_000,
      () => 'healthy',
    );
    app.save('app.mjs', versionApp(1));
    await server.ready;
    assert.deepEqual(await answer(server), { version: 1 });
    assert.equal((await server.close()).reason, 'drained');
  });

  test('app.serve({ watch: true })', LIMIT, async (t) => {
    const app = editedApp(t, { 'app.mjs': servesItself(1) });
    const server = await startServer(app.path('app.mjs'), { t, command: process.execPath });
    assert.deepEqual(await answer(server), { version: 1 });
    app.save('app.mjs', servesItself(2));
    await eventually(async () => (await answer(server))['version'] === 2, 15_000, server.stderr);
    await server.stop();
  });

  test('a worker in another language is refused: which files are its own is not known', LIMIT, async () => {
    await assert.rejects(serve({ workerCommand: ['python3', 'worker.py'], watch: true, port: 0 }), {
      code: 'SERVE_CONFIG',
      message: /--watch/,
    });
  });
});

function watched(
  t: TestContext,
  app: EditedApp,
  name: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Server> {
  return startServer(app.path(name), { t, args: ['--watch', ...args], env });
}

async function answer(server: Pick<Server, 'url'>): Promise<Record<string, unknown>> {
  const given = await ask(server, {});
  assert.equal(given.status, 200, given.text);
  return given.json();
}

async function statusOf(server: Server, path: string): Promise<number> {
  const headers = { 'content-type': 'application/json' };
  return (await fetch(server.url + path, { method: 'POST', body: '{}', headers })).status;
}

async function readiness(server: Pick<Server, 'url'>): Promise<[number, string]> {
  const response = await fetch(`${server.url}/readyz`);
  return [response.status, ((await response.json()) as { state: string }).state];
}

async function refusesCalls(server: Server): Promise<void> {
  assert.deepEqual(await readiness(server), [503, 'unhealthy']);
  const refused = await ask(server, {});
  assert.deepEqual([refused.status, errorOf(refused).code], [503, 'SERVE_NOT_READY']);
}

function maxCallsOf(model: Status['model']): unknown {
  return (model.queue as unknown as { maxCalls: number }).maxCalls;
}

/** What the log says has changed, start by start. */
function changes(server: Server): string[] {
  return [...server.stderr().matchAll(/(\S.*) changed: starting the workers again/g)].map(
    ([, files = '']) => files.split(' INFO ').at(-1)?.replace(/^.*: /, '') ?? '',
  );
}

/** A call runs in a worker that is being replaced, because version 2 was saved; it ends when its cue is given. */
async function startReplacing(
  t: TestContext,
  apps: SavedApps,
  until: string,
): Promise<{ server: Server; cues: Cues; running: Promise<Answer>; pid: number }> {
  const cues = makeCues(t);
  const app = editedApp(t, { [apps.file]: apps.waiting(1) });
  const server = await watched(t, app, apps.file, [], cues.env);
  const running = ask(server, { until });
  await cues.untilNoted('begun 1');
  app.save(apps.file, apps.waiting(2));
  const { model } = await server.until((status) => status.model.workers[0]?.state === 'finishing');
  return { server, cues, running, pid: model.workers[0]?.pid as number };
}

/** Notes the start and the end of its workers. */
function notingApp(version: number): string {
  return `
    import { note } from ${JSON.stringify(CUES_MODULE)};
    note('start');
    process.on('exit', () => note('end'));
    ${versionApp(version)}`;
}

function servesItself(version: number): string {
  return `
    import { Potassium, Response } from ${JSON.stringify(PACKAGE)};
    const app = new Potassium('serves itself').init(() => ({}));
    app.handler('/', () => new Response({ json: { version: ${version} } }));
    await app.serve({ host: '127.0.0.1', port: 0, watch: true });`;
}

/** Reads a file of its own when it is loaded. */
function reads(file: string): string {
  return `
    import { readFileSync } from 'node:fs';
    let value = null;
    try { value = JSON.parse(readFileSync(new URL('${file}', import.meta.url))); } catch {}
    export const inference = () => ({ value });`;
}
