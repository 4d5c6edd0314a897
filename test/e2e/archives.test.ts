/** Archives in a model store, over HTTP: served, shared, given back; refused in words; nothing of them stays. */
import assert from 'node:assert/strict';
import { randomFillSync } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { serve } from '../../supervisor/serve.js';
import { FOLDER_PREFIX } from '../../supervisor/store/archives/own-folder.js';
import { tgzOf, zipOf, type PackedEntry } from '../helpers/archives.js';
import { makeCues } from '../helpers/cues.js';
import { frontHeapBytes, HEAP_ENV } from '../helpers/front-heap.js';
import { HELD, holdUnpacking } from '../helpers/held-unpacking.js';
import { startManagedCommand, startManagedHere, type ManagedCommand } from '../helpers/managed-command.js';
import { needs } from '../helpers/needs.js';
import { CLI, call, eventually, isAlive, type StartOptions } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };

/** An archive of the first format. */
function oldArchive(): Promise<Buffer> {
  return zipOf([
    {
      name: 'MANIFEST.json',
      content: '{"Model":{"Model-Name":"old","Service":"old.py:run"},"Engine":{}}',
    },
    { name: 'old.mjs', content: 'export const run = (data) => data?.map(() => "old") ?? null;' },
  ]);
}

/** Says what it finds in its folder, what it was started from, and that its imports mean what they shall. */
const HANDLER = `
  import { readFileSync } from 'node:fs';
  import { PredictionException, type Context, type Item } from 'banana-serve/mms';
  import { greeting } from 'a-package';
  enum Kind { Archive = 'archive' }
  export function handle(data: Item[] | null, context: Context) {
    if (data === null) return null;
    const labels = readFileSync('labels.txt', 'utf8');
    const { manifest, system_properties: { model_dir: dir } } = context;
    const isOurs = new PredictionException('x') instanceof Error;
    return data.map(() => ({ labels, greeting, isOurs, kind: Kind.Archive, name: manifest?.model?.modelName ?? null, dir }));
  }`;

function manifest(modelName: string, handler = 'cats.py:handle', more: object = {}): string {
  return JSON.stringify({ runtime: 'python', model: { modelName, handler, ...more } });
}

/** Says what it finds in its folder, and where that is; in JavaScript, which loads faster. */
const PLAIN_HANDLER = `
  import { readFileSync } from 'node:fs';
  export function handle(data, context) {
    return data && data.map(() => ({
      labels: readFileSync('labels.txt', 'utf8'),
      dir: context.system_properties.model_dir,
    }));
  }`;

function catEntries(
  more: object = {},
  service = { name: 'cats.mjs', content: PLAIN_HANDLER },
): PackedEntry[] {
  return [
    { name: 'MAR-INF/MANIFEST.json', content: manifest('cats', 'cats.py:handle', more) },
    service,
    { name: 'labels.txt', content: 'felis' },
  ];
}

interface Place {
  /** Working directory of the server: a package is installed there, and `store` and `temp` stand in it. */
  readonly cwd: string;
  readonly store: string;
  readonly temp: string;
}

function makePlace(t: TestContext, files: Readonly<Record<string, Buffer>>): Place {
  const cwd = appFolder(t, {
    'node_modules/a-package/package.json': '{"name":"a-package","type":"module","exports":"./index.js"}',
    'node_modules/a-package/index.js': 'export const greeting = "hello";',
  });
  const place = { cwd, store: join(cwd, 'store'), temp: join(cwd, 'temp') };
  mkdirSync(place.store);
  mkdirSync(place.temp);
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(place.store, name), bytes);
  return place;
}

function startIn(
  t: TestContext,
  { cwd, store, temp }: Place,
  options: StartOptions = {},
  start: (
    t: TestContext,
    options: StartOptions,
    store: string,
  ) => Promise<ManagedCommand> = startManagedCommand,
): Promise<ManagedCommand> {
  const args = ['--drain-lag', '0s', ...(options.args ?? [])];
  return start(t, { ...options, cwd, args, env: { ...options.env, TMPDIR: temp } }, store);
}

