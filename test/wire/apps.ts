/** The apps of the conversations, each in both languages. Whoever writes another worker writes them a third time. */

/** Does what its input asks for: `[what, argument]`. */
const DOES = {
  node: `import { execFileSync } from 'node:child_process';
import { writeSync } from 'node:fs';
import { HttpError, Response, sendWebhook } from 'banana-serve';
function* numbers(count) {
  try { for (let n = 0; n < count; n += 1) yield { n }; }
  finally { console.log('closed'); }
}
function* breaks(after) {
  for (let n = 0; n < after; n += 1) yield 'part';
  throw new Error('halfway');
}
const DO = {
  echo: (value) => value,
  wait: (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason.message))),
  numbers,
  letters: (letters) => [...letters].values(),
  breaks,
  throw: (text) => { throw new Error(text); },
  refuse: ([status, message]) => { throw new HttpError(status, message); },
  exhaust: () => { throw Object.assign(new Error('no memory'), { code: 'ENOMEM' }); },
  respond: (fields) => new Response(fields),
  bytes: (count) => new Uint8Array(count),
  unsendable: () => 2n ** 64n,
  log: (_, ctx) => { ctx.log.warn('careful', { gb: 1.5 }); },
  count: (tokens, ctx) => ctx.metrics.counter('tokens', tokens, { language: 'en' }),
  progress: (parts, ctx) => { for (const part of parts) ctx.progress(part, 'at ' + part); return ctx.job; },
  webhook: async ([wait, value]) => {
    await sendWebhook('https://example.com/hook', value, { await: wait, timeoutMs: 1500, retries: 0 });
    return 'sent';
  },
  print: (text) => { console.log(text); },
  write: () => { console.log('out'); writeSync(1, 'raw\\n'); console.error('err'); },
  descriptors: () => execFileSync('sh', ['-c', 'for fd in 3 4 5; do [ -e /dev/fd/$fd ] && echo $fd; done; true']).toString(),
  facts: (_, ctx) => [ctx.requestId, ctx.path, ctx.query.get('q'), ctx.headers['x-a'], ctx.traceparent],
};
export const inference = ([what, argument], ctx) => DO[what](argument, ctx) ?? 'done';
export const shutdown = () => console.log('shut down');
`,
  python: `import os, subprocess, sys
from banana_serve import HttpError
from potassium import Response, send_webhook
def numbers(count, ctx):
    try:
        for n in range(count): yield {"n": n}
    finally: print("closed")
def breaks(after, ctx):
    for n in range(after): yield "part"
    raise ValueError("halfway")
def wait(_, ctx):
    ctx.wait_cancelled()
    return ctx.cancel_reason
def throw(text, ctx): raise ValueError(text)
def refuse(refusal, ctx): raise HttpError(*refusal)
def exhaust(_, ctx): raise MemoryError("no memory")
def progress(parts, ctx):
    for part in parts: ctx.progress(part, "at %s" % part)
    return ctx.job and {"id": ctx.job.id, "attempt": ctx.job.attempt}
def webhook(order, ctx):
    send_webhook("https://example.com/hook", order[1], wait=order[0], timeout_ms=1500, retries=0)
    return "sent"
def write(_, ctx):
    print("out"); sys.stdout.flush(); os.write(1, b"raw\\n"); print("err", file=sys.stderr)
DO = {
    "echo": lambda value, ctx: value,
    "wait": wait,
    "numbers": numbers,
    "letters": lambda letters, ctx: iter(letters),
    "breaks": breaks,
    "throw": throw,
    "refuse": refuse,
    "exhaust": exhaust,
    "respond": lambda fields, ctx: Response(**fields),
    "bytes": lambda count, ctx: bytes(count),
    "unsendable": lambda _, ctx: object(),
    "log": lambda _, ctx: ctx.log.warn("careful", {"gb": 1.5}),
    "count": lambda tokens, ctx: ctx.metrics.counter("tokens", tokens, {"language": "en"}),
    "progress": progress,
    "webhook": webhook,
    "print": lambda text, ctx: print(text),
    "write": write,
    "descriptors": lambda _, ctx: subprocess.check_output(["sh", "-c", "for fd in 3 4 5; do [ -e /dev/fd/$fd ] && echo $fd; done; true"]).decode(),
    "facts": lambda _, ctx: [ctx.request_id, ctx.path, ctx.query["q"][0], ctx.headers["x-a"], ctx.traceparent],
}
def inference(model_inputs, ctx):
    what, *argument = model_inputs
    output = DO[what](argument[0] if argument else None, ctx)
    return "done" if output is None else output
def shutdown(): print("shut down")
`,
};

