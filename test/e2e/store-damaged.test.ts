/** A local store that was cut short must not keep a server down: its workers would meet it one after the other. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, ROOT } from '../helpers/server.js';

/** An app that keeps its input in the store at this path. */
const APPS: Readonly<Record<Language, readonly [file: string, text: (path: string) => string]>> = {
  TypeScript: [
    'app.mjs',
    (path) => `
      import { Store } from '${ROOT}dist/index.js';
      const store = new Store({ backend: 'local', config: { path: '${path}' } });
      export const init = () => store.get('key');
      export async function inference({ key, value }) {
        if (value !== undefined) await store.set(key, value, null);
        return store.get(key);
      }
      export const shutdown = () => store.close();`,
  ],
  Python: [
    'app.py',
    (path) => `
from potassium import Store

store = Store("local", {"path": "${path}"})

def init():
    store.get("key")

def inference(wish):
    if "value" in wish:
        store.set(wish["key"], wish["value"], ttl=None)
    return store.get(wish["key"])

def shutdown():
    store.close()
`,
  ],
};

withEachRuntime(({ language }) => {
  test(
    'a local store cut to a few kB is set aside, and the server answers',
    { timeout: 240_000 },
    async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'banana-damaged-'));
      t.after(() => rmSync(folder, { recursive: true }));
      const [file, text] = APPS[language];
      const [app, path] = [join(folder, file), join(folder, 'store.sqlite3')];
      writeFileSync(app, text(path));
      const ask = async (url: string, key: string, value?: string): Promise<unknown> =>
        (await call(url, JSON.stringify({ key, value }))).json();
      const before = await startHere(app, { t });
      for (let i = 0; i < 20; i += 1) await ask(before.url, `key ${i}`, 'x'.repeat(10_000));
      await before.stop();
      truncateSync(path, 9000);

      const server = await startHere(app, { t });
      assert.equal(await ask(server.url, 'key 1'), null);
      assert.equal(await ask(server.url, 'key 1', 'new'), 'new');
      const aside = readdirSync(folder).find((name) => /^store\.sqlite3\.damaged-\d+$/.test(name)) ?? '';
      assert.equal(statSync(join(folder, aside)).size, 9000);
      await server.untilPrinted(`The local store ${path} is damaged (`);
      await server.untilPrinted(`It was renamed to ${join(folder, aside)}; the store starts empty.`);
      await server.stop();
    },
  );
});
