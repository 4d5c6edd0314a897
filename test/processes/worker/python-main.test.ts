/** The promises of the Python worker that are its own, over bare frames; those of every worker are in test/wire. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printMark } from '../../../protocol/wire/print-mark.js';
import { makeCudaDriver } from '../../helpers/cuda-driver.js';
import { needs } from '../../helpers/needs.js';
import { startReceiver } from '../../helpers/receiver.js';
import { eventually } from '../../helpers/server.js';
import { callWith } from '../../worker/calls.js';
import { pythonWorkerOf, startedPython } from './python-process.js';
import { ownCode } from './version-sensitive.js';
import type { WorkerProcess } from './worker-process.js';

const OPTIONS = { timeout: 240_000, skip: needs('python3') };
const OWN_CODE = ownCode(OPTIONS);

const types = (worker: WorkerProcess): string[] => worker.received.map(({ message }) => message.type);

test(
  'a Python worker has the kernel take as much of an answer as the system lets it, up to a megabyte',
  OWN_CODE,
  async (t) => {
    const worker = await startedPython(
      t,
      `import os, socket
def inference(model_inputs):
    mine, _ = socket.socketpair()
    mine.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1024 * 1024)
    with socket.socket(fileno=os.dup(3)) as up:
        return [one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) for one in (mine, up)]`,
    );
    worker.callJson(1, null);
    const [most, itsOwn] = (await worker.answer()) as [number, number];
    assert.equal(itsOwn, most);
  },
);

for (const kind of ['generator', 'async generator'] as const) {
  test(
    `a stream stays within its credit, and its ${kind} is closed when the client leaves`,
    OPTIONS,
    async (t) => {
      const worker = await startedPython(
        t,
        `kept = []
${kind === 'generator' ? 'def' : 'async def'} numbers():
    try:
        for n in range(1000): yield {"n": n}
    finally:
        print("closed", flush=True)
def inference(model_inputs):
    kept.append(numbers())  # Python closes one without references by itself
    return kept[0]`,
        { limits: { maxOutputBytes: 1000, streamWindowBytes: 1 } },
      );
      worker.callJson(1, null);
      assert.equal((await worker.next('head')).message.status, 200);
      assert.equal((await worker.next('chunk')).body.toString(), '{"n":0}\n');
      worker.send({ type: 'credit', id: 1, bytes: 8 });
      assert.equal((await worker.next('chunk')).body.toString(), '{"n":1}\n');
      worker.send({ type: 'cancel', id: 1, reason: 'the client left' });
      assert.equal((await worker.next('error')).message.code, 'SERVE_CANCELLED');
      worker.send({ type: 'stop', graceMs: 1000 });
      assert.equal((await worker.exit).code, 0);
      assert.equal(await worker.stdout, 'closed\n');
    },
  );
}

test('a close by another thread ends the wait for a silent client', OPTIONS, async (t) => {
  const worker = await startedPython(
    t,
    `import threading
from potassium import Potassium
app = Potassium("closes")
@app.init
def init(): return {}
@app.websocket("/talk")
def talk(context, request):
    assert request.ws.receive() == "begin"
    threading.Timer(0.05, request.ws.close).start()
    assert request.ws.receive() is None`,
  );
  worker.call(1, Buffer.alloc(0), { route: '/talk', path: '/talk', format: 'websocket' });
  await worker.next('credit');
  worker.send({ type: 'data', id: 1, text: true, last: true }, Buffer.from('begin'));
  assert.equal((await worker.next('close')).message.id, 1);
  assert.equal((await worker.next('end')).message.id, 1);
});

test(
  'the coroutine of a WebSocket is cancelled, and may still receive earlier messages, then the end',
  OPTIONS,
  async (t) => {
    const worker = await startedPython(
      t,
      `import asyncio
from potassium import Potassium
app = Potassium("hears")
@app.init
def init(): return {}
@app.websocket("/talk")
async def talk(context, request):
    request.log.info("begun")
    try: await asyncio.sleep(3600)
    except asyncio.CancelledError: print("cancelled")
    print(await request.ws.receive(), await request.ws.receive(), flush=True)
    try: await request.ws.send("too late")
    except ConnectionError: print("closed", flush=True)`,
    );
    worker.call(1, Buffer.alloc(0), { route: '/talk', path: '/talk', format: 'websocket' });
    await worker.next('credit');
    worker.send({ type: 'data', id: 1, text: true, last: true }, Buffer.from('said'));
    await worker.next('log'); // a coroutine that is cancelled before its first step never runs
    worker.send({ type: 'cancel', id: 1, reason: 'the run timeout passed' });
    assert.equal((await worker.next('error')).message.code, 'SERVE_CANCELLED');
    worker.send({ type: 'stop', graceMs: 1000 });
    assert.equal((await worker.exit).code, 0);
    assert.equal(await worker.stdout, 'cancelled\nsaid None\nclosed\n');
  },
);

test('async streams of a batch do not wait for each other', OWN_CODE, async (t) => {
  const worker = await startedPython(
    t,
    `async def stream(name):
    for n in range(3): yield "%s%d" % (name, n)
def inference(model_inputs): return model_inputs
def inference_batch(inputs, ctxs): return [stream(name) for name in inputs]`,
    { limits: { maxOutputBytes: 1000, streamWindowBytes: 1 } },
  );
  const calls = [1, 2].map((id) => callWith({ id, bodyBytes: 3 }));
  worker.send({ type: 'call', calls, inlineBytes: [3, 3], batch: 1, last: true }, Buffer.from('"a""b"'));
  const first = [await worker.next('chunk'), await worker.next('chunk')];
  assert.deepEqual(first.map(({ body }) => body.toString()).sort(), ['a0', 'b0']);
  for (const id of [2, 1]) {
    worker.send({ type: 'credit', id, bytes: 1000 });
    assert.equal((await worker.next('end')).message.id, id);
  }
});

for (const [kind, last] of [
  ['generators', ''],
  ['generators beside an async one', 'and an async one'],
] as const) {
  test(`${kind} of a batch take turns, also with fast clients`, OWN_CODE, async (t) => {
    const worker = await startedPython(
      t,
      `def stream(name):
    for n in range(3): yield "%s%d" % (name, n)
async def later():
    for _ in (): yield
def inference(model_inputs): return model_inputs
def inference_batch(inputs, ctxs): return [stream("a"), stream("b"), later() if inputs[2] else iter(())]`,
    );
    const calls = [1, 2, 3].map((id) => callWith({ id, bodyBytes: 3 }));
    const bodies = `"a""b"${last === '' ? '"" ' : '"c"'}`;
    worker.send({ type: 'call', calls, inlineBytes: [3, 3, 3], batch: 1, last: true }, Buffer.from(bodies));
    const chunks: string[] = [];
    while (chunks.length < 6) chunks.push((await worker.next('chunk')).body.toString());
    assert.deepEqual(chunks, ['a0', 'b0', 'a1', 'b1', 'a2', 'b2']);
    for (const _ of calls) await worker.next('end');
  });
}

const HAS_CALLER = `from contextvars import ContextVar
caller = ContextVar("caller", default="nobody")
config = {"repeatable": True}
def inference(model_inputs):
    before = caller.get()
    caller.set(model_inputs)
    return before
def stream(name):
    caller.set(name)
    yield "first"
    yield caller.get()
`;

test('the streams of a batch have contexts of their own', OPTIONS, async (t) => {
  const batch = 'def inference_batch(inputs, ctxs): return [stream("a"), stream("b")]';
  const worker = await startedPython(t, HAS_CALLER + batch);
  sendPair(worker);
  const chunks: string[] = [];
  while (chunks.length < 4) chunks.push((await worker.next('chunk')).body.toString());
  assert.deepEqual(chunks, ['first', 'first', 'a', 'b']);
});

test('calls that run alone, since their batch raised, have contexts of their own', OWN_CODE, async (t) => {
  const batch = 'def inference_batch(inputs, ctxs): raise ValueError("one of them")';
  const worker = await startedPython(t, HAS_CALLER + batch);
  sendPair(worker);
  assert.deepEqual([await worker.answer(), await worker.answer()], ['nobody', 'nobody']);
});

for (const [what, stream] of [
  ['a stream', 'def told():'],
  ['an async stream', 'async def told():'],
] as const) {
  for (const [whose, functions] of [
    ['a coroutine', 'async def inference(model_inputs): return told_of(model_inputs)'],
    [
      'calls that run alone, since their batch raised,',
      'def inference(model_inputs): return told_of(model_inputs)',
    ],
  ] as const) {
    test(`${what} of ${whose} sees what its call has put into a context variable`, OPTIONS, async (t) => {
      const worker = await startedPython(
        t,
        `${HAS_CALLER}
${stream}
    yield caller.get()
def told_of(name):
    caller.set(name)
    return told()
${functions}
def inference_batch(inputs, ctxs): raise ValueError("one of them")`,
      );
      worker.callJson(1, 'a');
      assert.equal((await worker.next('chunk')).body.toString(), 'a');
      const calls = [2, 3].map((id) => callWith({ id, bodyBytes: 3 }));
      worker.send({ type: 'call', calls, inlineBytes: [3, 3], batch: 2, last: true }, Buffer.from('"b""c"'));
      const chunks = [await worker.next('chunk'), await worker.next('chunk')];
      assert.deepEqual(chunks.map(({ body }) => body.toString()).sort(), ['b', 'c']);
    });
  }
}

for (const [kind, init] of [
  ['plain', 'def init(): caller.set("init")'],
  ['async', 'async def init(): caller.set("init")'],
] as const) {
  test(
    `a call sees what the ${kind} init has put into a context variable, and not what the example has`,
    OPTIONS,
    async (t) => {
      const worker = await startedPython(t, `${HAS_CALLER}example = "the example"\n${init}`);
      for (const id of [1, 2]) {
        worker.callJson(id, 'a');
        assert.equal(await worker.answer(), 'init');
      }
    },
  );
}

test('the arguments of the first coroutine of a worker are released', OPTIONS, async (t) => {
  const worker = await startedPython(
    t,
    `${HAS_CALLER}
import weakref
class Large: pass
seen = []
async def later(): return None
def inference(model_inputs):
    if model_inputs == "gone": return [one() is None for one in seen]
    large = Large()
    seen.append(weakref.ref(large))
    caller.set(large)
    return later()`,
  );
  for (const [id, input, expected] of [
    [1, 'first', null],
    [2, 'second', null],
    [3, 'gone', [true, true]],
  ] as const) {
    worker.callJson(id, input);
    assert.deepEqual(await worker.answer(), expected);
  }
});

const LIMITED = `import asyncio, signal
def limit(*_): raise TimeoutError("too slow")
signal.signal(signal.SIGALRM, limit)
def set_limit(): signal.setitimer(signal.ITIMER_REAL, 0.05)
`;

test('a worker whose signal handler ends a wait still receives messages of its front', OPTIONS, async (t) => {
  // The signal comes once the main thread waits, not on its way there: it would end an import, or a frame half written.
  // One that comes just before the wait begins is seen by Python behind it only, so it is repeated until it is handled.
  const worker = await startedPython(
    t,
    `import signal, sys, threading, time
from banana_worker.process.listener import WakePipe
from potassium import send_webhook
struck = threading.Event()
def limit(*_):
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    struck.set()
    raise TimeoutError("too slow")
signal.signal(signal.SIGALRM, limit)
main = threading.get_ident()
def strike():
    while sys._current_frames()[main].f_code is not WakePipe.wait.__code__: time.sleep(0.001)
    while not struck.wait(0.01): signal.pthread_kill(main, signal.SIGALRM)
def inference(model_inputs, ctx):
    try:
        threading.Thread(target=strike).start()
        send_webhook("http://127.0.0.1:9/", 1, wait=True)
    except TimeoutError: ctx.log.info("too slow")
    ctx.wait_cancelled()
    return ctx.cancel_reason`,
  );
  worker.callJson(1, null);
  await worker.next('log');
  worker.send({ type: 'cancel', id: 1, reason: 'the client left' });
  assert.equal(await worker.answer(), 'the client left');
});

test('a coroutine that a signal handler ends goes on no more', OPTIONS, async (t) => {
  const worker = await startedPython(
    t,
    `${LIMITED}ended = []
async def inference(model_inputs):
    if model_inputs == "next": return ended
    try:
        set_limit()
        await asyncio.sleep(1000)
    finally: ended.append(1)`,
  );
  worker.callJson(1, null);
  assert.match((await worker.next('error')).message.detail, /TimeoutError: too slow/);
  worker.callJson(2, 'next');
  assert.deepEqual(await worker.answer(), [1]);
});

/** Reading is Python code of the worker's own, and a signal comes in behind it, on the main thread, once the app allows it. */
const STRUCK = `import asyncio, functools, os, signal, threading
from banana_worker.protocol import frame
from potassium import send_webhook
class Limit(BaseException): pass
def limit(*_): raise Limit("too slow")
signal.signal(signal.SIGALRM, limit)
strikes, main = [], threading.get_ident()
exec(compile("""def readv(fd, buffers, read=os.readv):
    count = read(fd, buffers)
    if strikes and threading.get_ident() == main: strikes.pop()()
    return count""", frame.__file__, "exec"))
os.readv = readv
def strike_once(number): strikes.append(functools.partial(signal.raise_signal, number))
`;

