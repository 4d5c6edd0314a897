/** A custom service as a class, in the steps that most of them have. */
import type { Context } from './context.js';
import type { Item, ItemResult } from './item.js';

/**
 * The base of a service: say at least what `inference` does. A file that exports one class with a `handle` method is a
 * service; it is made once per worker, without arguments, and `initialize` is awaited before the first batch.
 */
export abstract class ModelHandler<Input = readonly Item[], Output = readonly ItemResult[]> {
  /** Set by `initialize`. */
  context!: Context;

  /** Loads the model; called once. What it throws fails the worker's start. */
  initialize(context: Context): void | Promise<void> {
    this.context = context;
  }

  /** Makes the model's input of a batch; unless it is overridden, the items themselves. */
  preprocess(data: readonly Item[], _context: Context): Input | Promise<Input> {
    return data as unknown as Input;
  }

  /** Runs the model. */
  abstract inference(input: Input, context: Context): Output | Promise<Output>;

  /** Makes one result for each item, in their order; unless it is overridden, the model's output itself. */
  postprocess(output: Output, _context: Context): readonly ItemResult[] | Promise<readonly ItemResult[]> {
    return output as unknown as readonly ItemResult[];
  }

  /** Answers a batch: `preprocess`, `inference`, `postprocess`. Null, with which a function-style service is loaded, for null. */
  async handle(data: readonly Item[] | null, context: Context): Promise<readonly ItemResult[] | null> {
    if (data === null) return null;
    const input = await this.preprocess(data, context);
    return await this.postprocess(await this.inference(input, context), context);
  }
}
