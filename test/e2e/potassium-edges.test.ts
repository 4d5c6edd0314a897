/** Potassium apps where two things meet: a cold start and a background call, a worker and its own test, a result and JSON. */
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { endOf, post, potassiumStatus, startJob, untilPotassium } from '../helpers/potassium.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { eventually, ROOT, runCommand } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import { spawn } from 'node:child_process';

const LIMIT = { timeout: 240_000 };

const HEAD = `
  import { Potassium, Response } from 'banana-serve/potassium';
  const app = new Potassium('edges');
`;

/** A folder that finds banana-serve, with a name that paths must survive. */
function ownFolder(t: TestContext): string {
  const parent = mkdtempSync(join(tmpdir(), 'banana-edges-'));
  t.after(() => rmSync(parent, { recursive: true }));
  const folder = join(parent, 'my app (1)');
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(ROOT, join(folder, 'node_modules/banana-serve'));
  return folder;
}

function appOf(t: TestContext, source: string): string {
  const path = join(ownFolder(t), 'app.mjs');
  writeFileSync(path, HEAD + source);
  return path;
}

withEachRuntime(({ app }) => {
  describe('on one server', () => {
    const shared = shareHere(app('potassium-edges'));

    test('results of jobs are returned as they are, whatever is in them', LIMIT, async () => {
      const { server } = shared;
      const resultOf = async (path: string): Promise<[string | undefined, unknown]> => {
        const { encoding, result } = await endOf(server, await startJob(server, path, {}));
        return [encoding, result];
      };
      assert.deepEqual(await resultOf('/dollars'), ['json', { price: "US$& $$ $' $`" }]);
      assert.deepEqual(await resultOf('/broken'), ['base64', Buffer.from('{not json').toString('base64')]);
      assert.deepEqual(await resultOf('/latin'), ['base64', Buffer.from([34, 233, 34]).toString('base64')]);
      assert.deepEqual(await resultOf('/empty'), ['base64', '']);
      assert.deepEqual(await resultOf('/nothing'), ['json', null]);
      const id = await startJob(server, '/generator', {});
      assert.equal((await endOf(server, id)).state, 'failed', 'a generator would never run');
      await server.untilPrinted(`the background job ${id} of /generator failed`);
      const { completed, failed } = await potassiumStatus(server);
      assert.deepEqual([completed, failed], [5, 1], 'a background call counts as it ended');
    });

    test('a worker that is still busy with a call whose client left is not available', LIMIT, async () => {
      const { server, cues } = shared;
      const leaving = new AbortController();
      const held = { url: `${server.url}/held` };
      const left = ask(held, {}, { id: 'leaver', signal: leaving.signal });
      await cues.untilNoted('running leaver');
      leaving.abort();
      await assert.rejects(left);
      const { gpu_available, idle_time } = await potassiumStatus(server);
      assert.deepEqual([gpu_available, idle_time], [false, 0]);
      cues.give('go on');
      await cues.untilNoted('ended leaver');
      await untilPotassium(server, ({ gpu_available }) => gpu_available);

      const before = await potassiumStatus(server);
      for (const path of ['/favicon.ico', '/', '/_k/status']) await fetch(`${server.url}${path}`);
      const after = await potassiumStatus(server);
      assert.ok(after.idle_time >= before.idle_time, 'a request that is no call does not count as activity');
      assert.deepEqual([after.failed, after.sequence_number], [before.failed, before.sequence_number]);
    });

    test(
      'an answer that cannot be sent is an error of its call alone, with nothing of it',
      LIMIT,
      async () => {
        const { server } = shared;
        const unsent = await post(server, '/told-status', 99);
        assert.deepEqual([unsent.status, errorOf(unsent).code], [500, 'SERVE_INFERENCE_FAILED']);
        const bad = { 'Content-Encoding': 'gzip', 'Set-Cookie': 'a=1', 'bad name': 'x' };
        const broken = await post(server, '/headers', bad, 'mine');
        assert.deepEqual([broken.status, errorOf(broken).code], [500, 'SERVE_OUTPUT_INVALID']);
        assert.equal(broken.headers.get('content-encoding'), null);
        assert.equal(broken.headers.get('set-cookie'), null);
        assert.equal(broken.headers.get('x-banana-request-id'), 'mine');
        const forged = await post(server, '/headers', { 'X-Banana-Request-Id': 'forged' }, 'mine');
        assert.equal(forged.headers.get('x-banana-request-id'), 'mine', 'the id cannot be forged');
      },
    );

    test('JSON that an app wrote itself reaches the clients of the gateway as ASCII', LIMIT, async () => {
      const answer = await ask({ url: `${shared.server.url}/start/v4/` }, { modelInputs: {} });
      assert.match(answer.text, /^[\x20-\x7e]+$/);
      assert.deepEqual(answer.json<{ modelOutputs: unknown[] }>().modelOutputs, [{ a: 'é🍌' }]);
    });
  });

  test(
    'config and shutdown beside an app that serves itself are obeyed, in a folder of any name',
    LIMIT,
    async (t) => {
      const fixture = app('potassium-configured');
      const path = join(ownFolder(t), basename(fixture));
      copyFileSync(fixture, path);
      const server = await startHere(path, { t });
      assert.equal((await ask(server, {})).status, 504);
      await server.stop();
      assert.match(server.stdout(), /shutdown ran/);
    },
  );
});