const LIMITED_WAITS = [
  [
    'a coroutine',
    'async def inference(model_inputs):',
    'await asyncio.sleep(1000)',
    async (worker: WorkerProcess): Promise<void> => {
      const { message } = await worker.next('error');
      assert.equal(message.id, 1);
      assert.match(message.detail, /Limit: too slow|KeyboardInterrupt/);
    },
  ],
  [
    'a wait for a webhook',
    'def inference(model_inputs):',
    'send_webhook("http://127.0.0.1:9/", 1, wait=True)',
    async (worker: WorkerProcess): Promise<void> => {
      assert.equal(await worker.answer(), 'the limit');
    },
  ],
] as const;

for (const [what, head, wait, assertEnds] of LIMITED_WAITS)
  for (const signal of ['SIGALRM', 'SIGINT'])
    test(
      `${signal} that ends ${what} in the moment in which a call comes in costs no other call`,
      OPTIONS,
      async (t) => {
        const worker = await startedPython(
          t,
          `${STRUCK}${head}
    if model_inputs: return model_inputs
    strike_once(signal.${signal})
    try: ${wait}
    except (Limit, KeyboardInterrupt): return "the limit"`,
        );
        worker.callJson(1, null);
        let last = 1;
        const calls = setInterval(() => worker.callJson(++last, last), 10);
        await assertEnds(worker).finally(() => clearInterval(calls));
        for (let id = 2; id <= last; id++) assert.equal(await worker.answer(), id);
        worker.send({ type: 'stop', graceMs: 1000 });
        assert.deepEqual(await worker.exit, { code: 0, signal: null });
        assert.equal(await worker.stderr, '');
      },
    );

