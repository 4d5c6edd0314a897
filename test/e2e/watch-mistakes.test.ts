/** `--watch` with an app that does not start: the log and health report it, and the next save mends it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { editedApp } from '../helpers/edited-app.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { SAVED_APPS, type Mistake } from '../helpers/saved-apps.js';
import { eventually, type Server } from '../helpers/server.js';
import { answer, changes, readiness, watched } from '../helpers/watched.js';

const LIMIT = { timeout: 240_000 };

withEachRuntime(({ language }) => {
  const apps = SAVED_APPS[language];

  test(
    'a saved mistake: reported in the log and by health, 503 for calls; the next save mends it',
    LIMIT,
    async (t) => {
      const app = editedApp(t, { [apps.file]: apps.version(0) });
      const server = await watched(t, app, apps.file);
      assert.deepEqual(await answer(server), { version: 0 });
      for (const [i, [what, broken, told]] of apps.mistakes.entries())
        await t.test(what, async () => {
          const before = server.stderr().length;
          const log = (): string => server.stderr().slice(before);
          app.save(apps.file, broken);
          const givenUp = /no worker can be restarted; .*Answering 503 until a file of the app changes/;
          await eventually(() => givenUp.test(log()), 60_000, log);
          assert.match(log(), told);
          await refusesCalls(server);
          app.save(apps.file, apps.version(i + 1));
          await eventually(() => changes(server).length === 2 * (i + 1), 60_000, log);
          assert.deepEqual(await answer(server), { version: i + 1 });
          assert.deepEqual(await readiness(server), [200, 'ready']);
        });
      await server.stop();
    },
  );

  // One that a worker meets, and one that the server meets; the test below throws.
  for (const [what, broken, told] of [apps.mistakes[0], apps.mistakes[3]] as Mistake[])
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

  test('a start that is broken and saved again and again: every save is tried at once', LIMIT, async (t) => {
    const app = editedApp(t, { [apps.file]: apps.throwing('broken 0') });
    const server = await watched(t, app, apps.file);
    for (let i = 0; i < 3; i += 1) {
      await server.untilPrinted(new RegExp(`broken ${i}[^]*no worker could start; see the error`));
      app.save(apps.file, apps.throwing(`broken ${i + 1}`));
    }
    await server.untilPrinted(/broken 3[^]*no worker could start; see the error/);
    app.save(apps.file, apps.version(1));
    await server.until(({ state }) => state === 'ready');
    assert.doesNotMatch(server.stderr(), /restarting in/);
    await server.stop();
  });
});

async function refusesCalls(server: Server): Promise<void> {
  assert.deepEqual(await readiness(server), [503, 'unhealthy']);
  const refused = await ask(server, {});
  assert.deepEqual([refused.status, errorOf(refused).code], [503, 'SERVE_NOT_READY']);
}