/** The address of a site with one archive at `/zoo/cats.mar`. */
async function serveArchive(t: TestContext, bytes: Buffer): Promise<string> {
  const site = createServer((request, response) => {
    response.statusCode = request.url === '/zoo/cats.mar' ? 200 : 404;
    response.end(request.url === '/zoo/cats.mar' ? bytes : '');
  });
  await once(site.listen(0, '127.0.0.1'), 'listening');
  t.after(() => site.close());
  return `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
}

/** For servers in this process. */
function useTemp(t: TestContext, { temp }: Place): void {
  const { TMPDIR } = process.env;
  process.env['TMPDIR'] = temp;
  t.after(() => {
    delete process.env['TMPDIR'];
    Object.assign(process.env, TMPDIR === undefined ? {} : { TMPDIR });
  });
}

/** The folders of servers for what they unpack. */
function ownFolders({ temp }: Place): string[] {
  return readdirSync(temp).filter((name) => name.startsWith(FOLDER_PREFIX));
}

/** Names of the archives that are unpacked now. */
function unpacked(place: Place): string[] {
  return ownFolders(place).flatMap((name) => readdirSync(join(place.temp, name)));
}

async function untilUnpacked(place: Place, count: number): Promise<void> {
  await eventually(
    () => unpacked(place).length === count,
    60_000,
    () => `${unpacked(place).length} archives are unpacked, not ${count}`,
  );
}

/** Archives that cannot be served. */
const entry = { name: 'service.mjs', content: 'export const handle = (data) => data;' };
const named = { name: 'MAR-INF/MANIFEST.json', content: manifest('m', '') };
const NO_HANDLER = 'an archive without a handler in its manifest';
const REFUSED: readonly (readonly [
  what: string,
  format: string,
  bytes: () => Buffer | Promise<Buffer>,
  problem: RegExp,
])[] = [
  [
    'a tar archive with a link',
    'tgz',
    () => tgzOf([entry, { name: 'x', type: 'SymbolicLink', linkpath: '/etc' }]),
    /^its entry "x" is a symbolic link;/,
  ],
  [
    'a tar archive with a path outside it',
    'tgz',
    () => tgzOf([entry, { name: '../../x', content: 'x' }]),
    /^its entry "\.\.\/\.\.\/x" points outside the archive\.$/,
  ],
  [
    'a zip archive with a path outside it',
    'mar',
    () => zipOf([entry, { name: '../../x', content: 'x' }]),
    /^its entry "\.\.\/\.\.\/x" points outside the archive\.$/,
  ],
  [
    'an archive that is cut off',
    'mar',
    async () => (await zipOf([entry])).subarray(0, -9),
    /^it is cut off or damaged: /,
  ],
  [
    'a file that is no archive',
    'mar',
    () => Buffer.from('weights'),
    /^it is neither a zip archive nor a gzip-compressed tar archive/,
  ],
  [NO_HANDLER, 'mar', () => zipOf([entry, named]), /^Model handler is not defined\.$/],
];

describe('an archive in the model store', LIMIT, () => {
  const nested = catEntries().map((entry) => ({ ...entry, name: `cats/${entry.name}` }));
  const FORMATS = [
    ['in-typescript.mar', () => zipOf(catEntries({}, { name: 'cats.ts', content: HANDLER }))],
    ['cats.tar.gz', () => tgzOf(nested)],
    ['zipped-folder.zip', () => zipOf([...nested, { name: '__MACOSX/cats/._cats.mjs' }])],
  ] as const;
  test('is registered by its url alone, and served', async (t) => {
    const packed = [
      ...FORMATS,
      ['old.model', oldArchive],
      ['cats.mar', () => zipOf(catEntries())],
      ['copy.mar', () => zipOf(catEntries())],
      ...REFUSED.map(([, format, bytes], i) => [`${i}.${format}`, bytes] as const),
    ] as const;
    const files = await Promise.all(packed.map(async ([file, pack]) => [file, await pack()] as const));
    const place = makePlace(t, Object.fromEntries(files));
    const site = await serveArchive(t, await zipOf(catEntries({ modelVersion: '2' })));
    const { server, management } = await startIn(
      t,
      place,
      { args: ['--allowed-urls', `${site}/zoo/`] },
      startManagedHere,
    );
    const register = (query: string): Promise<string> =>
      management.said(`POST /models?${query}&initial_workers=1`);
    for (const [i, [what, format, , problem]] of REFUSED.entries())
      await t.test(`${what} is refused in words, and leaves nothing behind`, async () => {
        const file = `${i}.${format}`;
        const answer = await management.manage(`POST /models?url=${file}&initial_workers=1`);
        const error = answer.json<{ code: number; type: string; message: string }>();
        assert.deepEqual([answer.status, error.code, error.type], [400, 400, 'InvalidModelException']);
        assert.match(error.message.replace(`${file}: `, ''), problem);
        assert.equal(error.message.startsWith(`${file}: `), what !== NO_HANDLER, error.message);
        await untilUnpacked(place, 0);
      });
    assert.deepEqual(readdirSync(place.cwd).sort(), ['node_modules', 'store', 'temp']);
    assert.deepEqual((await server.status()).models, []);

    for (const [file] of FORMATS)
      await t.test(file, async () => {
        assert.equal(await register(`url=${file}`), '200 Workers scaled');
        const { dir, ...answer } = (await management.infer('cats')).json<{ dir: string }>();
        const more = { greeting: 'hello', isOurs: true, kind: 'archive', name: 'cats' };
        assert.deepEqual(answer, { labels: 'felis', ...(file === 'in-typescript.mar' && more) });
        assert.ok(dir.startsWith(place.temp) && existsSync(dir), dir);
        assert.equal((await management.describe('cats')).modelVersion, '1.0');
        await management.said('DELETE /models/cats');
        await untilUnpacked(place, 0);
      });

    await t.test('one of the first format has its name, its handler and the version snapshot', async () => {
      assert.equal(await register('url=old.model'), '200 Workers scaled');
      assert.equal((await management.infer('old/snapshot')).text, 'old');
      await management.said('DELETE /models/old');
      await untilUnpacked(place, 0);
    });

    await t.test(
      'it is unpacked once for all models that share it, and stays while one of them is there',
      async () => {
        assert.equal(await register('url=cats.mar'), '200 Workers scaled');
        assert.equal(await register('url=copy.mar&model_name=lynx'), '200 Workers scaled');
        assert.equal(await register('url=copy.mar'), '409 Model cats is already registered.');
        assert.equal(unpacked(place).length, 1);
        assert.equal(await management.said('DELETE /models/cats'), '200 Model "cats" unregistered');
        const [pid] = await management.pids('lynx');
        process.kill(pid as number, 'SIGKILL');
        await eventually(
          () => !isAlive(pid as number),
          60_000,
          () => 'the worker is dead',
        );
        assert.equal((await management.infer('lynx')).json<{ labels: string }>().labels, 'felis');
        assert.equal(await management.said('DELETE /models/lynx'), '200 Model "lynx" unregistered');
        await untilUnpacked(place, 0);
      },
    );
    await t.test(
      'one on the web is downloaded from where it may come from, unpacked, and served',
      async () => {
        assert.equal(await register(`url=${site}/zoo/cats.mar`), '200 Workers scaled');
        assert.equal((await management.infer('cats/2')).json<{ labels: string }>().labels, 'felis');
        assert.equal(unpacked(place).length, 1, 'the archive itself is not kept');
        assert.match(
          await register(`url=${site}/zoo/gone.mar`),
          /^400 Failed to download model from: .*gone\.mar, code: 404/,
        );
        assert.match(
          await register(`url=${site}/other.mar`),
          /^400 Failed to download model from: .*: not allowed/,
        );
        assert.equal(unpacked(place).length, 1);
      },
    );
    await server.stop('SIGTERM', 0);
    assert.deepEqual(ownFolders(place), [], 'what was unpacked is gone with the server');
  });

  test('is one that the server may begin with, and serves an app as itself; one that cannot be served is left out', async (t) => {
    const place = makePlace(t, {
      'cats.mar': await zipOf(catEntries({ modelVersion: '3' })),
      'my app.mar': await zipOf([
        { name: 'app.mjs', content: 'export const inference = () => ({ app: true });' },
      ]),
      'm.mar': Buffer.from('weights'),
    });
    const { server, management } = await startIn(t, place, { args: ['--models', 'all'] }, startManagedHere);
    await server.untilPrinted(/--models all: m\.mar: it is neither a zip archive .*; it is left out/);
    await server.until(({ models }) => models.length === 2 && models.every(({ state }) => state === 'ready'));
    assert.equal((await management.infer('cats/3')).status, 200);
    assert.deepEqual((await management.infer('my_app')).json(), { app: true });
    await server.stop();
  });
});

test(
  'a temp folder without room is reported, and what fitted is removed',
  { ...LIMIT, skip: needs('unshare') },
  async (t) => {
    const content = randomFillSync(Buffer.alloc(4_000_000));
    const place = makePlace(t, { 'big.mar': await zipOf([...catEntries(), { name: 'weights', content }]) });
    const mount = `mount -t tmpfs -o size=2m tmpfs "${place.temp}" && exec "$@"`;
    const inNamespace = join(place.cwd, 'in-namespace');
    const { execPath } = process;
    writeFileSync(
      inNamespace,
      `#!/bin/sh\nexec unshare --map-root-user --mount sh -c '${mount}' sh ${execPath} ${CLI} "$@"\n`,
      { mode: 0o755 },
    );
    const { server, management } = await startIn(t, place, { command: inNamespace });
    const answer = await management.manage('POST /models?url=big.mar');
    assert.equal(answer.status, 507);
    assert.match(
      answer.json<{ message: string }>().message,
      /^big\.mar: the server's temp folder has no space for it\./,
    );
    const inside = `/proc/${server.pid}/root${place.temp}`;
    const [own] = readdirSync(inside).filter((name) => name.startsWith(FOLDER_PREFIX));
    assert.deepEqual(readdirSync(join(inside, own as string)), []);
    writeFileSync(join(place.store, 'cats.mar'), await zipOf(catEntries()));
    assert.equal(await management.said('POST /models?url=cats.mar&initial_workers=1'), '200 Workers scaled');
    await server.stop();
  },
);

