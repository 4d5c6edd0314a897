/** The ways of writing an app, each behind a real server, and the steps of its life. */
import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { fixture, runCommand, startServer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

/** A folder as a stranger's: no package.json, no node_modules, not in this repository. */
function folder(t: TestContext, files: Readonly<Record<string, string>>): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'banana-app-')));
  t.after(() => rmSync(path, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

test(
  'TypeScript with an enum, path aliases and a JSON import is served from another folder, where nothing can be written; CommonJS too',
  LIMIT,
  async (t) => {
    const cts = folder(t, { 'app.cts': 'export = { inference: (x: string): string => x + "!" };' });
    const args = ['--model', `module=${fixture('typescript/app.ts')}`, '--model', `commonjs=${cts}`];
    const cwd = folder(t, {});
    const server = await startServer(null, { t, cwd, args, env: { TMPDIR: '/proc' } });
    const askModel = (name: string, input: unknown): ReturnType<typeof ask> =>
      ask({ url: `${server.url}/models/${name}/` }, input);
    assert.deepEqual((await askModel('module', { label: 1 })).json(), { answer: 'DOG!', cwd });
    assert.equal((await askModel('commonjs', 'hi')).json(), 'hi!');
    await server.stop();
  },
);

type Sources = Readonly<Record<Language, string>>;

/** app-mistakes.test.ts has one that throws. */
const BAD_EXAMPLES: readonly (readonly [what: string, sources: Sources, said: RegExp])[] = [
  [
    'cannot be encoded',
    {
      TypeScript: 'export const inference = () => ({ n: 2n ** 60n });\nexport const example = {};',
      Python: 'example = {}\ndef inference(x):\n    return {"n": print}',
    },
    /output(\.n is a BigInt beyond 2\^53|\["n"\] is a function)/,
  ],
  [
    'breaks as a stream',
    {
      TypeScript:
        'export function* inference() { yield 1; throw new Error("half"); }\nexport const example = null;',
      Python: 'example = None\ndef inference(x):\n    yield 1\n    raise ValueError("half")',
    },
    /the example call (threw|raised): [^]*Error: half/,
  ],
];

/** Calls that nothing ends, and two options. */
const CONFIGURED: Sources = {
  TypeScript:
    "export const inference = () => new Promise(() => {});\nexport const config = { queueSize: 7, runTimeout: '50ms' };",
  Python: `import time
config = {"queueSize": 7, "runTimeout": "50ms"}
def inference(model_inputs):
    while True:
        time.sleep(0.01)`,
};

async function maxCalls(server: Server): Promise<number> {
  const { model } = await server.until(({ state }) => state === 'ready');
  return (model.queue as unknown as { maxCalls: number }).maxCalls;
}

/** The run timeout in force, from the text of its error. */
async function assertRunTimeout(server: Server, text: string): Promise<void> {
  const answer = await ask(server, {});
  assert.deepEqual([answer.status, errorOf(answer).code], [504, 'SERVE_INFERENCE_TIMEOUT']);
  assert.ok(errorOf(answer).message.includes(`longer than ${text}`), errorOf(answer).message);
  await server.until(({ model }) => model.workers[0]?.restarts === 1);
}

withEachRuntime(({ language, app }) => {
  const file = language === 'Python' ? 'app.py' : 'app.mjs';

  test(
    "import, init, the example, calls, shutdown: in this order, once each; the example is shown to try, and is no client's call",
    LIMIT,
    async (t) => {
      const server = await startHere(app('says-its-steps'), { t });
      await server.untilPrinted(
        `Try it: curl -H 'Content-Type: application/json' -d '{"name":"example"}' ${server.url}\n`,
      );
      const { model, replies } = await server.status();
      assert.deepEqual([model.workers[0]?.calls, replies], [0, {}]);
      assert.deepEqual((await ask(server, { name: 'one' })).json(), { text: 'hello one' });
      assert.deepEqual((await ask(server, { name: 'two' })).json(), { text: 'hello two' });
      const { code } = await server.stop();
      assert.equal(code, 0);
      const steps = ['imported', 'init', 'inference example', 'inference one', 'inference two', 'shutdown'];
      assert.deepEqual(server.stdout().split('\n'), [...steps, '']);
    },
  );

  test(
    'an example whose answer fails is a failed start, with a reason that names the file',
    LIMIT,
    async (t) => {
      const made = BAD_EXAMPLES.map(([what, sources, said], i) => {
        const cwd = folder(t, { [file]: sources[language] });
        return { what, said, path: `${cwd}/${file}`, name: `m${i}` };
      });
      const models = made.flatMap(({ name, path }) => ['--model', `${name}=${path}`]);
      const command = runCommand([...models, '--port', '0', '--restart-limit', '0'], { t });
      assert.equal((await command.ended).code, 3);
      for (const { what, said, path, name } of made)
        await t.test(`an answer that ${what}`, () => {
          const records = command.stderr().split(/^(?=\[\d\d:\d\d:\d\d\.\d{3}\] )/m);
          const told = records.filter((record) => new RegExp(`\\b${name}\\b`).test(record)).join('');
          assert.match(told, said);
          assert.ok(told.includes(path), told);
        });
    },
  );

  describe("an app's config", LIMIT, () => {
    test('sets options of the model, above the defaults and below the config file', async (t) => {
      const cwd = folder(t, { [file]: CONFIGURED[language], 'banana.json': '{ "runTimeout": "60ms" }' });
      const server = await startHere(file, { t, cwd, expectedRestarts: 1 });
      assert.equal(await maxCalls(server), 7);
      await assertRunTimeout(server, '60 ms');
      await server.stop();
    });
  });
});