for (const [kind, stream] of [
  ['generators', 'def stream():\n    set_limit()\n    while True: yield "x" * 1000'],
  ['async generators', 'async def stream():\n    set_limit()\n    yield "x"\n    await asyncio.sleep(1000)'],
] as const) {
  test(
    `a signal handler that raises while ${kind} of a batch wait fails their calls alone`,
    OWN_CODE,
    async (t) => {
      const worker = await startedPython(
        t,
        `${LIMITED}${stream}
def inference(model_inputs): return model_inputs
def inference_batch(inputs, ctxs): return [stream() for _ in inputs]`,
        { limits: { maxOutputBytes: 1000, streamWindowBytes: 100 } },
      );
      const calls = [1, 2].map((id) => callWith({ id, bodyBytes: 1 }));
      worker.send({ type: 'call', calls, inlineBytes: [1, 1], batch: 1, last: true }, Buffer.from('12'));
      for (const _ of calls)
        assert.equal((await worker.next('error')).message.code, 'SERVE_INFERENCE_FAILED');
      worker.callJson(3, 'next');
      assert.equal(await worker.answer(), 'next');
    },
  );
}

test('streams of a batch without waiting clients do not begin', OWN_CODE, async (t) => {
  const worker = await startedPython(
    t,
    `import asyncio
async def stream():
    await asyncio.sleep(1000)
    yield "never"
async def inference(model_inputs): return model_inputs
def inference_batch(inputs, ctxs):
    for ctx in ctxs: ctx.wait_cancelled()
    return [stream() for _ in inputs]`,
  );
  const calls = [1, 2].map((id) => callWith({ id, bodyBytes: 1 }));
  worker.send({ type: 'call', calls, inlineBytes: [1, 1], batch: 1, last: true }, Buffer.from('12'));
  await worker.untilBegun(2);
  for (const { id } of calls) worker.send({ type: 'cancel', id, reason: 'the client left' });
  for (const _ of calls) assert.equal((await worker.next('error')).message.code, 'SERVE_CANCELLED');
  worker.callJson(3, 'next');
  assert.equal(await worker.answer(), 'next');
  worker.send({ type: 'stop', graceMs: 1000 });
  await worker.exit;
  assert.equal(await worker.stderr, '');
});