/** Answers a batch with an entry for each input; the inputs say what they are. */
const BATCH = {
  node: `const entryOf = (input, count, ctx) => {
  if (input === 'error') return new Error('only this one');
  if (typeof input === 'string' && input.startsWith('stream')) return [0, 1, 2].map((n) => input.at(-1) + n).values();
  return { input, of: count, id: ctx.requestId };
};
export const inference = (input, ctx) => ({ input, alone: true });
export function inferenceBatch(inputs, ctxs) {
  if (inputs.includes('throw')) throw new Error('of one of them');
  if (inputs.includes('exhaust')) return inputs.map(() => Object.assign(new Error('no memory'), { code: 'ENOMEM' }));
  return inputs.slice(inputs.includes('drop') ? 1 : 0).map((input, i) => entryOf(input, inputs.length, ctxs[i]));
}
`,
  python: `def entry_of(input, count, ctx):
    if input == "error": return ValueError("only this one")
    if isinstance(input, str) and input.startswith("stream"): return ("%s%d" % (input[-1], n) for n in range(3))
    return {"input": input, "of": count, "id": ctx.request_id}
def inference(model_inputs, ctx): return {"input": model_inputs, "alone": True}
def inference_batch(inputs, ctxs):
    if "throw" in inputs: raise ValueError("of one of them")
    if "exhaust" in inputs: return [MemoryError("no memory") for _ in inputs]
    return [entry_of(input, len(inputs), ctx) for input, ctx in zip(inputs, ctxs)]["drop" in inputs:]
`,
};

/** Runs batches again in halves. */
const REPEATABLE = {
  node: `export const config = { repeatable: true };
export const inference = (input) => inferenceBatch([input])[0];
export function inferenceBatch(inputs) {
  if (inputs.includes('bad')) throw new Error('this one');
  return inputs.map(() => inputs.length);
}
`,
  python: `config = {"repeatable": True}
def inference(model_inputs): return inference_batch([model_inputs], [None])[0]
def inference_batch(inputs, ctxs):
    if "bad" in inputs: raise ValueError("this one")
    return [len(inputs)] * len(inputs)
`,
};

/** Runs up to three calls at the same time, each until another one opens its gate. */
const SEVERAL = {
  node: `export const config = { concurrency: 3 };
const gates = new Map();
export async function inference([what, gate], { signal }) {
  if (what === 'open') { gates.get(gate)('opened'); return 'open'; }
  if (what === 'exhaust') throw Object.assign(new Error('no memory'), { code: 'ENOMEM' });
  signal.addEventListener('abort', () => gates.get(gate)('left'));
  return await new Promise((resolve) => gates.set(gate, resolve));
}
`,
  python: `import asyncio
config = {"concurrency": 3}
gates = {}
async def inference(model_inputs, ctx):
    what, gate = model_inputs
    if what == "open":
        gates[gate].set()
        return "open"
    if what == "exhaust": raise MemoryError("no memory")
    gates[gate] = asyncio.Event()
    try:
        while not gates[gate].is_set():  # a stop cancels no task
            if ctx.cancelled: return "left"
            await asyncio.sleep(0.005)
    except asyncio.CancelledError: return "left"
    return "opened"
`,
};

