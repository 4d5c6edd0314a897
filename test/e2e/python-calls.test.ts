/** Calls of apps in Python on a real server: running, cancelled, ended. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, errorOf, logLines, pidOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { ROOT, eventually, type Server } from '../helpers/server.js';
import { openStream } from '../helpers/stream.js';

const APPS = `${ROOT}test/fixtures/python-apps`;
const LIMIT = { timeout: 240_000, skip: needs('python3') };

const ARGS = ['--log-format', 'json', '--metrics'];

/** The process of the one worker, as the server knows it: no call is needed, which a short run timeout would be for, too. */
async function workerOf(server: Server): Promise<number> {
  const { model } = await server.until(({ model }) => model.workers[0]?.state === 'idle');
  return model.workers[0]?.pid as number;
}

test(
  'a call of a coroutine is cancelled at the run timeout: 504, and the worker lives on',
  LIMIT,
  async (t) => {
    const cues = makeCues(t);
    const args = ['--run-timeout', '3s'];
    const server = await startHere(`${APPS}/awaits.py`, { t, env: cues.env, args });
    const pid = await workerOf(server);
    const answer = await ask(server, { do: 'wait' });
    assert.equal(answer.status, 504, answer.text);
    assert.equal(errorOf(answer).code, 'SERVE_INFERENCE_TIMEOUT');
    await cues.untilNoted('cancelled: the run timeout passed');
    assert.equal(await workerOf(server), pid);
    await server.stop();
  },
);

test('an app of coroutines', LIMIT, async (t) => {
  const cues = makeCues(t);
  const server = await startHere(`${APPS}/awaits.py`, { t, env: cues.env, args: ARGS });
  const pid = await pidOf(server);

  await t.test('is cancelled when its client leaves', async () => {
    const leaving = new AbortController();
    const left = ask(server, { do: 'wait' }, { id: 'leaves', signal: leaving.signal });
    await cues.untilNoted('waiting in leaves');
    leaving.abort();
    await assert.rejects(left);
    await cues.untilNoted(/cancelled: the client/);
    assert.equal(await pidOf(server), pid);
  });

  await t.test('has its async generator closed when the reader of its stream leaves', async () => {
    const stream = await openStream(server, { do: 'stream' });
    stream.destroy();
    await cues.untilNoted('stream closed');
    assert.equal(await pidOf(server), pid);
  });

  await t.test('cleans up to the end in an async generator whose reader left while it computed', async () => {
    const stream = await openStream(server, { do: 'compute' });
    stream.destroy();
    await cues.untilNoted('cleaned up');
    assert.equal(await pidOf(server), pid);
  });

  await t.test('prints, logs and measures under the name of its call', async () => {
    await ask(server, { do: 'print' }, { id: 'prints' });
    for (const text of ['before print', 'after print']) await server.untilPrinted(text); // one on each stream
    const lines = [...logLines(server), ...logLines({ stderr: server.stdout })];
    for (const text of ['before print', 'after print']) {
      const line = lines.find(({ msg }) => msg === text);
      assert.equal(line?.['requestId'], 'prints', JSON.stringify(line));
    }
    assert.equal(lines.find(({ msg }) => msg === 'loaded')?.['worker'], 0);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    assert.match(metrics, /^sentences(?:_total)?\{[^}]*language="en"[^}]*\} 2$/m);
  });

  await server.stop();
});

const NO_LEVEL = [undefined, undefined];