test('stop lets a running coroutine finish, and runs shutdown and what atexit has', OWN_CODE, async (t) => {
  const worker = await startedPython(
    t,
    `import asyncio, atexit
atexit.register(lambda: print("at exit"))
async def inference(model_inputs, ctx):
    while not ctx.cancelled: await asyncio.sleep(0.001)
    return ctx.cancel_reason
def shutdown(): print("shut down")`,
  );
  worker.callJson(1, null);
  await worker.untilBegun(1);
  worker.send({ type: 'stop', graceMs: 1000 });
  assert.equal(await worker.answer(), 'the server is stopping');
  assert.deepEqual(await worker.exit, { code: 0, signal: null });
  assert.equal(await worker.stdout, 'shut down\nat exit\n');
});

for (const end of ['os._exit(7)', 'sys.exit(7)'])
  test(
    `an app that ends its worker by ${end} when it is asked to stop has not failed`,
    OWN_CODE,
    async (t) => {
      const worker = await startedPython(
        t,
        `import os, sys
def inference(model_inputs): return 1
def shutdown(): ${end}`,
      );
      worker.send({ type: 'stop', graceMs: 1000 });
      assert.deepEqual(await worker.exit, { code: 7, signal: null });
      assert.deepEqual(types(worker), [], 'it says nothing of it');
    },
  );

test('an error of shutdown is logged, also if it is not an Exception', OWN_CODE, async (t) => {
  const source = `def inference(model_inputs): return 1
def shutdown(): raise BaseException("not saved")`;
  const worker = await startedPython(t, source);
  worker.send({ type: 'stop', graceMs: 1000 });
  assert.match(
    await worker.stderr,
    /^shutdown raised: Traceback.*\n.*app\.py", line 2, in shutdown[^]*BaseException: not saved\n$/,
  );
  assert.deepEqual(await worker.exit, { code: 1, signal: null });
  assert.deepEqual(types(worker), []);
});

const SLOW_STARTS = [
  ['import time\ntime.sleep(1000)', /: it is at \S+app\.py:2$/],
  ['import queue\ndef init():\n    queue.Queue().get()', /: it is at \S+app\.py:3, in \w+ of \S+\.py:\d+$/],
  [
    'import asyncio\nasync def init():\n    await asyncio.sleep(1000)',
    /: it is at \S+app\.py:3, and awaits something$/,
  ],
] as const;

test('a Python worker that has little time left to start reports the line it is at', OWN_CODE, async (t) => {
  const placeAfter = async (source: string, readyWithinMs: number): Promise<string> => {
    const { worker, app } = pythonWorkerOf(t, `${source}\ndef inference(model_inputs): pass`);
    await worker.next('hello');
    worker.sendStart(app, { readyWithinMs });
    const { message } = (await worker.next('log')).message;
    worker.send({ type: 'stop', graceMs: 1000 });
    await worker.exit;
    return message;
  };
  const told = SLOW_STARTS.map(async ([source, place]) => {
    let message = await placeAfter(source, 8000);
    assert.match(message, /^not ready yet, with 4\.0 s left \(--init-timeout\): /);
    // A slow machine has not come to that line by then.
    for (let ms = 16_000; !place.test(message) && ms <= 64_000; ms *= 2)
      message = await placeAfter(source, ms);
    assert.match(message, place);
  });
  await Promise.all(told);
});

