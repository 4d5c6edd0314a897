/** Whatever an app, its libraries or its children print comes out, promptly and whole, and never touches a call. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { ask, pidOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { CLI, eventually, isAlive, startServer, type Server } from '../helpers/server.js';
import { shareServer } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };

const FULL_DISK = '/dev/full';

withEachRuntime(({ app }) => {
  test('prints of every kind', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startServer(app('prints-noise'), { t, env: cues.env });
    const pid = await pidOf(server);
    const print = async (...ways: string[]): Promise<void> => {
      const answer = await ask(server, { ways });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.json<{ pid: number }>().pid, pid, 'the same worker goes on');
    };

    await t.test('bytes that look like frames come out as they are and answer nothing', async () => {
      await print('garbage', 'garbage');
      const garbage = Buffer.from('05000000ffffffff931f1fc0e28200fe0d0a', 'hex');
      await eventually(
        () => occurrences(server.stdoutBytes(), garbage) === 2,
        60_000,
        () => server.stdout(),
      );
    });

    await t.test('native code and child programs reach stdout and stderr', async () => {
      await print('native', 'nativeError', 'child');
      for (const line of ['printed by native code', 'printed by a child'])
        await untilLine(server.stdout, line);
      for (const line of ['complained by native code', 'complained by a child'])
        await untilLine(server.stderr, line);
    });

    await t.test('a progress bar is seen while it stands still', async () => {
      const call = ask(server, { progress: 'go on' });
      await eventually(
        () => server.stdout().includes(' 10%\r'),
        60_000,
        () => server.stdout().slice(-100),
      );
      assert.ok(!server.stdout().includes('100%'));
      cues.give('go on');
      assert.equal((await call).status, 200);
      await untilLine(server.stdout, ' 10%\r100%');
    });

    await t.test('a line of 10 MB without an end comes out whole, and calls go on', async () => {
      await print('longLine');
      await print('native');
      const line = `<${'x'.repeat(10_000_000)}>`;
      const lineAndNext = (): boolean => {
        const start = server.stdout().indexOf(line);
        return start >= 0 && server.stdout().includes('printed by native code', start);
      };
      await eventually(lineAndNext, 60_000, () => `${server.stdout().length} characters`);
    });

    await t.test('a flood of lines comes out whole and does not keep the front from answering', async () => {
      const before = server.stdoutBytes().length;
      const printed = (): string => server.stdoutBytes().subarray(before).toString();
      const flood = ask(server, { ways: ['emptyLines', 'lines'], flood: 'enough' });
      await eventually(
        () => printed().includes('\na line'),
        60_000,
        () => `${printed().length} bytes`,
      );
      for (let i = 0; i < 5; i += 1) assert.equal((await fetch(`${server.url}/livez`)).status, 200);
      cues.give('enough');
      const { pid: floodPid, lines } = (await flood).json<{ pid: number; lines: number }>();
      assert.equal(floodPid, pid);
      const wanted = '\n'.repeat(200_000) + 'a line like any other\n'.repeat(200_000 + lines);
      await eventually(
        () => printed() === wanted,
        60_000,
        () => `${printed().length} bytes of ${wanted.length}`,
      );
    });

    await server.stop();
  });

  test('--log-format json', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--log-format', 'json'];
    const server = await startServer(app('prints-in-turns'), { t, env: cues.env, args });
    const printed = (msg: string): Print | undefined => prints(server).find((print) => print.msg === msg);
    const untilPrinted = (msg: string): Promise<void> =>
      eventually(
        () => printed(msg) !== undefined,
        60_000,
        () => `${msg} in:\n${server.stdout()}`,
      );

    await t.test('wraps each print with stream, worker and request id', async () => {
      await ask(server, { says: 'one' }, { id: 'call-1' });
      await untilPrinted('one');
      const { stream, worker, requestId } = printed('one') as Print;
      assert.deepEqual({ stream, worker, requestId }, { stream: 'stdout', worker: 0, requestId: 'call-1' });
    });

    await t.test(
      "a print of a call that has ended keeps that call's id, while another one runs and prints",
      async () => {
        await ask(server, { says: 'two', later: 'two goes on' }, { id: 'call-2' });
        const third = ask(
          server,
          { says: 'three', later: 'three goes on', until: 'three ends' },
          { id: 'call-3' },
        );
        await untilPrinted('three');
        cues.give('two goes on');
        await untilPrinted('two, later');
        cues.give('three goes on');
        await untilPrinted('three, later');
        cues.give('three ends');
        await third;
        const ids = ['two', 'three', 'two, later', 'three, later'].map((msg) => printed(msg)?.requestId);
        assert.deepEqual(ids, ['call-2', 'call-3', 'call-2', 'call-3']);
      },
    );

    await t.test(
      "a program's print has the id of the call then running, whatever was printed before",
      async () => {
        await ask(server, { says: 'four' }, { id: 'call-4' });
        const fifth = ask(server, { child: 'five', until: 'five ends' }, { id: 'call-5' });
        await untilPrinted('five');
        cues.give('five ends');
        await fifth;
        assert.equal(printed('four')?.requestId, 'call-4');
        assert.equal(printed('five')?.requestId, 'call-5');
      },
    );

    await server.stop();
  });

  describe('on one server', LIMIT, () => {
    const shared = shareServer(app('prints-noise'), { args: ['--log-format', 'json'] });

    test(
      '--log-format json: what native code and programs print has the id of the call then running',
      LIMIT,
      async () => {
        const { server, cues } = shared;
        const ways = ['native', 'nativeError', 'child'];
        for (const id of ['call-1', 'call-2']) {
          const call = ask(server, { ways, begins: `${id} begins\n`, until: id, ends: 'ends\n' }, { id });
          const texts = [
            'printed by native code',
            'complained by native code',
            'printed by a child',
            'complained by a child',
          ];
          const ids = (): (string | undefined)[] => texts.map((text) => lastPrint(server, text)?.requestId);
          await eventually(
            () => ids().every((each) => each === id),
            60_000,
            () => `${ids().join()} in:\n${server.stdout()}${server.stderr()}`,
          );
          cues.give(id);
          assert.equal((await call).status, 200);
        }
      },
    );

    test('--log-format json: noise becomes whole JSON lines, and nothing of it is lost', LIMIT, async () => {
      const { server } = shared;
      assert.equal(
        (await ask(server, { ways: ['garbage', 'longLine', 'native'] }, { id: 'noise' })).status,
        200,
      );
      const text = (): string =>
        prints(server)
          .filter(({ requestId }) => requestId === 'noise')
          .map(({ msg }) => msg)
          .join('');
      await eventually(
        () => text().includes('printed by native code'),
        60_000,
        () => `${server.stdout().length} characters`,
      );
      assert.ok(text().includes(`<${'x'.repeat(10_000_000)}>`));
    });
  });
});

/** The front writes what workers print, whatever their language. */
withOneRuntime(({ app }) => {
  test('the prints of two workers', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--workers', '2'];
    const server = await startServer(app('prints-noise'), { t, env: cues.env, args });
    await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));

    await t.test('a line is seen as it grows, and two workers never share one', async () => {
      const armed = 'armed: prints noise\n'.repeat(2);
      const untilPrinted = (text: string): Promise<void> =>
        eventually(
          () => server.stdout() === armed + text,
          60_000,
          () => server.stdout(),
        );
      await untilPrinted('');
      const first = ask(server, { begins: 'Loading\u2026 ', until: 'go on', ends: 'done\n' });
      await untilPrinted('Loading\u2026 ');
      const second = ask(server, { begins: 'Second: ', until: 'end', ends: 'ended\n' });
      await cues.untilNoted('begun Second: ');
      cues.give('go on');
      await untilPrinted('Loading\u2026 done\nSecond: ');
      cues.give('end');
      await untilPrinted('Loading\u2026 done\nSecond: ended\n');
      assert.deepEqual([(await first).status, (await second).status], [200, 200]);
      await ask(server, { ways: ['begunError'] });
      await server.untilPrinted(/begun on stderr$/);
    });

    await t.test(
      'a reader of stdout that stops reading holds up the worker that prints, and neither other calls nor the end',
      async () => {
        server.process.stdout?.pause();
        const stuck = ask(server, { ways: ['lines', 'lines', 'lines', 'lines'] });
        stuck.catch(() => {});
        await server.until(({ model }) => model.workers.some(({ state }) => state === 'busy'));
        for (let i = 0; i < 100; i += 1) assert.equal((await ask(server, {})).status, 200);
        const { model, front } = await server.status();
        assert.ok(
          model.workers.some(({ state }) => state === 'busy'),
          'it waits, and keeps nothing in memory',
        );
        assert.ok(front.rssBytes < 200e6, `the front has ${front.rssBytes} bytes`);
        server.process.kill('SIGINT');
        await server.until(({ state }) => state === 'draining');
        server.process.kill('SIGINT');
        await untilExit(server.process);
        assert.equal(server.process.exitCode, 130);
        await assert.rejects(stuck);
        // Nor does the log go on in a line of the app.
        await server.untilPrinted(/begun on stderr\n\[[\d:.]+\] INFO: draining/);
      },
    );
  });

  test(
    'a grandchild that keeps stdout and stderr open delays neither the report of a death, nor the restart, nor the end',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const server = await startServer(app('grandchild'), { t, env: cues.env, expectedRestarts: 1 });
      try {
        const pid = await pidOf(server);
        process.kill(pid, 'SIGKILL');
        assert.notEqual(await pidOf(server), pid);
        const [first] = children(cues.notes());
        assert.ok(
          isAlive(first as number),
          'it still holds the pipe: in its own session, no kill reaches it',
        );
        assert.deepEqual(await server.stop(), { code: 0, signal: null });
        assert.ok(isAlive(first as number), 'it held the pipe to the end');
      } finally {
        for (const pid of children(cues.notes())) process.kill(pid, 'SIGKILL');
      }
    },
  );

  test('--log-prefix potassium: a print of a call that has ended keeps its id', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--log-prefix', 'potassium', '--workers', '1'];
    const server = await startServer(app('prints-in-turns'), { t, env: cues.env, args });
    await ask(server, { says: 'one', later: 'one goes on' }, { id: 'call-1' });
    const second = ask(server, { says: 'two', until: 'two ends' }, { id: 'call-2' });
    await server.untilPrinted('[requestID call-2] two\n');
    cues.give('one goes on');
    await server.untilPrinted('[requestID call-1] one, later\n');
    cues.give('two ends');
    assert.equal((await second).status, 200);
    await server.stop();
  });

  test('a reader of stdout that is gone: prints are dropped, calls go on', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startServer(app('prints-noise'), { t, env: cues.env });
    await pidOf(server);
    server.process.stdout?.destroy();
    for (let i = 0; i < 3; i += 1) assert.equal((await ask(server, { ways: ['lines'] })).status, 200);
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });

  test(
    'a full disk behind stdout and stderr: prints and logs are dropped, calls go on',
    { ...LIMIT, skip: !existsSync(FULL_DISK) },
    async (t) => {
      const cues = makeCues(t);
      const full = openSync(FULL_DISK, 'w');
      const socket = `${cues.folder}/socket`;
      const env = { ...process.env, ...cues.env };
      const server = spawn(process.execPath, [CLI, app('prints-noise'), '--port', socket], {
        env,
        stdio: ['ignore', full, full],
      });
      closeSync(full);
      t.after(() => server.kill('SIGKILL'));
      await eventually(
        () => isListening(socket),
        60_000,
        () => 'the server does not listen',
      );
      for (let i = 0; i < 3; i += 1)
        assert.equal(await postToSocket(socket, { ways: ['lines', 'nativeError'] }), 200);
      server.kill('SIGINT');
      await untilExit(server);
      assert.equal(server.exitCode, 0);
    },
  );
});

