/** The file of a local store is one for the workers of both languages. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { Store } from '../../../../../index.js';
import { needs } from '../../../../helpers/needs.js';
import { eventually, ROOT } from '../../../../helpers/server.js';
import { scratchFolder } from './scratch-folder.js';

/** Answers every line, a list of the name of a method and its arguments. */
const PYTHON = `
import json, sys
from potassium import Store
def plain(value):
    return value.hex() if isinstance(value, bytes) else value
store = Store("local", {"path": sys.argv[1], "encoding": sys.argv[2]})
for line in sys.stdin:
    name, *given = json.loads(line)
    print(json.dumps(getattr(store, name)(*given), default=plain), flush=True)
`;

type Ask = (name: string, ...given: unknown[]) => Promise<unknown>;

function startPython(t: { after(undo: () => unknown): void }, path: string, encoding: string): Ask {
  const env = { ...process.env, PYTHONPATH: `${ROOT}worker/python` };
  const child = spawn('python3', ['-B', '-c', PYTHON, path, encoding], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(async () => {
    if (child.exitCode !== null) return;
    child.stdin.end();
    await once(child, 'close');
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return async (...call) => {
    child.stdin.write(`${JSON.stringify(call)}\n`);
    const next = await lines.next();
    assert.ok(next.done !== true, 'the program in Python ended');
    return JSON.parse(next.value) as unknown;
  };
}

const KEYS = ['key', 'é漢🍌', 'a\0b', 'k'.repeat(5000)];
const VALUE = { list: [1, 2.5, null, true, 'é漢🍌'], nested: { a: {} } };

for (const encoding of ['json', 'msgpack'] as const) {
  for (const first of ['TypeScript', 'Python']) {
    test(
      `TypeScript and Python share keys, values and times in ${encoding}, in a file that ${first} made`,
      { skip: needs('python3') },
      async (t) => {
        const path = join(scratchFolder(t), 'own', 'store.sqlite3');
        const store = new Store({ backend: 'local', config: { path, encoding } });
        t.after(() => store.close());
        const python = startPython(t, path, encoding);
        if (first === 'Python') assert.equal(await python('get', 'nothing'), null);
        await bothWays(store, python);
      },
    );
  }
}

async function bothWays(store: Store, python: Ask): Promise<void> {
  for (const key of KEYS) {
    await store.set(key, VALUE, null);
    assert.deepEqual(await python('get', key), VALUE);
    assert.equal(await python('delete', key), true);
    assert.equal(await store.has(key), false);
    await python('set', key, VALUE, null);
    assert.deepEqual(await store.get(key), VALUE);
    assert.equal(await store.delete(key), true);
    assert.equal(await python('has', key), false);
  }
  await store.set('brief', 1, 0.05);
  await python('set', 'brief too', 1, 0.05);
  const goneFor = async (): Promise<unknown[]> => [
    await python('has', 'brief'),
    await store.has('brief too'),
  ];
  await eventually(
    async () => (await goneFor()).every((there) => there === false),
    60_000,
    () => 'a value did not expire',
  );
  await store.set('long', 1, 1e9);
  assert.equal(await python('get', 'long'), 1);
}

test('bytes in msgpack are bytes in both languages', { skip: needs('python3') }, async (t) => {
  const path = join(scratchFolder(t), 'store.sqlite3');
  const store = new Store({ backend: 'local', config: { path, encoding: 'msgpack' } });
  t.after(() => store.close());
  await store.set('key', { bytes: Buffer.of(0, 255) });
  assert.deepEqual(await startPython(t, path, 'msgpack')('get', 'key'), { bytes: '00ff' });
});

test(
  'writers in TypeScript and in Python at once lose nothing of each other',
  { skip: needs('python3') },
  async (t) => {
    const path = join(scratchFolder(t), 'own', 'store.sqlite3');
    const store = new Store({ backend: 'local', config: { path } });
    t.after(() => store.close());
    const pythons = [startPython(t, path, 'json'), startPython(t, path, 'json')];
    const writers: Ask[] = [...pythons, (_name, key, value) => store.set(key as string, value, null)];
    const each = async (write: Ask, who: number): Promise<void> => {
      for (let i = 0; i < 100; i += 1) await write('set', `${who} ${i}`, i, null);
    };
    await Promise.all(writers.map(each));
    for (const who of writers.keys()) {
      for (let i = 0; i < 100; i += 1) assert.equal(await store.get(`${who} ${i}`), i);
    }
  },
);
