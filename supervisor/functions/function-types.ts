/** The types of a model as a function, for programs. They follow from the type of the app's module, without a cast. */
import type { EventEmitter } from 'node:events';
import type { CallOptions, InputOf, OutputOf } from '../../protocol/app-types.js';
import type { ServeError } from '../../protocol/errors.js';
import type { AnyTensor, Datatype, TensorData } from '../../protocol/values/tensor.js';
import type { ModelStatus } from '../models/model-status.js';

/**
 * Options of one call of a function.
 * @example
 * const options: FunctionCallOptions = { timeoutMs: 5000, onProgress: (fraction) => console.log(fraction) };
 */
export interface FunctionCallOptions extends CallOptions {
  /** Gets what the app reports with `ctx.progress`, at most four times a second. */
  readonly onProgress?: ((fraction: number, text: string) => void) | undefined;
}

/**
 * A tensor of a model without code: one of one dimension is its data alone, unless their class does not say its datatype.
 * @example
 * const values: TensorValue[] = [Float32Array.of(0, 1), new Tensor('FP32', [1, 2], Float32Array.of(0, 1))];
 */
export type TensorValue = AnyTensor | TensorData[Exclude<Datatype, 'BOOL' | 'FP16' | 'BF16' | 'BYTES'>];

/**
 * A model without code, as an app.
 * @example
 * const digits = await supervise<OnnxModel>('./digits.onnx');
 * const { probabilities } = await digits({ image: new Tensor('FP32', [1, 64], new Float32Array(64)) });
 */
export interface OnnxModel {
  inference(inputs: Readonly<Record<string, TensorValue>>): Readonly<Record<string, TensorValue>>;
}

/**
 * Events of the workers of a function.
 * @example
 * const model = await supervise('./embed.ts');
 * model.events.on('death', ({ worker, how }) => console.error(worker, how));
 */
export interface FunctionEvents {
  /** A worker is ready. */
  ready: [{ readonly worker: number; readonly startMs: number }];
  /** A worker died that nobody has asked to end; another one starts. */
  death: [{ readonly worker: number; readonly pid: number; readonly how: string }];
  /** No worker can start any more, or none for now: calls are refused with this error. */
  failing: [ServeError];
}

/**
 * A model as a function. Types follow from that of the app's module.
 * @example
 * const embed: ModelFunction = await supervise('./embed.ts');
 * const answer = await embed({ text: 'hello' });
 * await embed.close();
 */
export interface ModelFunction<App = unknown> {
  (...args: [...InputOf<App>, options?: FunctionCallOptions]): Promise<OutputOf<App>>;
  /** The function of another route of the app, such as those of a Potassium app. */
  route(path: string): (input: unknown, options?: FunctionCallOptions) => Promise<unknown>;
  /** The model as `/status` of a server shows it. */
  status(): ModelStatus;
  /** The metrics of the model, and those of its app, as Prometheus reads them. */
  metrics(): Promise<string>;
  readonly events: EventEmitter<FunctionEvents>;
  /** Finishes the accepted calls, then ends the workers. Rejects if it was called before. */
  close(): Promise<void>;
  /** As `close`; does nothing after it. */
  [Symbol.asyncDispose](): Promise<void>;
}
