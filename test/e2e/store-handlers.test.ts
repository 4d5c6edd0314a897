/** Models of a store that cannot be served are registered all the same, and report the reason when a worker starts; manifests. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { ENTRY_NAMES } from '../../supervisor/store/entry-file.js';
import { managementOf, type ManagedCommand } from '../helpers/managed-command.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { shareHere } from '../helpers/shared-server.js';
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
    'url=n&handler=gone:run',
    ['n/service.x'],
    ['gone.x: no such file'],
  ],
  [
    'a handler whose file is not in a folder of the model',
    'url=o&handler=lib/gone:run',
    ['o/lib/service.x'],
    ['lib/gone.x: no such file'],
  ],
  [
    'a folder in which nothing says what is meant',
    'url=p',
    ['p/labels.x', 'p/other.x'],
    ['it is not clear which file is the handler', ...ENTRY_NAMES, '1/model.onnx'],
  ],
];

withEachRuntime(({ language }) => {
  const [extension, answering] = SERVICES[language];
  const inIt = (text: string): string => text.replaceAll('.x', extension);

  describe('a store', LIMIT, () => {
    const manifest = (version?: string): string =>
      JSON.stringify({
        runtime: 'python',
        model: { modelName: 'cats', handler: 'cats.py:handle', modelVersion: version },
      });
    const store = appFolder(
      { after },
      {
        ...Object.fromEntries(
          UNSERVABLE.flatMap(([, , files]) => files.map((file) => [inIt(file), answering('m')])),
        ),
        'first/MAR-INF/MANIFEST.json': manifest(),
        [`first/cats${extension}`]: answering('first'),
        'second/MAR-INF/MANIFEST.json': manifest('2.0'),
        [`second/cats${extension}`]: answering('second'),
        'old/MANIFEST.json': '{"Model":{"Model-Name":"cats","Service":"old.py:handle"}}',
        [`old/old${extension}`]: answering('old'),
        'unnamed/MAR-INF/MANIFEST.json': '{"model":{}}',
        [`unnamed/service${extension}`]: answering('unnamed'),
      },
    );
    const args = ['--model-store', store, '--management-port', '0', '--drain-lag', '0s'];
    const shared = shareHere(null, { args });
    const manager = (): Promise<ManagedCommand['management']> => managementOf(shared.server);

    for (const [what, asked, [file = ''], said] of UNSERVABLE)
      test(`${what} is registered, and its worker cannot start and reports why`, async () => {
        const management = await manager();
        const [query, name] = [inIt(asked), file.charAt(0)];
        assert.equal(await management.said(`POST /models?${query}`), `200 Model "${name}" registered`);
        assert.equal(
          await management.said(`PUT /models/${name}?min_worker=1&synchronous=true`),
          '500 Failed to start workers',
        );
        const reason = (await management.describe(name)).workers[0]?.lastError ?? '';
        for (const text of said.map(inIt)) assert.ok(reason.includes(text), `${text} in ${reason}`);
        await shared.server.untilPrinted(reason);
        assert.equal(await management.said(`DELETE /models/${name}`), `200 Model "${name}" unregistered`);
        assert.equal(
          await management.said(`POST /models?initial_workers=1&${query}`),
          '500 Failed to start workers',
        );
        assert.equal((await management.manage(`GET /models/${name}`)).status, 404);
      });

    test('a folder with a manifest is registered by its url alone, and a second one of its name is another version', async () => {
      const management = await manager();
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
    });

    test('a manifest without a name or a handler is refused, unless the request has them', async () => {
      const management = await manager();
      assert.equal(await management.said('POST /models?url=unnamed'), '400 Model name is not defined.');
      assert.equal(
        await management.said('POST /models?url=unnamed&model_name=dogs'),
        '400 Model handler is not defined.',
      );
      const whole = 'url=unnamed&model_name=dogs&handler=service:handle&initial_workers=1';
      assert.equal(await management.said(`POST /models?${whole}`), '200 Workers scaled');
      assert.equal((await management.infer('dogs')).text, 'unnamed');
    });
  });
});