/** Code that keeps all threads of Python from running. */
const HANG = 'import ctypes\nctypes.PyDLL(None).sleep(1000)';

test('a start in Python that hangs in native code leaves its place behind the note', OPTIONS, async (t) => {
  const leftAfter = async (readyWithinMs: number): Promise<string> => {
    const { worker, app } = pythonWorkerOf(t, `${HANG}\ndef inference(model_inputs): pass`);
    await worker.next('hello');
    worker.sendStart(app, { readyWithinMs });
    const isToldByThread = (): boolean => types(worker).includes('log');
    await eventually(
      () => /^ {2}File .*__main__.py", line \d+ in <module>$/m.test(worker.left) || isToldByThread(),
      60_000,
      () => `it left: ${worker.left}`,
    );
    return worker.left;
  };
  // A slow machine may not have come to that line when another thread looks, 5 s before the time is over, or the watchdog does.
  const isInApp = (left: string): boolean => /app\.py", line 2 in <module>\n/.test(left);
  let left = await leftAfter(10_000);
  for (let ms = 20_000; !isInApp(left) && ms <= 40_000; ms *= 2) left = await leftAfter(ms);
  assert.ok(isInApp(left), left);
});

test('an app in Python may use the watchdog of faulthandler itself while it starts', OPTIONS, async (t) => {
  const source = `import faulthandler, os, tempfile, time
file = tempfile.TemporaryFile()
faulthandler.dump_traceback_later(0.05, repeat=True, file=file)
def inference(model_inputs):
    size = os.fstat(file.fileno()).st_size
    while os.fstat(file.fileno()).st_size == size:
        time.sleep(0.01)
    faulthandler.cancel_dump_traceback_later()`;
  const worker = await startedPython(t, source, { readyWithinMs: 1e9 });
  worker.callJson(1, null);
  assert.equal(await worker.answer(), null);
  assert.equal(worker.left, '');
});

test('a child that a starting app in Python forks may use the watchdog, too', OPTIONS, async (t) => {
  const source = `import faulthandler, os
child = os.fork()
if child == 0:
    faulthandler.cancel_dump_traceback_later()
    faulthandler.dump_traceback_later(1000)
    os._exit(7)
code = os.WEXITSTATUS(os.waitpid(child, 0)[1])
def inference(model_inputs): return code`;
  const worker = await startedPython(t, source, { readyWithinMs: 1e9 });
  worker.callJson(1, null);
  assert.equal(await worker.answer(), 7);
});

test(
  'a child that a starting app in Python forks gets no watchdog when it forks again',
  OPTIONS,
  async (t) => {
    const source = `import os
child = os.fork()
if child == 0:
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(0)
    os.waitpid(grandchild, 0)
    os._exit(len(os.listdir("/proc/self/task")))
threads = os.WEXITSTATUS(os.waitpid(child, 0)[1])
def inference(model_inputs): return threads`;
    const worker = await startedPython(t, source, { readyWithinMs: 1e9 });
    worker.callJson(1, null);
    assert.equal(await worker.answer(), 1);
  },
);

test('a Python worker that has started is not watched any more', OPTIONS, async (t) => {
  const source = `import threading
def inference(model_inputs):
    for thread in threading.enumerate():
        if thread.name == "banana-serve start watch": thread.join()
    return 1`;
  const worker = await startedPython(t, source, { readyWithinMs: 1e9 });
  worker.callJson(1, null);
  assert.equal(await worker.answer(), 1);
  worker.send({ type: 'stop', graceMs: 1000 });
  await worker.exit;
});

for (const [what, source] of [
  ['busy in Python', 'def inference(model_inputs):\n    while True: pass'],
  ['busy with a coroutine', 'import asyncio\nasync def inference(model_inputs): await asyncio.sleep(1000)'],
] as const) {
  test(
    `a Python worker that is ${what} dies with its front, and so do the programs it started`,
    OWN_CODE,
    async (t) => {
      const worker = await startedPython(
        t,
        `import subprocess\nsubprocess.Popen(["sleep", "1000"])\n${source}`,
      );
      worker.callJson(1, null);
      await worker.untilBegun(1);
      worker.leave();
      assert.deepEqual(await worker.exit, { code: null, signal: 'SIGKILL' });
      await worker.stdout; // ends only when the last process that holds it is gone
    },
  );
}

test(
  'an idle Python worker dies with its front also while a task of the app keeps the event loop to itself',
  OPTIONS,
  async (t) => {
    const worker = await startedPython(
      t,
      `import asyncio, time
async def init():
    global loop
    loop = asyncio.get_running_loop()
def block(log):
    time.sleep(0.1)  # the other thread sleeps by then, on most machines
    log.info("blocked")
    time.sleep(1000)
def inference(model_inputs, ctx): loop.call_soon(block, ctx.log)`,
    );
    worker.callJson(1, null);
    assert.equal(await worker.answer(), null);
    await worker.next('log');
    worker.leave();
    assert.deepEqual(await worker.exit, { code: null, signal: 'SIGKILL' });
  },
);

