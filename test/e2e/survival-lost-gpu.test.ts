/** A worker that has lost its GPU, or its memory, ends itself; a client cannot make it by what it sends. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { ask, errorOf, pidOf } from '../helpers/ask.js';
import { makeCudaDriver } from '../helpers/cuda-driver.js';
import type { Ending } from '../helpers/edited-app.js';
import { needs } from '../helpers/needs.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import type { Server } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };

/** The texts of torch and ONNX Runtime. */
const SAYS = {
  Python: {
    lost: 'CUDA error: an illegal memory access was encountered',
    noMemory: 'CUDA out of memory. Tried to allocate 20.00 MiB',
  },
  TypeScript: {
    lost: 'CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=h',
    noMemory:
      "Non-zero status code returned while running Add node. Name:'a' Status Message: CUDA failure 2: out of memory ; GPU=0",
  },
};

/** Inputs of a client that knows the error texts of the libraries. */
const TEXTS = [
  ...Object.values(SAYS).flatMap((says) => Object.values(says)),
  'CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported at some other API call',
  `${SAYS.TypeScript.lost}\n    at run (/app/node_modules/onnxruntime-node/dist/backend.js:1:1)`,
  'Array buffer allocation failed',
];

const WAYS = [
  'behind words of the app',
  'alone',
  'as the cause',
  'as the name of a file',
  'as the result of a future',
];

const PYTHON = `
import asyncio, ctypes, os

def native(text):
    """As torch does: no line of Python has \`raise\`."""
    fail = ctypes.pythonapi.PyErr_SetString
    fail.restype = None
    fail(ctypes.py_object(RuntimeError), text.encode())

def on_gpu(gpu, error):
    """As if the process computed on this GPU, and met this error, if it is none of 0."""
    driver = ctypes.CDLL(os.environ["CUDA_DRIVER"])
    driver.use_gpu(gpu)
    driver.lose_gpu(gpu, error)
    return driver.held()

def repeat(way, text):
    if way == "behind words of the app": raise ValueError("unknown label: " + text)
    if way == "alone": raise RuntimeError(text)
    if way == "as the cause": raise ValueError("unknown label") from RuntimeError(text)
    if way == "as the name of a file": open("/nowhere/" + text)
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    future.set_exception(RuntimeError(text))
    loop.close()
    future.result()

def inference(model_inputs):
    if "gpu" in model_inputs: return {"held": on_gpu(model_inputs["gpu"], model_inputs["error"])}
    if "way" in model_inputs: repeat(model_inputs["way"], model_inputs["text"])
    if "library" in model_inputs:
        try: native(model_inputs["library"])
        except RuntimeError as error:
            if not model_inputs.get("isWrapped"): raise
            raise ValueError("the model failed") from error
    return {"pid": os.getpid()}
`;

const TYPESCRIPT = `
import { readFileSync } from 'node:fs';
import { run } from 'onnxruntime-node';
async function repeat(way, text) {
  if (way === 'behind words of the app') throw new Error('unknown label: ' + text);
  if (way === 'alone') throw new RangeError(text);
  if (way === 'as the cause') throw new Error('unknown label', { cause: new Error(text) });
  if (way === 'as the name of a file') readFileSync('/nowhere/' + text);
  await Promise.reject(new Error(text));
}
export async function inference({ way, text, library, isWrapped }) {
  if (way !== undefined) await repeat(way, text);
  if (library !== undefined)
    try {
      await run(library);
    } catch (error) {
      throw isWrapped ? new Error('the model failed', { cause: error }) : error;
    }
  return { pid: process.pid };
}
`;

/** Native code has no frame of its own: what it throws was made where a file of the package calls it. */
const LIBRARY = `exports.run = (text) => new Promise(() => {
  throw new Error(text);
});
`;

function appOf(t: Ending, language: Language): string {
  if (language === 'Python') return `${appFolder(t, { 'app.py': PYTHON })}/app.py`;
  const files = { 'app.mjs': TYPESCRIPT, 'node_modules/onnxruntime-node/index.js': LIBRARY };
  return `${appFolder(t, files)}/app.mjs`;
}