test('a server that cannot start leaves nothing unpacked', LIMIT, async (t) => {
  const place = makePlace(t, { 'cats.mar': await zipOf(catEntries()) });
  useTemp(t, place);
  const other = createServer();
  await once(other.listen(0, '127.0.0.1'), 'listening');
  t.after(() => other.close());
  const { port } = other.address() as AddressInfo;
  const common = { cwd: place.cwd, modelStore: place.store, models: 'cats.mar', logLevel: 'silent' } as const;
  const listening = { ...common, host: '127.0.0.1', managementPort: 0 };
  await assert.rejects(serve({ ...listening, port, gpus: 'none' }), { code: 'EADDRINUSE' });
  await assert.rejects(serve({ ...listening, port: 0, gpus: '99' }), { code: 'SERVE_CONFIG' });
  assert.deepEqual(ownFolders(place), []);
});

test(
  'a model that a program replaces gives its archive back, unless the files are still in use',
  LIMIT,
  async (t) => {
    const place = makePlace(t, { 'cats.mar': await zipOf(catEntries()) });
    useTemp(t, place);
    for (const [name, text] of [
      ['other.mjs', 'export const inference = () => 1;'],
      ['broken.mjs', 'throw new Error("broken");'],
    ] as const)
      writeFileSync(join(place.cwd, name), text);
    const options = { modelStore: place.store, models: 'cats.mar', port: 0, managementPort: 0 } as const;
    const server = await serve({ ...options, cwd: place.cwd, logLevel: 'silent', host: '127.0.0.1' });
    t.after(() => server.kill());
    await server.ready;
    const under = async (app: string, more: object = {}): Promise<string> => {
      const { settled } = await server.models.replace({ name: 'cats', version: '1.0', app, ...more });
      return (await settled).result;
    };
    const [folder = ''] = unpacked(place);
    const app = join(realpathSync(place.temp), ownFolders(place)[0] ?? '', folder, 'cats.mjs');
    assert.equal(await under(app, { queueSize: 3 }), 'done');
    assert.equal(await under('broken.mjs'), 'failed');
    assert.deepEqual(unpacked(place), [folder], 'its workers, and those to come, are loaded from it');
    assert.equal(await under('other.mjs'), 'done');
    await untilUnpacked(place, 0);
    await server.models.unregister({ name: 'cats' }).settled;
    await server.close();
    assert.deepEqual(ownFolders(place), []);
  },
);