/** Sends each message back, until one says how to end. */
const SOCKET = {
  node: `import { Potassium } from 'banana-serve';
export const app = new Potassium('talks');
app.websocket('/talk', async (_context, { ws }) => {
  for await (const message of ws) {
    if (message === 'throw') throw new Error('asked for');
    if (message === 'bye') { await ws.close(4000, 'so long'); return; }
    if (message === 'return') return;
    await ws.send(message);
  }
  console.log('left');
});
`,
  python: `from potassium import Potassium
app = Potassium("talks")
@app.websocket("/talk")
def talk(context, request):
    for message in request.ws:
        if message == "throw": raise ValueError("asked for")
        if message == "bye": return request.ws.close(4000, "so long")
        if message == "return": return
        request.ws.send(message)
    print("left")
`,
};

/** Describes itself. */
const DESCRIBED = {
  node: `export const inference = (input) => input;
export const example = { a: 1 };
export const shutdown = () => {};
export const config = { runTimeout: '5s' };
`,
  python: `def inference(model_inputs): return model_inputs
example = {"a": 1}
def shutdown(): pass
config = {"run_timeout": "5s"}
`,
};

/** Is told to stop while its `init` goes on. */
const SLOW_INIT = {
  node: `export const init = () => new Promise((resolve) => setTimeout(resolve, 1e9));
export const inference = () => 1;
export const shutdown = () => console.log('shut down');
`,
  python: `import time
def init(): time.sleep(1000)
def inference(model_inputs): return 1
def shutdown(): print("shut down")
`,
};

/** Fails when its worker is to end. */
const BAD_SHUTDOWN = {
  node: `export const inference = () => 1;
export const shutdown = () => { throw new Error('stuck'); };
`,
  python: `def inference(model_inputs): return 1
def shutdown(): raise ValueError("stuck")
`,
};

/** Has started a program, which goes on, and calls of it never end. */
const HANGS = {
  node: `import { spawn } from 'node:child_process';
spawn('sleep', ['1000'], { stdio: 'inherit' });
export const inference = () => new Promise(() => setInterval(() => {}, 1000));
`,
  python: `import subprocess, time
subprocess.Popen(["sleep", "1000"])
def inference(model_inputs): time.sleep(1000)
`,
};

const SYNTAX_ERROR = { node: 'export const = 1;', python: 'def inference(:\n' };
const NO_FUNCTION = { node: 'export const predict = () => 1;', python: 'def predict(): return 1\n' };
const IMPORT_THROWS = {
  node: "throw new Error('download failed');",
  python: 'raise ValueError("download failed")\n',
};
const DISK_FULL = {
  node: "throw Object.assign(new Error('no room'), { code: 'ENOSPC' });",
  python: 'import errno\nraise OSError(errno.ENOSPC, "no room")\n',
};
const INIT_THROWS = {
  node: "export const init = () => { throw new Error('no GPU'); };\nexport const inference = () => 1;\n",
  python: 'def init(): raise ValueError("no GPU")\ndef inference(model_inputs): return 1\n',
};
const INIT_CANNOT_CONNECT = {
  node: `export const init = () => { throw new Error('no store', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) }); };
export const inference = () => 1;
`,
  python: `def init():
    try: raise ConnectionRefusedError("x")
    except OSError as cause: raise ValueError("no store") from cause
def inference(model_inputs): return 1
`,
};
const EXAMPLE_THROWS = {
  node: "export const inference = () => { throw new Error('not that'); };\nexport const example = 1;\n",
  python: 'def inference(model_inputs): raise ValueError("not that")\nexample = 1\n',
};
const LONG_ERROR = {
  node: "export const init = () => { throw new Error('😀'.repeat(2_000_000)); };\nexport const inference = () => 1;\n",
  python: 'def init(): raise ValueError("😀" * 2_000_000)\ndef inference(model_inputs): return 1\n',
};

export const APPS = {
  DOES,
  BATCH,
  REPEATABLE,
  SEVERAL,
  SOCKET,
  DESCRIBED,
  SLOW_INIT,
  BAD_SHUTDOWN,
  HANGS,
  SYNTAX_ERROR,
  NO_FUNCTION,
  IMPORT_THROWS,
  DISK_FULL,
  INIT_THROWS,
  INIT_CANNOT_CONNECT,
  EXAMPLE_THROWS,
  LONG_ERROR,
};