async function assertFails(server: Server, input: unknown): Promise<void> {
  const answer = await ask(server, input);
  assert.deepEqual([answer.status, errorOf(answer).code], [500, 'SERVE_INFERENCE_FAILED'], answer.text);
}

/** From here on the app computes on this GPU, where it meets this error of CUDA. */
async function compute(server: Server, gpu: number, error: number): Promise<void> {
  const answer = await ask(server, { gpu, error });
  assert.equal(answer.status, 200, answer.text);
}

withEachRuntime(({ language }) => {
  const { lost, noMemory } = SAYS[language];
  const skip = language === 'Python' && needs('cc');

  describe('on one server', { ...LIMIT, skip }, () => {
    // The worker in Python asks the driver of CUDA about its GPU.
    const env = language === 'Python' && skip === false ? { CUDA_DRIVER: makeCudaDriver({ after }) } : {};
    const shared = shareHere(appOf({ after }, language), { env, expectedRestarts: 3 });
    /** Waits until another worker serves, and its death is reported. */
    const replaced = async (pid: number, restarts: number, said: string): Promise<void> => {
      const { server } = shared;
      await server.until(({ model }) => model.workers[0]?.restarts === restarts);
      assert.notEqual(await pidOf(server), pid);
      await server.untilPrinted(said);
    };

    test('no text of a client ends a worker, however its app repeats it', LIMIT, async () => {
      const { server } = shared;
      const pid = await pidOf(server);
      await compute(server, 1, 0);
      for (const way of WAYS)
        for (const text of TEXTS) {
          for (let i = 0; i < 4; i += 1) await assertFails(server, { way, text });
          assert.equal(await pidOf(server), pid, `${way}: ${text}`);
        }
      assert.doesNotMatch(server.stderr(), /can no longer use its GPU|the app ran out of memory/);
    });

    for (const [i, [what, isWrapped]] of (
      [
        ['says', false],
        ['says behind an error of the app', true],
      ] as const
    ).entries())
      test(`a worker whose library ${what} that the GPU is lost ends after that call`, LIMIT, async () => {
        const { server } = shared;
        const pid = await pidOf(server);
        await compute(server, 0, 700);
        await assertFails(server, { library: lost, isWrapped });
        await replaced(pid, i + 1, `this process can no longer use its GPU: ${lost}`);
      });

    test('a worker whose library finds no memory in three calls in a row ends', LIMIT, async () => {
      const { server } = shared;
      const pid = await pidOf(server);
      for (let i = 0; i < 2; i += 1) await assertFails(server, { library: noMemory });
      assert.equal(await pidOf(server), pid);
      for (let i = 0; i < 3; i += 1) await assertFails(server, { library: noMemory });
      await replaced(pid, 3, 'the app ran out of memory in 3 calls in a row');
    });
  });
});

describe(
  'workers in Python, whose apps may raise the errors of torch themselves',
  { skip: needs('python3', 'cc') },
  () => {
    const text = `Caught RuntimeError in replica 1 on device 1: ${SAYS.Python.lost}`;

    test(
      'a lost GPU ends its worker, in whichever words, if the driver confirms the loss',
      LIMIT,
      async (t) => {
        const env = { CUDA_DRIVER: makeCudaDriver(t) };
        const server = await startHere(appOf(t, 'Python'), { t, env, expectedRestarts: 1 });
        const pid = await pidOf(server);
        await compute(server, 1, 0);
        await assertFails(server, { way: 'alone', text });
        const notReady = 600;
        await compute(server, 1, notReady);
        await assertFails(server, { way: 'alone', text });
        assert.deepEqual(
          (await ask(server, { gpu: 1, error: 710 })).json(),
          { held: 0 },
          'contexts are given back',
        );
        await assertFails(server, { way: 'as the cause', text });
        await server.until(({ model }) => model.workers[0]?.restarts === 1);
        assert.notEqual(await pidOf(server), pid);
        await server.untilPrinted(`this process can no longer use its GPU: ${text}`);
        await server.stop();
      },
    );
  },
);