withOneRuntime(({ app }) => {
  test('a background call that waits while several workers load is answered once', LIMIT, async (t) => {
    const cues = makeCues(t);
    cues.give('init may not end');
    const args = ['--workers', '3', '--spawn-concurrency', '3'];
    const server = await startHere(app('potassium-edges'), { t, args, env: cues.env });
    const id = await startJob(server, '/ran', {});
    for (const n of [0, 1, 2]) await cues.untilNoted(`loaded ${n}`);
    for (const n of [0, 1, 2]) {
      cues.give(`init ${n} may end`);
      await server.until(({ model }) => model.workers[n]?.state === 'idle');
    }
    assert.deepEqual((await endOf(server, id)).result, { done: true });
    assert.equal(cues.notes().filter((note) => note === 'ran').length, 1);
    await server.stop();
  });
});

for (const [what, init, said] of [
  [
    'a test client in the file of its app: init runs in a worker, the call is answered',
    'return {}',
    /^\{"ok":true\} 200\n$/,
  ],
  [
    'a test client whose init fails rejects with the reason',
    `throw new Error('no weights')`,
    /^rejected: .*no weights/,
  ],
] as const) {
  test(`${what}; the process ends by itself`, LIMIT, async (t) => {
    const path = appOf(
      t,
      `app.init(() => { ${init} });
       app.handler('/', () => new Response({ json: { ok: true } }));
       try {
         const client = await app.testClient();
         const { text, statusCode } = await client.post('/', { json: {} });
         console.log(text, statusCode);
         await client.close();
       } catch (error) {
         console.log('rejected: ' + error.message.replaceAll('\\n', ' '));
       }`,
    );
    const child = spawn(process.execPath, [path], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    const code = await new Promise((resolve) => child.once('close', resolve));
    assert.match(out, said);
    assert.equal(code, 0);
  });
}

/** Runs a program to its end, and gives what it printed. */
async function printsOf(t: TestContext, path: string): Promise<string> {
  const program = runCommand([path], { t, command: process.execPath });
  await program.ended;
  return program.stdout();
}

const SAYS = `const says = (name) => {
    const made = new Potassium(name);
    made.handler('/', () => new Response({ json: name }));
    return made;
  };
  const tell = async (made) => {
    try {
      const client = await made.testClient();
      console.log((await client.post('/', { json: {} })).text);
      await client.close();
    } catch (error) {
      console.log('refused: ' + error.message.replaceAll('\\n', ' '));
    }
  };`;

test('several test clients in one file: each has its own app, in any order and at once', LIMIT, async (t) => {
  const path = appOf(
    t,
    `${SAYS}
     const [one, two, three] = [says('one'), says('two'), says('three')];
     await tell(two);
     await Promise.all([tell(one), tell(three)]);`,
  );
  const [first, ...others] = (await printsOf(t, path)).trim().split('\n');
  assert.equal(first, '"two"');
  assert.deepEqual(others.sort(), ['"one"', '"three"']);
});

test(
  'a test client of an app that the worker cannot make rejects with that reason, and never answers for another',
  LIMIT,
  async (t) => {
    const path = appOf(t, `${SAYS} await tell(says('first')); await tell(says('second'));`);
    const [first, second] = (await printsOf(t, path)).trim().split('\n');
    assert.equal(first, '"first"');
    assert.match(
      second ?? '',
      /^refused: .*app number 3 that this file makes does not exist .*Create it at the top/,
    );
  },
);

test('an app that is exported beside another is the one that its test client tests', LIMIT, async (t) => {
  const path = appOf(t, `${SAYS} export const other = says('other'); export default says('default');`);
  const program = join(path, '../test.mjs');
  writeFileSync(
    program,
    `${SAYS} import app, { other } from './app.mjs'; await tell(other); await tell(app);`,
  );
  assert.equal(await printsOf(t, program), '"other"\n"default"\n');
});

test('two run({ inference }) in one file serve each its own function', LIMIT, async (t) => {
  const path = appOf(
    t,
    `import { run } from 'banana-serve';
     const options = { host: '127.0.0.1', port: 0, logLevel: 'info', drainLag: '0s' };
     void run({ inference: () => 'one', ...options });
     void run({ inference: () => 'two', ...options });`,
  );
  const program = runCommand([path], { t, command: process.execPath });
  const urls = (): string[] =>
    [...program.stderr().matchAll(/ on (http:\/\/[^\s"]+)/g)].map(([, url]) => url ?? '');
  await eventually(() => urls().length === 2, 60_000, program.stderr);
  const answers = await Promise.all(urls().map(async (url) => (await post({ url }, '/', {})).json()));
  assert.deepEqual(answers.sort(), ['one', 'two']);
  program.process.kill('SIGTERM');
  await program.ended;
});

test(
  'a file that serves two apps cannot be started by its name: which one is not known',
  LIMIT,
  async (t) => {
    const path = appOf(
      t,
      `import { run } from 'banana-serve'; void run({ inference: () => 1 }); void run({ inference: () => 2 });`,
    );
    const command = runCommand([path, '--port', '0'], { t });
    assert.deepEqual(await command.ended, { code: 3, signal: null });
    assert.match(command.stderr(), /this file serves 2 apps\. Give each a file of its own\./);
  },
);
