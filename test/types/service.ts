/**
 * The types of a custom service, as an editor checks them. Compiled and not run: `@ts-expect-error` marks each line that must be refused, and one that is
 * not refused any more is an error itself.
 */
import {
  Dimension,
  ModelHandler,
  PredictionException,
  type Context,
  type Item,
  type ItemPart,
  type ItemResult,
} from '../../mms.js';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void {}

// A function takes items, or null, and a context under both ways of naming.

export function handle(data: readonly Item[] | null, context: Context): ItemResult[] | null {
  if (data === null) return null;
  const _header = context.get_request_header(0, 'Accept');
  same<typeof _header, string | undefined>();
  same<ReturnType<typeof context.getParts>, ItemPart[]>();
  context.set_response_status(404, 'Not here', 0);
  context.metrics.add_time('Decode', 1.5, 0, 's', [new Dimension('Layer', 1)]);
  // @ts-expect-error a value that is measured is a number
  context.metrics.addCounter('Decode', 'one');
  // @ts-expect-error the context has no such member
  void context.model;
  return data.map(({ body }) => (body === undefined ? new PredictionException('no body', 400) : 'fine'));
}

// The steps of a class pass on what they make.

export class Lengths extends ModelHandler<string[], number[]> {
  override async initialize(context: Context): Promise<void> {
    await super.initialize(context);
    same<typeof this.context, Context>();
  }

  override preprocess(data: readonly Item[]): string[] {
    return data.map(({ body }) => String(body));
  }

  override inference(texts: string[]): number[] {
    return texts.map(({ length }) => length);
  }
}

// @ts-expect-error a service must define its inference
export class Nothing extends ModelHandler {}
