/** Errors of apps in Python alone; app-mistakes.test.ts has those that apps in every language have. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { call, runCommand, type Answer } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import { appFolder } from '../worker/app-folder.js';

const GOOD = 'def inference(model_inputs): return 1\n';

test(
  'an import that takes nearly as long as --init-timeout logs the line at which it is',
  { timeout: 240_000, skip: needs('python3') },
  async (t) => {
    const source = `import time\nwhile True:\n    time.sleep(0.01)\n${GOOD}`;
    const cwd = appFolder(t, { 'app.py': source });
    const server = await startHere('app.py', { t, cwd, args: ['--init-timeout', '12s'] });
    await server.untilPrinted(
      /WARN: not ready yet, with \d\.\d s left \(--init-timeout\): it is at \S+app\.py:[23] .*"worker":0/,
    );
    server.process.kill('SIGKILL'); // what is left of its time is not the subject
  },
);

test(
  'a start that hangs in native code is reported with its line in the error of --init-timeout',
  { timeout: 240_000, skip: needs('python3') },
  async (t) => {
    const source = `import ctypes\ndef init():\n    ctypes.PyDLL(None).sleep(1000)\n${GOOD}`;
    const cwd = appFolder(t, { 'app.py': source });
    const server = await startHere('app.py', {
      t,
      cwd,
      args: ['--init-timeout', '12s'], // it hangs long before another thread would look, after 7 s
      expectedRestarts: 1,
    });
    await server.untilPrinted(
      /not ready within 12 s \(--init-timeout\), still running init[^\n]*\. It hung at \S+app\.py:3, while native code held the GIL\. Load less/,
    );
    await server.stop('SIGINT', (await server.status()).model.workers[0]?.restarts ?? 0);
  },
);

test(
  'an import that the network or a resource failed, or that exits, is tried again',
  { timeout: 240_000, skip: needs('python3') },
  async (t) => {
    for (const [cause, said] of [
      ['raise ConnectionRefusedError(111, "refused")', /app\.py:3: importing the app raised:/],
      [
        'sys.exit("no weights yet")',
        /app\.py:3: importing the app called sys\.exit and said: no weights yet\./,
      ],
    ] as const) {
      const cwd = appFolder(t, {
        'app.py': `import os, sys\nif not os.path.exists(os.path.dirname(__file__) + "/there"):\n    ${cause}\n${GOOD}`,
      });
      const server = await startHere(join(cwd, 'app.py'), { t });
      await server.until(({ model }) => (model.workers[0]?.restarts ?? 0) >= 2);
      writeFileSync(join(cwd, 'there'), '');
      assert.equal((await call(server.url, '{}')).text, '1');
      assert.match(server.stderr(), said);
      await server.stop('SIGINT', (await server.status()).model.workers[0]?.restarts ?? 0);
    }
  },
);

test(
  'an init of Potassium that returns nothing is reported with its line, and no frame of ours',
  { timeout: 240_000, skip: needs('python3') },
  async (t) => {
    const source =
      'from potassium import Potassium\napp = Potassium("x")\n@app.init\ndef init():\n    pass\n';
    const command = runCommand(['app.py', '--port', '0', '--host', '127.0.0.1'], {
      t,
      cwd: appFolder(t, { 'app.py': source }),
    });
    assert.equal((await command.ended).code, 3);
    assert.match(
      command.stderr(),
      /app\.py:3: init raised: TypeError: Potassium init\(\) must return a dictionary.* it returned None/,
    );
    assert.doesNotMatch(command.stderr(), /banana_worker/);
  },
);

const UNCALLED = `import functools
from potassium import Potassium, Request, Response
app = Potassium("x")

@app.handler("/dict")
def answers_dict(context, request):
    return {"a": 1}

@app.handler("/later")
async def answers_later(context, request):
    return None

@app.handler("/cached")
@functools.lru_cache()
def cached(context, request):
    return Response(json={})
`;

const LOGS_DEEP = `
def inference(depth, ctx):
    ctx.log.info("deeper")
    try:
        return inference(depth + 1, ctx)
    except RecursionError:
        return "deep enough"
`;

const PANICS = `
class Panic(BaseException):
    """As a library in Rust raises it."""

class Frame:
    def to_dicts(self):
        raise Panic("out of range")

def inference_batch(inputs):
    return [Frame() if one == "panics" else one for one in inputs]

config = {"batchSize": 3, "maxBatchDelay": "20s"}
`;

const CLOSES = `
import sys

def inference(closes):
    print("last words")
    print("last words", file=sys.stderr)
    if closes:
        sys.stdout.close()
        sys.stderr.detach()
    return closes
`;

describe('on one server', { timeout: 240_000, skip: needs('python3') }, () => {
  const sources = { uncalled: UNCALLED, deep: LOGS_DEEP, panics: PANICS, closes: CLOSES };
  const files = Object.entries(sources).map(([name, source]) => [`${name}.py`, source] as const);
  const cwd = appFolder({ after }, Object.fromEntries<string>(files));
  const models = Object.keys(sources).flatMap((name) => ['--model', `${name}=${name}.py`]);
  const shared = shareHere(null, {
    cwd,
    args: [...models, '--log-format', 'json', '--run-timeout', '10s'],
  });
  const ask = (path: string, input: string): Promise<Answer> =>
    call(`${shared.server.url}/models/${path}`, input);

  test('a mistake at the border of an app in Python is reported with the line of its function, and no frame of ours', async () => {
    for (const [path, said] of [
      ['dict', /uncalled\.py:5\)?: TypeError: Potassium Response object not returned: .* a dict; write/],
      ['later', /uncalled\.py:9\)?: TypeError: Potassium Response object not returned: .* None; write/],
      ['cached', /uncalled\.py:13\)?: TypeError: unhashable type: 'dict'/],
    ] as const) {
      assert.equal((await ask(`uncalled/${path}`, '{}')).status, 500);
      await shared.server.untilPrinted(said);
    }
    assert.doesNotMatch(shared.server.stderr(), /banana_worker/);
  });

  test('an app in Python that logs until its stack is used up is answered, and so is the next call', async () => {
    for (let calls = 0; calls < 2; calls += 1) {
      const { status, text } = await ask('deep/', '0');
      assert.deepEqual([status, text], [200, '"deep enough"']);
    }
  });

  test('an entry of a batch that raises as it is encoded, and raises no Exception, fails its call alone', async () => {
    const answers = await Promise.all(['"a"', '"panics"', '"b"'].map((input) => ask('panics/', input)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 500, 200],
    );
    await shared.server.untilPrinted('Panic: out of range');
  });

  test('an app in Python that closes what it prints to answers the calls after that', async () => {
    for (const [input, status] of [
      ['true', 200],
      ['false', 500],
      ['false', 500],
    ] as const)
      assert.equal((await ask('closes/', input)).status, status);
    await shared.server.untilPrinted('I/O operation on closed file');
  });
});