test(
  'processes of every kind that an app starts hold none of the descriptors, and their ends disturb nothing',
  OPTIONS,
  async (t) => {
    const receiver = await startReceiver(t);
    const worker = await startedPython(
      t,
      `import multiprocessing, os, subprocess, sys, tempfile
PROBE = "for fd in 3 4 5; do [ -e /dev/fd/$fd ] && echo $fd; done; true"

def identity(fd):
    try: at = os.fstat(fd)
    except OSError: return None
    return (at.st_dev, at.st_ino)

URL = ${JSON.stringify(receiver.url)}
OWN = [identity(fd) for fd in (3, 4, 5)]

def held(own):
    return [fd for fd in range(256) if identity(fd) in own]

def opens_files(own):
    files = [tempfile.TemporaryFile() for _ in range(4)]
    return [len({file.fileno() for file in files} & {3, 4, 5}), held(own)]

def sends(url):
    from potassium import send_webhook
    files = [tempfile.TemporaryFile() for _ in range(4)]
    for wait in (True, False): send_webhook(url, {"wait": wait}, wait=wait)
    return len(files)

def in_fork(end):
    out, inlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(inlet, repr(held(OWN)).encode())
        end()
    os.close(inlet)
    with os.fdopen(out) as pipe: text = pipe.read()
    return [text, os.WEXITSTATUS(os.waitpid(child, 0)[1])]

def inference(kind, ctx):
    if kind == "subprocess": return subprocess.check_output(["sh", "-c", PROBE]).decode()
    if kind == "system":  # which closes nothing by itself, as the libraries of other languages
        with tempfile.NamedTemporaryFile() as found:
            os.system("{ %s; } > %s" % (PROBE, found.name))
            return found.read().decode()
    if kind in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(kind).Pool(1) as pool:
            return [pool.apply(held, (OWN,)), pool.apply(sends, (URL,))]
    if kind == "files": return in_fork(lambda: os._exit(opens_files(OWN) == [0, []]))
    if kind == "webhook": return in_fork(lambda: os._exit(sends(URL)))
    if kind == "end of file":
        from banana_worker.process import ending
        return in_fork(ending.die_with_front)
    if kind == "_exit": return in_fork(lambda: os._exit(3))
    if kind == "exit": return in_fork(lambda: sys.exit(4))
    if kind == "raise": return in_fork(lambda: 1 / 0)
    if kind == "log": return in_fork(lambda: (ctx.log.info("from a child"), os._exit(0)))
    child = os.fork()
    return "the child's" if child == 0 else os.WEXITSTATUS(os.waitpid(child, 0)[1])`,
    );
    const answers: Record<string, unknown> = {};
    let id = 0;
    const kinds = ['subprocess', 'system', 'fork', 'spawn', 'forkserver', 'files', 'webhook', 'end of file'];
    for (const kind of [...kinds, '_exit', 'exit', 'raise', 'log', 'back']) {
      worker.callJson((id += 1), kind);
      answers[kind] = await worker.answer();
    }
    assert.deepEqual(answers, {
      subprocess: '',
      system: '',
      fork: [[], 4],
      spawn: [[], 4],
      forkserver: [[], 4],
      files: ['[]', 1],
      webhook: ['[]', 4],
      'end of file': ['[]', 1],
      _exit: ['[]', 3],
      exit: ['[]', 4],
      raise: ['[]', 1],
      log: ['[]', 0],
      back: 0,
    });
    assert.deepEqual(types(worker), [], 'nothing but answers');
    const sent = receiver.arrivals.map(({ body }) => body.toString()).sort();
    const four = (text: string): string[] => Array.from({ length: 4 }, () => text);
    assert.deepEqual(
      sent,
      [...four('{"wait":false}'), ...four('{"wait":true}')],
      'from where they were sent',
    );
    worker.send({ type: 'stop', graceMs: 1000 });
    assert.deepEqual(await worker.exit, { code: 0, signal: null });
    assert.equal(
      (await worker.stderr).split('This process was started by the app: it sends a webhook once').length,
      9,
    );
  },
);

test(
  'with a print mark, each print of a Python app is marked with its call, in coroutines and tasks too',
  OPTIONS,
  async (t) => {
    const worker = await startedPython(
      t,
      `import asyncio, sys
print("import")
async def inference(model_inputs):
    print("in", model_inputs)
    print("warned", model_inputs, file=sys.stderr)
    if model_inputs == 1: asyncio.ensure_future(later())
    await asyncio.sleep(0)
    print("end", model_inputs)
    return 1
async def later():
    while True:
        await asyncio.sleep(0.01)
        if go: print("later"); return
go = []
async def shutdown():
    go.append(1)
    await asyncio.sleep(0.1)
    print("shut down")`,
      { printMark: 'k3j9' },
    );
    worker.callJson(1, 1);
    worker.callJson(2, 2);
    await worker.answer();
    await worker.answer();
    worker.send({ type: 'stop', graceMs: 1000 });
    assert.equal((await worker.exit).code, 0);
    const mark = (id: string): string => printMark('k3j9', id);
    assert.equal(
      await worker.stdout,
      `import\n${mark('r1')}in 1\nend 1\n${mark('')}${mark('r2')}in 2\nend 2\n${mark('r1')}later\n${mark('')}shut down\n`,
    );
    assert.equal(await worker.stderr, `${mark('r1')}warned 1\n${mark('')}${mark('r2')}warned 2\n`);
  },
);

