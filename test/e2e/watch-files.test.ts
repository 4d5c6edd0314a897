/** `--watch`: the files whose changes are seen, and the ways to ask for it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { serve } from '../../index.js';
import { makeCues } from '../helpers/cues.js';
import { CUES_MODULE, PACKAGE, editedApp } from '../helpers/edited-app.js';
import { SAVED_APPS } from '../helpers/saved-apps.js';
import { startHere } from '../helpers/here.js';
import { eventually, startServer } from '../helpers/server.js';
import { answer, changes, readiness, watched } from '../helpers/watched.js';

const LIMIT = { timeout: 240_000 };

const versionApp = SAVED_APPS.TypeScript.version;

describe('the files that are watched', () => {
  test('new folders, folders made anew, and files that go: all are seen', LIMIT, async (t) => {
    const app = editedApp(t, { 'app.mjs': reads('deep/er/value.json') });
    const server = await watched(t, app, 'app.mjs');
    assert.deepEqual(await answer(server), { value: null });
    for (const value of [1, 2]) {
      app.save('deep/er/value.json', String(value));
      await eventually(async () => (await answer(server))['value'] === value, 60_000, server.stderr);
      app.remove('deep');
      await eventually(async () => (await answer(server))['value'] === null, 60_000, server.stderr);
    }
    await server.stop();
  });

  test(
    'a checkout that writes 500 files leads to one or two starts, one after the other',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const app = editedApp(t, { 'app.mjs': notingApp(0) });
      const server = await watched(t, app, 'app.mjs', [], cues.env, startServer);
      await answer(server);
      server.process.kill('SIGSTOP'); // to the server the checkout is one burst, however slow this machine writes
      for (let i = 0; i < 500; i += 1) app.save(`lib/${i % 25}/${i}.ts`, `export const i = ${i};`);
      app.save('app.mjs', notingApp(1));
      server.process.kill('SIGCONT');
      await eventually(async () => (await answer(server))['version'] === 1, 60_000, server.stderr);
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
    const server = await startHere(app.path('app.mjs'), { t });
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
      const server = await startHere(app.path('app.mjs'), { t, env, cwd: app.folder });
      await answer(server);
      app.save('app.mjs', versionApp(2));
      await eventually(async () => (await answer(server))['version'] === 2, 60_000, server.stderr);
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
      60_000,
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
    await eventually(async () => (await answer(server))['version'] === 2, 60_000, server.stderr);
    await server.stop();
  });

  test('a worker in another language is refused: which files are its own is not known', LIMIT, async () => {
    await assert.rejects(serve({ workerCommand: ['python3', 'worker.py'], watch: true, port: 0 }), {
      code: 'SERVE_CONFIG',
      message: /--watch/,
    });
  });
});

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