test('what repeated loads of an archive unpack is removed when no worker uses it', LIMIT, async (t) => {
  const place = makePlace(t, { 'cats.mar': await zipOf(catEntries()) });
  useTemp(t, place);
  const options = { modelStore: place.store, models: 'none', port: 0, managementPort: 0 } as const;
  const server = await serve({ ...options, cwd: place.cwd, logLevel: 'silent', host: '127.0.0.1' });
  t.after(() => server.kill());
  const change = async (what: 'load' | 'unload'): Promise<number> =>
    (await call(`${server.managementUrl}/v2/repository/models/cats/${what}`, null)).status;
  assert.deepEqual([await change('load'), await change('load')], [200, 200]);
  const [first] = unpacked(place);
  const broken = { name: 'cats.mjs', content: 'throw new Error("broken");' };
  writeFileSync(join(place.store, 'cats.mar'), await zipOf(catEntries({}, broken)));
  assert.equal(await change('load'), 400);
  assert.ok(unpacked(place).includes(String(first)), 'its workers are loaded from it');
  writeFileSync(join(place.store, 'cats.mar'), await zipOf([...catEntries(), { name: 'new', content: '' }]));
  assert.equal(await change('load'), 200);
  await untilUnpacked(place, 1);
  assert.notDeepEqual(unpacked(place), [first]);
  assert.equal(await change('unload'), 200);
  await untilUnpacked(place, 0);
  await server.close();
});

