/** An app that closes or replaces the descriptors of its worker ends it at once, with a message that names the mistake. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { call, startServer } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };

/** Apps that run what a call brings; the `init` of the first worker runs `INIT`. */
const APPS: Readonly<Record<Language, { readonly file: string; readonly source: string }>> = {
  TypeScript: {
    file: 'app.mjs',
    source: `import fs from 'node:fs';
const run = (act) => new Function('fs', act)(fs);
export function init() {
  if (fs.existsSync('been here')) return;
  fs.writeFileSync('been here', '');
  run(INIT);
}
export function inference(act) {
  if (act !== null) run(act);
  return process.pid;
}
`,
  },
  Python: {
    file: 'app.py',
    source: `import os
def init():
    if os.path.exists("been here"):
        return
    open("been here", "w").close()
    exec(INIT)
def inference(act):
    if act is not None:
        exec(act)
    return os.getpid()
`,
  },
};

const CLOSED_3 = /closed (?:or replaced )?file descriptor 3(?:, which the worker needs|; it must not touch)/;
const CLOSED_4 = /the app has closed file descriptor 4, which the worker needs/;
/** Either of the two may be reported first. */
const CLOSED_ALL = /closed (?:or replaced )?file descriptor [34]/;
const OTHER_3 = /closed or replaced file descriptor 3/;
const OTHER_4 = /the app has replaced file descriptor 4, which/;

/** Each act of an app, and the log line that it causes. */
const ACTS: Readonly<Record<Language, readonly (readonly [string, RegExp])[]>> = {
  TypeScript: [
    ['fs.closeSync(3)', CLOSED_3],
    ['fs.closeSync(4)', CLOSED_4],
    ['fs.closeSync(5)', /the app has closed file descriptor 5, which the worker needs/],
    ['for (const fd of [3, 4, 5]) fs.closeSync(fd)', CLOSED_ALL],
    ['fs.closeSync(3); fs.openSync("frames", "w")', OTHER_3],
    ['fs.closeSync(4); fs.openSync("app.mjs", "r")', OTHER_4],
  ],
  Python: [
    ['os.close(3)', CLOSED_3],
    ['os.close(4)', CLOSED_4],
    ['os.closerange(3, 6)', CLOSED_ALL],
    ['os.dup2(os.open("/dev/null", os.O_RDWR), 3)', OTHER_3],
    ['os.dup2(os.open("app.py", os.O_RDONLY), 4)', OTHER_4],
  ],
};

withEachRuntime(({ language }) => {
  const { file, source } = APPS[language];

  test(
    'an app that closes the descriptors of its worker, or puts files over them, ends it with that reason, and another worker serves',
    LIMIT,
    async (t) => {
      const cwd = appFolder(t, { [file]: source.replace('INIT', '""') });
      const server = await startServer(file, { t, cwd, expectedRestarts: ACTS[language].length });
      for (const [act, told] of ACTS[language]) {
        const before = (await call(server.url, 'null')).text;
        const from = server.stderr().length;
        await call(server.url, JSON.stringify(act));
        assert.notEqual((await call(server.url, 'null')).text, before);
        const stderr = server.stderr().slice(from);
        assert.match(stderr, told, act);
        assert.doesNotMatch(stderr, /SIGKILL|broke the protocol|did not begin/, act);
      }
      await server.stop();
    },
  );

  test(
    'an init that closes a descriptor fails with that reason, and its worker gets no call',
    LIMIT,
    async (t) => {
      const act = language === 'Python' ? 'os.close(4)' : 'fs.closeSync(4)';
      const cwd = appFolder(t, { [file]: source.replace('INIT', `'${act}'`) });
      const server = await startServer(file, { t, cwd, expectedRestarts: 1 });
      assert.equal((await call(server.url, 'null')).status, 200);
      assert.match(server.stderr(), CLOSED_4);
      assert.doesNotMatch(server.stderr(), /SIGKILL|broke the protocol|did not begin/);
      assert.equal(server.stderr().split(' is ready ').length, 2, 'one worker became ready');
      await server.stop();
    },
  );
});