test(
  'whatever an app in Python prints with has the id of its call, what it logs its level, and a progress bar is one line',
  LIMIT,
  async (t) => {
    const cues = makeCues(t);
    const server = await startHere(`${APPS}/prints-everywhere.py`, { t, env: cues.env, args: ARGS });
    const ways = ['print', 'logging', 'warnings', 'write', 'libc', 'bar 20%', 'thread'];
    for (const id of ['first', 'second']) {
      const call = ask(server, { says: id, until: `${id} ends` }, { id });
      const printed = (): Record<string, unknown>[] => {
        const lines = [...logLines(server), ...logLines({ stderr: server.stdout })];
        return lines.filter(({ msg }) => String(msg).endsWith(` of ${id}`));
      };
      await eventually(
        () => printed().length === ways.length,
        60_000,
        () => `${server.stdout()}\n${server.stderr()}`,
      );
      assert.deepEqual(
        printed()
          .map(({ msg }) => msg)
          .sort(),
        ways.map((way) => `${way} of ${id}`).sort(),
      );
      for (const { msg, requestId, level, logger } of printed()) {
        const [means = ''] = String(msg).split(' ');
        const expected =
          means === 'logging' ? ['info', 'root'] : means === 'warnings' ? ['warn', 'py.warnings'] : [];
        assert.deepEqual([requestId, level, logger], [id, ...expected, ...NO_LEVEL].slice(0, 3), String(msg));
      }
      cues.give(`${id} ends`);
      assert.equal((await call).status, 200);
    }
    await server.stop();
  },
);

test('an app of plain functions', LIMIT, async (t) => {
  const cues = makeCues(t);
  const server = await startHere(`${APPS}/misbehaves.py`, { t, env: cues.env, args: ARGS });
  const pid = await pidOf(server);

  await t.test('has its generator closed when the reader of its stream leaves', async () => {
    const stream = await openStream(server, { do: 'stream' });
    stream.destroy();
    await cues.untilNoted('stream closed');
    assert.equal(await pidOf(server), pid);
  });

  await t.test('fails a call: 500, its traceback in the log alone', async () => {
    const answer = await ask(server, { do: 'raise' }, { id: 'raises' });
    assert.equal(answer.status, 500);
    assert.doesNotMatch(answer.text, /secret|Traceback/);
    await server.untilPrinted('ValueError: secret');
    const line = logLines(server).find(({ requestId }) => requestId === 'raises');
    assert.match(String(line?.['msg']), /^ValueError: secret.* \(misbehaves\.py:\d+\)$/);
    assert.match(String(line?.['stack']), /misbehaves\.py", line \d+, in inference/);
  });

  await t.test('has a thread that raises: it is logged, and the worker lives on', async () => {
    assert.equal(await pidOf(server, { do: 'thread' }), pid);
    await server.untilPrinted(/the thread loader raised KeyError at \S+misbehaves\.py:\d+/);
  });

  await t.test('calls sys.exit: 500, and the log has the line', async () => {
    const answer = await ask(server, { do: 'exit' });
    assert.deepEqual([answer.status, errorOf(answer).code], [500, 'SERVE_WORKER_LOST']);
    await server.untilPrinted(/sys\.exit\('no more'\) was called at \S+misbehaves\.py:\d+/);
    await pidOf(server);
  });

  await server.stop('SIGINT', 1);
});

test(
  'a value that a call puts into a context variable is seen by its stream, and by no other call',
  LIMIT,
  async (t) => {
    const server = await startHere(`${APPS}/remembers.py`, { t });
    for (const caller of ['Ann', 'Ben']) {
      assert.deepEqual((await ask(server, { caller })).json(), ['init', caller]);
      const { text } = await ask(server, { caller, streams: true });
      assert.equal(text, `{"before":"init"}\n{"then":"${caller}"}\n`);
    }
    await server.stop();
  },
);

test('an app of plain functions, at the run timeout', LIMIT, async (t) => {
  const cues = makeCues(t);
  const args = ['--run-timeout', '3s'];
  const server = await startHere(`${APPS}/misbehaves.py`, { t, env: cues.env, args, expectedRestarts: 2 });

  await t.test('sees the cancellation and may obey: the worker lives on', async () => {
    const pid = await workerOf(server);
    const answer = await ask(server, { do: 'obey' });
    assert.equal(answer.status, 504, answer.text);
    await cues.untilNoted('cancelled: the run timeout passed');
    assert.equal(await workerOf(server), pid);
  });

  for (const [i, what] of ['hold the GIL', 'spin'].entries()) {
    await t.test(`does not listen (${what}): its worker is killed, and the next call answered`, async () => {
      const before = await workerOf(server);
      const answer = await ask(server, { do: what });
      assert.equal(answer.status, 504, answer.text);
      assert.notEqual(await pidOf(server), before);
      const { model } = await server.status();
      assert.equal(model.workers[0]?.restarts, i + 1);
    });
  }

  await server.stop();
});