interface Print {
  readonly stream: string;
  readonly worker: number;
  readonly requestId: string;
  readonly msg: string;
}

function postToSocket(socketPath: string, input: unknown): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, method: 'POST' }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode));
    });
    call.once('error', reject);
    call.end(JSON.stringify(input));
  });
}

/** Whether connections are taken there. The file of a socket exists a moment earlier. */
function isListening(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function untilExit(child: ChildProcess): Promise<unknown> {
  return child.exitCode === null && child.signalCode === null ? once(child, 'exit') : Promise.resolve();
}

/** The last print of this text, on either stream. */
function lastPrint(server: Server, text: string): Print | undefined {
  const lines = [...server.stdout().split('\n'), ...server.stderr().split('\n')].filter(
    (line) => line !== '',
  );
  return lines.map((line) => JSON.parse(line) as Print).findLast(({ msg }) => msg === text);
}

function prints(server: Server): Print[] {
  const lines = server.stdout().split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Print);
}

function untilLine(output: () => string, line: string): Promise<void> {
  return eventually(
    () => output().split('\n').includes(line),
    60_000,
    () => `${line} in:\n${output()}`,
  );
}

function occurrences(data: Buffer, part: Buffer): number {
  let count = 0;
  for (let at = data.indexOf(part); at >= 0; at = data.indexOf(part, at + part.length)) count += 1;
  return count;
}

function children(notes: readonly string[]): number[] {
  return notes.map((line) => Number(line.split(' ')[1]));
}
