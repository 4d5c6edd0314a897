/** A program with functions of models stays its own: it ends when it wants, prints what it wants, and leaves nothing behind. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { runProgram } from '../helpers/programs.js';
import { ROOT, eventually, isAlive } from '../helpers/server.js';

const BEGIN = `
  import { supervise } from 'banana-serve';
  const tell = await supervise('test/fixtures/functions/tells.mjs');
  const pid = await tell({ act: 'pid' });`;

async function gone(pid: number): Promise<void> {
  await eventually(
    () => !isAlive(pid),
    60_000,
    () => `the worker ${pid} is there`,
  );
}

describe('a program with a function', { timeout: 600_000 }, () => {
  test('ends by itself, with its own code, while the function is idle; nothing is printed unasked', async () => {
    const program = runProgram(`${BEGIN}
      console.log(pid);
      process.exitCode = 3;`);
    const { code, stdout, stderr } = await program.ended;
    assert.deepEqual([code, stderr], [3, '']);
    await gone(Number(stdout));
  });

  test('waits for calls, streams, starts and closes that are pending', async () => {
    const program = runProgram(`
      import { supervise } from 'banana-serve';
      supervise('test/fixtures/functions/tells.mjs', { prints: 'ignore' }).then((tell) => {
        tell({ act: 'sleep', ms: 300 }).then(async (slept) => {
          console.log(slept);
          for await (const item of await tell({ act: 'count', to: 3 })) console.log(item);
          tell({ act: 'sleep', ms: 200 });
          tell.close().then(() => console.log('closed'));
        });
      });`);
    const { code, stdout, stderr } = await program.ended;
    assert.deepEqual([code, stderr, stdout], [0, '', 'slept\n1\n2\n3\nclosed\n']);
  });

  test('may call again when it has nothing more to do', async () => {
    const program = runProgram(`${BEGIN}
      let times = 0;
      process.on('beforeExit', async () => {
        if (times++ < 2) console.log((await tell({ act: 'pid' })) === pid);
      });`);
    const { code, stdout } = await program.ended;
    assert.deepEqual([code, stdout], [0, 'true\ntrue\n']);
  });

  test('ends by itself with a budget of memory, with spares and while a worker is awaited that fails', async () => {
    const program = runProgram(`
      import { supervise } from 'banana-serve';
      const options = { spares: 1, prints: 'ignore', ...(process.platform === 'linux' && { memoryBudget: '90%' }) };
      const tell = await supervise('test/fixtures/functions/tells.mjs', options);
      await tell({ act: 'kill' }).catch(({ code }) => console.log(code));`);
    const { code, stdout, stderr } = await program.ended;
    assert.deepEqual([code, stdout, stderr], [0, 'SERVE_WORKER_LOST\n', '']);
  });

  for (const [how, ending, code] of [
    ['process.exit()', 'process.exit(5)', 5],
    ['an error that nobody catches', "setTimeout(() => { throw new Error('mine') })", 1],
  ] as const)
    test(`its workers end with it: ${how}`, async () => {
      const program = runProgram(`${BEGIN}
        tell({ act: 'block' }).catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 100));
        process.stdout.write(pid + '\\n', () => { ${ending}; });`);
      const ended = await program.ended;
      assert.equal(ended.code, code, ended.stderr);
      await gone(Number(ended.stdout));
    });

  test('its workers end with it: a kill, while they are inside native code', async () => {
    const program = runProgram(`${BEGIN}
      tell({ act: 'block' });
      console.log(pid);`);
    const pid = Number(await program.said());
    program.child.kill('SIGKILL');
    await program.ended;
    await gone(pid);
  });

  test('its signals are its own', async () => {
    const program = runProgram(`${BEGIN}
      console.log(['SIGINT', 'SIGTERM', 'SIGHUP'].map((name) => process.listenerCount(name)).join() + ' ' + pid);
      setInterval(() => {}, 1000);`);
    const [counts, pid] = (await program.said()).split(' ');
    assert.equal(counts, '0,0,0');
    program.child.kill('SIGTERM');
    assert.equal((await program.ended).signal, 'SIGTERM');
    await gone(Number(pid));
  });

  test('has one house for all functions: a guard and the workers, no other process', async () => {
    const program = runProgram(`${BEGIN}
      import { readFileSync } from 'node:fs';
      const other = await supervise('test/fixtures/functions/tells.mjs', { workers: 2 });
      const children = readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').trim().split(' ');
      console.log(children.length, other.status().name);`);
    assert.equal((await program.ended).stdout, '4 tells-2\n');
  });

  test('may have a server as well, which drains although nothing else keeps the program alive', async () => {
    const program = runProgram(`${BEGIN}
      const { serve } = await import('banana-serve');
      const options = { app: 'test/fixtures/functions/tells.mjs', port: 0, host: '127.0.0.1', logLevel: 'silent' };
      const server = await serve(options);
      const answer = fetch(server.url, { method: 'POST', body: '{"act":"sleep","ms":500}' });
      while (server.status().model.inFlight === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      server.close().then(({ reason }) => console.log(reason));
      await answer;`);
    assert.match((await program.ended).stdout, /^drained$/m);
  });

  for (const [path, outcome] of [
    [
      '/nowhere',
      /^SERVE_CONFIG .*this program runs in electron, whose .* is not Node: put node into its PATH/,
    ],
    [dirname(process.execPath), /^an answer$/m],
  ] as const)
    test(`in a runtime that is not Node, workers run in the node of PATH: ${path}`, async () => {
      const program = runProgram(`
        Object.defineProperty(process, 'versions', { value: { ...process.versions, electron: '30.0.0' } });
        process.env.PATH = ${JSON.stringify(path)};
        const { supervise } = await import('banana-serve');
        await supervise('test/fixtures/functions/tells.mjs').then(
          async (tell) => console.log((await tell({ act: 'echo', value: 'an answer' }))),
          ({ code, message }) => console.log(code, message),
        );`);
      assert.match((await program.ended).stdout, outcome);
    });

  test('a program in Bun, which has no V8, sends MessagePack', async () => {
    const program = runProgram(`
      Object.defineProperty(process, 'versions', { value: { ...process.versions, bun: '1.4.0' } });
      const { supervise } = await import('banana-serve');
      const tell = await supervise('test/fixtures/functions/tells.mjs');
      console.log(JSON.stringify(await tell({ act: 'echo', value: new Map([['a', 1]]) })));`);
    assert.equal((await program.ended).stdout, '{"a":1}\n');
  });

  test('a worker in a Node whose V8 writes other values is refused, naming both', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'banana-other-node-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const preload = join(ROOT, 'test/fixtures/functions/other-v8.mjs');
    const other = `#!/bin/sh\nexec ${process.execPath} --import ${preload} "$@"\n`;
    writeFileSync(join(folder, 'node'), other, { mode: 0o755 });
    const program = runProgram(`
      Object.defineProperty(process, 'versions', { value: { ...process.versions, electron: '30.0.0' } });
      process.env.PATH = ${JSON.stringify(folder)};
      const { supervise } = await import('banana-serve');
      await supervise('test/fixtures/functions/tells.mjs').catch(({ code, message }) => console.log(code, message));`);
    const { stdout } = await program.ended;
    const names = `the V8 of node v\\S+ writes values of version 99, that of this program \\(node v\\S+\\) of version \\d+`;
    assert.match(stdout, new RegExp(`^SERVE_APP_INVALID .*${names}\\.`));
  });

  test('loads no HTTP server', async () => {
    const program = runProgram(`${BEGIN}
      import { createRequire } from 'node:module';
      const loaded = Object.keys(createRequire(import.meta.url).cache);
      const packages = new Set(loaded.map((path) => /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(path)?.[1]));
      console.log([...packages].filter(Boolean).sort().join());
      console.log(process.moduleLoadList.includes('NativeModule http'));`);
    const { stdout } = await program.ended;
    const [packages = '', http] = stdout.split('\n');
    assert.doesNotMatch(packages, /koa|ws|undici|pino/);
    assert.equal(http, 'false');
  });

  test('may be CommonJS, and a thread, whose end ends its workers', async () => {
    const program = runProgram(
      `const { Worker, isMainThread, parentPort } = require('node:worker_threads');
      const code = \`
        const { supervise } = require('banana-serve');
        supervise('test/fixtures/functions/tells.mjs').then(async (tell) => {
          require('node:worker_threads').parentPort.postMessage(await tell({ act: 'pid' }));
          await tell({ act: 'block' });
        });\`;
      const thread = new Worker(code, { eval: true });
      thread.once('message', async (pid) => {
        await thread.terminate();
        console.log(pid);
        setInterval(() => {}, 1000);
      });`,
      'commonjs',
    );
    await gone(Number(await program.said()));
    assert.equal(program.child.exitCode, null, 'the program goes on');
    program.child.kill('SIGKILL');
    await program.ended;
  });
});