const CHANGES = [
  ['written anew', (path: string, bytes: Buffer) => writeFileSync(path, bytes)],
  [
    'replaced by another file',
    (path: string, bytes: Buffer) => {
      writeFileSync(`${path}.new`, bytes);
      renameSync(`${path}.new`, path);
    },
  ],
] as const;

/** An archive whose unpacking can be held in the middle. */
function heldEntries(): PackedEntry[] {
  return [{ name: 'before', content: 'it' }, { name: HELD, content: '' }, ...catEntries()];
}

test(
  'files of a server that was killed while it unpacked are removed by the next one, which unpacks others',
  LIMIT,
  async (t) => {
    const place = makePlace(t, {
      'big.mar': await zipOf(heldEntries()),
      'cats.mar': await zipOf(catEntries()),
    });
    const held = holdUnpacking(t);
    const first = await startIn(t, place, { env: held.env });
    const registered = first.management.manage('POST /models?url=big.mar');
    registered.catch(() => {}); // the server ends before it answers
    await held.untilHeld();
    const [left = 'none'] = ownFolders(place);
    const files = (): string[] => readdirSync(join(place.temp, left, unpacked(place)[0] as string));
    assert.deepEqual(files(), ['before'], 'it has begun');
    first.server.process.kill('SIGKILL');
    await first.server.ended;
    assert.deepEqual(files(), ['before'], 'it has not ended');
    const { server, management } = await startIn(t, place, { env: held.env });
    await eventually(
      () => !existsSync(join(place.temp, left)),
      60_000,
      () => 'what was left is removed',
    );

    await t.test('a registration whose client leaves during the unpacking is called off', async () => {
      const client = new AbortController();
      const asked = 'POST /models?url=big.mar&initial_workers=1';
      held.hold();
      const gone = assert.rejects(management.manage(asked, { signal: client.signal }));
      await held.untilHeld();
      client.abort();
      await gone;
      // The server has read the end of the connection before it answers a later one twice.
      for (let i = 0; i < 2; i += 1) await management.manage('GET /models');
      held.goOn();
      await untilUnpacked(place, 0);
      assert.deepEqual((await server.status()).models, []);
      assert.equal(await management.said(asked), '200 Workers scaled');
      assert.doesNotMatch(server.stderr(), /request handler failed/);
      assert.equal(await management.said('DELETE /models/cats'), '200 Model "cats" unregistered');
      await untilUnpacked(place, 0);
    });

    for (const [i, [how, replace]] of CHANGES.entries())
      await t.test(
        `an archive that changes while it is unpacked, ${how}, is refused, and is served when it is asked for again`,
        async () => {
          const file = `cats-${i}.mar`;
          writeFileSync(join(place.store, file), await zipOf(heldEntries()));
          held.hold();
          const registered = management.said(`POST /models?url=${file}&initial_workers=1`);
          await held.untilHeld();
          replace(join(place.store, file), await zipOf(catEntries({ modelVersion: '7.0' })));
          held.goOn();
          assert.equal(
            await registered,
            `400 ${file}: it was changed while it was read; ask again once it is complete.`,
          );
          await untilUnpacked(place, 0);
          assert.equal(
            await management.said(`POST /models?url=${file}&initial_workers=1`),
            '200 Workers scaled',
          );
          assert.equal((await management.describe('cats')).modelVersion, '7.0');
          assert.equal(await management.said('DELETE /models/cats'), '200 Model "cats" unregistered');
          await untilUnpacked(place, 0);
        },
      );
    await server.stop();
    assert.deepEqual(ownFolders(place), []);
  },
);

