/** Models of a store that cannot be served are registered all the same, and report the reason when a worker starts; manifests. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ENTRY_NAMES } from '../../supervisor/store/entry-file.js';
import { startManagedCommand, type ManagedCommand } from '../helpers/managed-command.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };

/** A service that answers with this, and the extension of its file. */
const SERVICES: Readonly<
  Record<Language, readonly [extension: string, answering: (what: string) => string]>
> = {
  TypeScript: [
    '.mjs',
    (what) => `export const handle = (data) => data?.map(() => ${JSON.stringify(what)}) ?? null;`,
  ],
  Python: [
    '.py',
    (what) => `def handle(data, context): return data and [${JSON.stringify(what)} for _ in data]`,
  ],
};

function startStore(t: TestContext, files: Readonly<Record<string, string>>): Promise<ManagedCommand> {
  return startManagedCommand(t, { args: ['--drain-lag', '0s'] }, appFolder(t, files));
}

/**
 * Models that cannot be served: the query of the registration, the files, and the message when a worker starts. `.x` stands
 * for the extension.
 */
const UNSERVABLE: readonly (readonly [
  what: string,
  query: string,
  files: readonly string[],
  said: readonly string[],
])[] = [
  [
    'a handler of a single file that is not that file',
    'url=m.x&handler=gone:run',
    ['m.x'],
    ['m.x: the model is this file, but its handler names another one, gone.x.'],
  ],
  [
    'a handler whose file is not in the folder',
    'url=m&handler=gone:run',
    ['m/service.x'],
    ['gone.x: no such file'],
  ],
  [
    'a handler whose file is not in a folder of the model',
    'url=m&handler=lib/gone:run',
    ['m/lib/service.x'],
    ['lib/gone.x: no such file'],
  ],
  [
    'a folder in which nothing says what is meant',
    'url=m',
    ['m/labels.x', 'm/other.x'],
    ['it is not clear which file is the handler', ...ENTRY_NAMES, '1/model.onnx'],
  ],
];

withEachRuntime(({ language }) => {
  const [extension, answering] = SERVICES[language];
  const inIt = (text: string): string => text.replaceAll('.x', extension);

  for (const [what, asked, files, said] of UNSERVABLE) {
    test(`${what} is registered, and its worker cannot start and reports why`, LIMIT, async (t) => {
      const query = inIt(asked);
      const texts = Object.fromEntries(files.map((file) => [inIt(file), answering('m')]));
      const { server, management } = await startStore(t, texts);
      assert.equal(await management.said(`POST /models?${query}`), '200 Model "m" registered');
      assert.equal(
        await management.said('PUT /models/m?min_worker=1&synchronous=true'),
        '500 Failed to start workers',
      );
      const reason = (await management.describe('m')).workers[0]?.lastError ?? '';
      for (const text of said.map(inIt)) assert.ok(reason.includes(text), `${text} in ${reason}`);
      await server.untilPrinted(reason);
      assert.equal(await management.said('DELETE /models/m'), '200 Model "m" unregistered');
      assert.equal(
        await management.said(`POST /models?initial_workers=1&${query}`),
        '500 Failed to start workers',
      );
      assert.equal((await management.manage('GET /models/m')).status, 404);
      await server.stop();
    });
  }

  test(
    'a folder with a manifest is registered by its url alone, and a second one of its name is another version',
    LIMIT,
    async (t) => {
      const manifest = (version?: string): string =>
        JSON.stringify({
          runtime: 'python',
          model: { modelName: 'cats', handler: 'cats.py:handle', modelVersion: version },
        });
      const { server, management } = await startStore(t, {
        'first/MAR-INF/MANIFEST.json': manifest(),
        [`first/cats${extension}`]: answering('first'),
        'second/MAR-INF/MANIFEST.json': manifest('2.0'),
        [`second/cats${extension}`]: answering('second'),
        'old/MANIFEST.json': '{"Model":{"Model-Name":"cats","Service":"old.py:handle"}}',
        [`old/old${extension}`]: answering('old'),
      });
      const register = (url: string): Promise<string> =>
        management.said(`POST /models?url=${url}&initial_workers=1`);
      for (const url of ['first', 'second', 'old']) assert.equal(await register(url), '200 Workers scaled');
      assert.match(await register('second'), /^409 Model cats is already registered\.$/);
      const all = (await management.manage('GET /models/cats/all')).json<{ modelVersion: string }[]>();
      assert.deepEqual(all.map(({ modelVersion }) => modelVersion).sort(), ['1.0', '2.0', 'snapshot']);
      const answers = ['cats', 'cats/1.0', 'cats/2.0', 'cats/snapshot'].map(async (model) => {
        return (await management.infer(model)).text;
      });
      assert.deepEqual(await Promise.all(answers), ['first', 'first', 'second', 'old']);
      assert.match(await management.said('PUT /models/cats/2.0/set-default'), /^200 Default version/);
      assert.equal((await management.infer('cats')).text, 'second');
      await server.stop();
    },
  );

  test('a manifest without a name or a handler is refused, unless the request has them', LIMIT, async (t) => {
    const { server, management } = await startStore(t, {
      'm/MAR-INF/MANIFEST.json': '{"model":{}}',
      [`m/service${extension}`]: answering('m'),
    });
    assert.equal(await management.said('POST /models?url=m'), '400 Model name is not defined.');
    assert.equal(
      await management.said('POST /models?url=m&model_name=dogs'),
      '400 Model handler is not defined.',
    );
    assert.equal(
      await management.said('POST /models?url=m&model_name=dogs&handler=service:handle&initial_workers=1'),
      '200 Workers scaled',
    );
    assert.equal((await management.infer('dogs')).text, 'm');
    await server.stop();
  });
});
