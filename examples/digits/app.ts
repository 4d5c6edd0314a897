/**
 * Which digit is in this picture? A small ONNX model behind HTTP. To serve your own model, copy this folder:
 *
 * 1. `init` loads the model, once in each worker process.
 * 2. `inference` answers one call: body -> pixels -> model -> answer.
 * 3. `example` is run once after `init`, so a broken model fails at start-up and the first caller finds it warm.
 */
import { fileURLToPath } from 'node:url';
import type { AppConfig, InferenceContext, UploadedFile } from 'banana-serve';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { BadInput, readPixels, readPng, SIDE } from './pixels.js';

/** How the body arrives depends on its Content-Type; `null` is an empty body. */
type Input =
  | Uint8Array // image/png
  | { image?: UploadedFile } // multipart/form-data with a file named `image`
  | { pixels?: unknown } // application/json
  | null;

// Options for this model. A call takes well under a millisecond, so one that takes seconds is stuck.
export const config: AppConfig = { runTimeout: '10s' };

/** A seven: how much ink is in each cell, from 0 to 16. */
export const example = {
  pixels: [
    [0, 0, 1, 14, 16, 16, 15, 1],
    [0, 0, 11, 14, 8, 13, 11, 0],
    [0, 0, 15, 6, 0, 14, 3, 0],
    [0, 0, 5, 1, 5, 13, 1, 0],
    [0, 0, 0, 13, 16, 16, 9, 0],
    [0, 0, 2, 16, 15, 9, 1, 0],
    [0, 0, 0, 11, 9, 0, 0, 0],
    [0, 0, 0, 3, 16, 2, 0, 0],
  ],
};

let session: InferenceSession;

export async function init() {
  session = await InferenceSession.create(fileURLToPath(new URL('digits.onnx', import.meta.url)), {
    // One thread is fastest for a model this small: 63 us an image, two take 90. For a large one, take this worker's
    // part of the machine's cores: `intraOpNumThreads: ctx.worker.threads`.
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
  });
}

export async function inference(modelInputs: Input, ctx: InferenceContext) {
  let pixels: Float32Array;
  try {
    pixels = pixelsOf(modelInputs);
  } catch (error) {
    if (!(error instanceof BadInput)) throw error; // A bug of ours: the caller gets a 500, the log the stack.
    ctx.log.debug('refused', { reason: error.message });
    // A web-standard Response sets the status; anything else you return is a 200.
    return Response.json({ message: error.message }, { status: 422 });
  }
  const image = new Tensor('float32', pixels, [1, 1, SIDE, SIDE]);
  const output = await session.run({ image });
  const probabilities = output.probabilities!.data as Float32Array;
  return { label: probabilities.indexOf(Math.max(...probabilities)), probabilities };
}

function pixelsOf(input: Input): Float32Array {
  if (input instanceof Uint8Array) return readPng(input);
  if (typeof input === 'object' && input !== null) {
    if ('image' in input && input.image?.data instanceof Uint8Array) return readPng(input.image.data);
    if ('pixels' in input) return readPixels(input.pixels);
  }
  throw new BadInput(
    'Send a PNG as image/png, a PNG as the form file `image`, or JSON such as {"pixels": [64 numbers from 0 to 16]}',
  );
}