test(
  'the tasks of an app go on between its calls, and the loop of init is the loop of calls',
  OPTIONS,
  async (t) => {
    const worker = await startedPython(
      t,
      `import asyncio
ticks = 0
async def tick():
    global ticks
    while True:
        await asyncio.sleep(0.001)
        ticks += 1
async def init():
    global loop, task
    loop = asyncio.get_running_loop()
    task = loop.create_task(tick())
async def inference(model_inputs):
    return [ticks, asyncio.get_running_loop() is loop]`,
    );
    const seen = [];
    for (let id = 1; id <= 2 || (seen[0] as number) === (seen.at(-1) as number); id += 1) {
      worker.callJson(id, null);
      const [ticks, isSame] = (await worker.answer()) as [number, boolean];
      assert.ok(isSame);
      seen.push(ticks);
    }
  },
);

test('a coroutine is cancelled when its caller leaves, and the next call runs', OPTIONS, async (t) => {
  const worker = await startedPython(
    t,
    `import asyncio
async def inference(model_inputs, ctx):
    try:
        ctx.log.info("begun")
        if model_inputs: await asyncio.sleep(1000)
    except asyncio.CancelledError:
        ctx.log.info("cleaned up: " + ctx.cancel_reason)
        raise
    return "next"`,
  );
  worker.callJson(1, true);
  await worker.next('log'); // a coroutine that is cancelled before its first step never runs
  worker.callJson(2, false);
  worker.send({ type: 'cancel', id: 1, reason: 'the client left' });
  assert.equal((await worker.next('error')).message.code, 'SERVE_CANCELLED');
  assert.equal((await worker.next('log')).message.message, 'cleaned up: the client left');
  assert.equal(await worker.answer(), 'next');
});

for (const [what, source, expected] of [
  [
    'that calls sys.exit in a call',
    'import sys\ndef inference(model_inputs): sys.exit(7)',
    ['sys.exit(7)', 7],
  ],
  [
    'that calls os._exit in a call',
    'import os\ndef inference(model_inputs): os._exit(8)',
    ['os._exit(8)', 8],
  ],
] as const) {
  test(`an app ${what} reports the line, and ends its worker`, OWN_CODE, async (t) => {
    const worker = await startedPython(t, source);
    worker.callJson(1, null);
    const { message } = await worker.next('fatal');
    assert.deepEqual([message.code, message.permanent], ['SERVE_WORKER_LOST', false]);
    assert.ok(message.message.startsWith(`${expected[0]} was called at /`), message.message);
    assert.ok(message.message.endsWith('app.py:2'), message.message);
    assert.deepEqual(await worker.exit, { code: expected[1], signal: null });
  });
}

