/** The base class of a custom service, with the steps that most services have. */
import type { Context } from './context.js';
import type { Item, ItemResult } from './item.js';

/**
 * The base of a service: override at least `inference`. A file that exports exactly one class with a `handle` method is
 * a service; one instance is created per worker, without arguments, and `initialize` is awaited before the first batch.
 * @example
 * export class Lengths extends ModelHandler<string[]> {
 *   override preprocess(data: readonly Item[]) {
 *     return data.map(({ body }) => String(body));
 *   }
 *   override inference(texts: string[]) {
 *     return texts.map(({ length }) => length);
 *   }
 * }
 */
export abstract class ModelHandler<Input = readonly Item[], Output = readonly ItemResult[]> {
  /** Set by `initialize`. */
  context!: Context;

  /** Loads the model; called once. An error that it throws fails the worker's start. */
  initialize(context: Context): void | Promise<void> {
    this.context = context;
  }

  /** Converts a batch to the model's input; returns the items themselves by default. */
  preprocess(data: readonly Item[], _context: Context): Input | Promise<Input> {
    return data as unknown as Input;
  }

  /** Runs the model. */
  abstract inference(input: Input, context: Context): Output | Promise<Output>;

  /** Converts the model's output to one result for each item, in their order; returns the output itself by default. */
  postprocess(output: Output, _context: Context): readonly ItemResult[] | Promise<readonly ItemResult[]> {
    return output as unknown as readonly ItemResult[];
  }

  /**
   * Answers a batch: `preprocess`, `inference`, `postprocess`. Returns null for null, with which a function-style
   * service is loaded.
   */
  async handle(data: readonly Item[] | null, context: Context): Promise<readonly ItemResult[] | null> {
    if (data === null) return null;
    const input = await this.preprocess(data, context);
    return await this.postprocess(await this.inference(input, context), context);
  }
}
