/**
 * Recognises the digit in a picture. A custom service in the form of Multi Model Server's handlers: a class of five
 * steps, one instance of it, and a function `handle` that the server calls.
 *
 * 1. A worker begins with `handle(null, context)`: the model is loaded.
 * 2. `handle(data, context)` gets the items of a batch and returns one result for each, in their order.
 *
 * `service.ts` or `service.ts:handle` serves the function, `service.ts:DigitsService` the class.
 */
import { join } from 'node:path';
import type { AppConfig } from 'banana-serve';
import { PredictionException, type Context, type Item, type ItemResult } from 'banana-serve/mms';
import { InferenceSession, Tensor } from 'onnxruntime-node';

/** Up to eight waiting calls run together; a single call waits 5 ms for others. */
export const config: AppConfig = { batchSize: 8, maxBatchDelay: '5ms' };

const SIDE = 8;
const MAX_INK = 16;
const DIGITS = 10;

/** The pixels of an item, or the error for its client. */
type Picture = Float32Array | PredictionException;

export class DigitsService {
  #session: InferenceSession | undefined;

  get initialized(): boolean {
    return this.#session !== undefined;
  }

  /** Loads the model file beside this one. */
  async initialize(context: Context): Promise<void> {
    const { model_dir } = context.system_properties;
    this.#session = await InferenceSession.create(join(model_dir, 'digits.onnx'), {
      intraOpNumThreads: 1, // the fastest for a model this small; for others, `context.worker.threads`
    });
  }

  /** A batch has `data.length` items, often fewer than `batchSize`. */
  preprocess(data: readonly Item[]): Picture[] {
    return data.map(pictureOf);
  }

  /** One run of the model for all pictures; ten probabilities for each. */
  async inference(pictures: readonly Float32Array[]): Promise<Float32Array[]> {
    if (this.#session === undefined) throw new Error('the model is not loaded');
    if (pictures.length === 0) return [];
    const pixels = new Float32Array(pictures.length * SIDE * SIDE);
    pictures.forEach((picture, i) => pixels.set(picture, i * SIDE * SIDE));
    const image = new Tensor('float32', pixels, [pictures.length, 1, SIDE, SIDE]);
    const output = await this.#session.run({ image });
    const all = output.probabilities!.data as Float32Array;
    return pictures.map((_, i) => all.subarray(i * DIGITS, (i + 1) * DIGITS));
  }

  /** An item that is not a picture fails alone. */
  postprocess(pictures: readonly Picture[], outputs: readonly Float32Array[]): ItemResult[] {
    const left = [...outputs];
    return pictures.map((picture) => {
      if (picture instanceof PredictionException) return picture;
      const probabilities = left.shift()!;
      return { label: probabilities.indexOf(Math.max(...probabilities)), probabilities };
    });
  }

  async handle(data: readonly Item[], context: Context): Promise<ItemResult[]> {
    const pictures = this.preprocess(data);
    const good = pictures.filter((picture) => picture instanceof Float32Array);
    context.metrics.add_counter('Pictures', good.length);
    return this.postprocess(pictures, await this.inference(good));
  }
}

const service = new DigitsService();

export async function handle(data: readonly Item[] | null, context: Context): Promise<ItemResult[] | null> {
  if (!service.initialized) await service.initialize(context);
  return data === null ? null : await service.handle(data, context);
}

/** The field `data` of a form, else the body: a list of 64 amounts of ink from 0 to 16 as JSON, whatever its type. */
function pictureOf(item: Item): Picture {
  const sent: unknown = item['data'] ?? item['body'];
  const pixels: unknown = Buffer.isBuffer(sent) ? parsed(sent) : sent;
  if (!Array.isArray(pixels) || pixels.length !== SIDE * SIDE || !pixels.every(isInk))
    return new PredictionException('send 64 numbers from 0 to 16, such as [0, 0, 5, 13, …]', 400);
  return Float32Array.from(pixels, (ink) => ink / MAX_INK);
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined; // refused like any other value that is no picture
  }
}

function isInk(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_INK;
}