test(
  'after 8 registrations and removals of an archive of 10 MB, disk and memory are as after the first',
  { timeout: 600_000 },
  async (t) => {
    const content = randomFillSync(Buffer.alloc(10_000_000));
    const place = makePlace(t, { 'big.mar': await zipOf([...catEntries(), { name: 'weights', content }]) });
    const cues = makeCues(t);
    const { server, management } = await startIn(t, place, { env: { ...cues.env, ...HEAP_ENV } });
    const comeAndGo = async (): Promise<void> => {
      assert.equal(await management.said('POST /models?url=big.mar'), '200 Model "cats" registered');
      assert.equal(unpacked(place).length, 1);
      assert.equal(await management.said('DELETE /models/cats'), '200 Model "cats" unregistered');
      await untilUnpacked(place, 0);
    };
    for (let i = 0; i < 2; i++) await comeAndGo();
    const before = await frontHeapBytes(server, cues);
    const descriptors = readdirSync(`/proc/${server.pid}/fd`).length;
    for (let i = 0; i < 6; i++) await comeAndGo();
    // What was read last may be held by a turn that has not ended, or until a second collection.
    let grownBytes = Infinity;
    await eventually(
      async () => (grownBytes = (await frontHeapBytes(server, cues)) - before) < content.length,
      60_000,
      () => `${grownBytes} bytes more than ${before}`,
    );
    const isAsBefore = (): boolean => readdirSync(`/proc/${server.pid}/fd`).length <= descriptors;
    await eventually(isAsBefore, 60_000, () => 'descriptors stay open');
    await server.stop();
    rmSync(place.store, { recursive: true });
  },
);