test('a segfault and an abort leave a Python traceback on stderr', OPTIONS, async (t) => {
  for (const [source, signal] of [
    ['import ctypes\ndef inference(model_inputs): ctypes.string_at(0)', 'SIGSEGV'],
    ['import os\ndef inference(model_inputs): os.abort()', 'SIGABRT'],
  ] as const) {
    const worker = await startedPython(t, source);
    worker.callJson(1, null);
    assert.deepEqual(await worker.exit, { code: null, signal });
    assert.match(await worker.stderr, /Fatal Python error: [^]*app\.py", line 2 in inference/);
  }
});

test('the traceback of an exception has the frames of the app alone', OWN_CODE, async (t) => {
  const worker = await startedPython(t, 'def inference(model_inputs): raise ValueError("secret")');
  worker.callJson(1, null);
  const { detail } = (await worker.next('error')).message;
  assert.match(detail, /^Traceback [^]*app\.py", line 1, in inference[^]*ValueError: secret$/);
  assert.doesNotMatch(detail, /banana_worker/);
});

const ON_GPU = ownCode({ ...OPTIONS, skip: needs('python3', 'cc') });

/** As torch does: no line of Python has `raise`. `driver`: the library that stands for CUDA's. */
const losingItsGpu = (driver: string): string => `
import ctypes
driver = ctypes.CDLL(${JSON.stringify(driver)})
driver.use_gpu(0)
def lose():
    driver.lose_gpu(0, 700)
    fail = ctypes.pythonapi.PyErr_SetString
    fail.restype = None
    fail(ctypes.py_object(RuntimeError), b"CUDA error: an illegal memory access was encountered")
def lost():
    try: lose()
    except RuntimeError as error: return error
class Tensor:
    def detach(self): return self
    def cpu(self): lose()
Tensor.__module__ = "torch"
def stream():
    yield "a"
    lose()
async def later():
    yield "a"
    lose()
`;

for (const [where, expression] of [
  ['the function', 'lose()'],
  ['the output, while it is encoded', '[Tensor()]'],
  ['a stream', 'stream()'],
  ['an async stream', 'later()'],
] as const) {
  test(`a CUDA error in ${where} ends the worker after its call, and after its batch`, ON_GPU, async (t) => {
    const losesItsGpu = losingItsGpu(makeCudaDriver(t));
    const one = await startedPython(t, `${losesItsGpu}def inference(model_inputs): return ${expression}`);
    one.callJson(1, null);
    await assertLosesGpu(one, [1]);
    const batch = await startedPython(
      t,
      `${losesItsGpu}def inference(model_inputs): return 1
def inference_batch(inputs, ctxs): return [${expression}, ValueError("of this call alone")]`,
    );
    sendPair(batch);
    await assertLosesGpu(batch, [1, 2]);
  });
}

test('a CUDA error that is an entry of a batch ends the worker after the batch', ON_GPU, async (t) => {
  const worker = await startedPython(
    t,
    `${losingItsGpu(makeCudaDriver(t))}def inference(model_inputs): return 1
def inference_batch(inputs, ctxs): return [lost(), 1]`,
  );
  sendPair(worker);
  await assertLosesGpu(worker, [1]);
  assert.equal(await worker.answer(), 1);
});

/** These calls fail, and the worker ends itself. */
async function assertLosesGpu(worker: WorkerProcess, ids: readonly number[]): Promise<void> {
  const failed = [];
  for (const _ of ids) {
    const { message } = await worker.next('error');
    assert.equal(message.code, 'SERVE_INFERENCE_FAILED');
    failed.push(message.id);
  }
  assert.deepEqual(
    failed.sort((a, b) => a - b),
    ids,
  );
  assert.match(
    (await worker.next('fatal')).message.message,
    /^this process can no longer use its GPU: CUDA error/,
  );
  assert.equal((await worker.exit).code, 1);
}

/** A batch of the calls 1 and 2. */
function sendPair(worker: WorkerProcess): void {
  const calls = [1, 2].map((id) => callWith({ id, bodyBytes: 1 }));
  worker.send({ type: 'call', calls, inlineBytes: [1, 1], batch: 1, last: true }, Buffer.from('11'));
}

test(
  'an app in Python that has emptied the finders of modules is shut down as any other',
  OPTIONS,
  async (t) => {
    const worker = await startedPython(
      t,
      `import atexit, sys
atexit.register(lambda: print("at exit"))
def inference(model_inputs): sys.meta_path.clear()
def shutdown(): print("shutdown")`,
    );
    worker.callJson(1, null);
    assert.equal(await worker.answer(), null);
    worker.send({ type: 'stop', graceMs: 1000 });
    assert.deepEqual(await worker.exit, { code: 0, signal: null });
    assert.deepEqual([await worker.stdout, await worker.stderr], ['shutdown\nat exit\n', '']);
  },
);

for (const [what, head] of [
  ['that waits for calls', ''],
  ['whose tasks go on between calls', 'import asyncio\nasync def init(): pass\n'],
] as const)
  test(`a signal handler that raises in a worker ${what} is logged with its line`, OPTIONS, async (t) => {
    const worker = await startedPython(
      t,
      `${head}import signal
def late(*_):
    raise TimeoutError("too slow")
signal.signal(signal.SIGALRM, late)
def inference(model_inputs): pass`,
    );
    worker.callJson(1, null);
    assert.equal(await worker.answer(), null);
    // One that comes while the answer leaves is passed over. The next comes when even a slow machine has reported the first.
    const strike = (): boolean => process.kill(worker.pid, 'SIGALRM');
    const alarms = [setTimeout(strike, 50), setInterval(strike, 3000)];
    const { message } = await worker.next('fatal').finally(() => alarms.forEach(clearTimeout));
    assert.match(
      message.message,
      /app\.py:\d+: a signal handler of the app raised TimeoutError between calls$/,
    );
    assert.match(message.detail, /between calls:\nTraceback[^]*TimeoutError: too slow$/);
    assert.doesNotMatch(message.detail, /banana_worker/);
    assert.deepEqual(await worker.exit, { code: 1, signal: null });
    assert.equal(await worker.stderr, '');
  });

test('an error of a thread is logged, and so is a coroutine that was never awaited', OPTIONS, async (t) => {
  const worker = await startedPython(
    t,
    `import os, threading
def fail(): raise ValueError("in a thread")
def start_loader():
    thread = threading.Thread(target=fail, name="loader")
    thread.start(); thread.join()
async def forgotten(): pass
def inference(model_inputs):
    forgotten()
    start_loader()
    child = os.fork()
    if child == 0:
        start_loader()
        os._exit(0)
    os.waitpid(child, 0)
    return 1`,
  );
  worker.callJson(1, null);
  const { message } = await worker.next('log');
  assert.equal(message.level, 'error');
  assert.match(message.message, /^the thread loader raised ValueError at \/.*app\.py:2$/);
  assert.match(message.fields, /in a thread/);
  assert.equal(await worker.answer(), 1);
  worker.send({ type: 'stop', graceMs: 1000 });
  await worker.exit;
  const stderr = await worker.stderr;
  assert.match(stderr, /app\.py:8: RuntimeWarning: coroutine 'forgotten' was never awaited/);
  const printed = stderr.split('Exception in thread loader').length - 1;
  assert.equal(printed, 1, 'that of a forked child, whose log is not read, is printed');
});
