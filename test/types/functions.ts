/**
 * The types of a model as a function, as a program's editor checks them. Compiled and not run: `@ts-expect-error` marks each line that must be refused, and
 * one that is not refused any more is an error itself.
 */
import { Tensor, supervise, type InferenceContext, type TensorValue } from '../../index.js';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void {}

interface Text {
  readonly text: string;
}

/** Modules of apps, as `typeof import('./embed.js')` has them. */
interface Embed {
  inference(input: Text, ctx: InferenceContext): Promise<Float32Array>;
  config: { runTimeout: string };
}
interface Default {
  default: { inference: (input: Text) => string };
}
interface Words {
  inference(input: Text): AsyncGenerator<string>;
}
interface Web {
  inference(input: Text): ReadableStream<string>;
}
interface Numbers {
  inference(): Promise<Generator<Promise<number>>>;
}
interface Optional {
  inference(input?: Text, ctx?: InferenceContext): string;
}
interface Batch {
  inferenceBatch(inputs: readonly Text[]): Promise<number[]>;
}

export const answered = async (): Promise<void> => {
  const embed = await supervise<Embed>('./embed.ts', { maxWorkers: 2, idleTimeout: '5m', prints: 'ignore' });
  const _vector = await embed({ text: 'hello' }, { signal: AbortSignal.timeout(100), timeoutMs: 5000 });
  same<typeof _vector, Float32Array>();
  // @ts-expect-error the input has another type
  await embed({ txt: 'hello' });
  // @ts-expect-error there is no such option of a call
  await embed({ text: 'hello' }, { timeout: 5 });

  const _byDefault = await (await supervise<Default>(new URL('file:///a.ts')))({ text: '' });
  same<typeof _byDefault, string>();

  const _words = await (await supervise<Words>('./words.ts'))({ text: '' });
  same<typeof _words, AsyncIterableIterator<string>>();
  const _web = await (await supervise<Web>('./web.ts'))({ text: '' });
  same<typeof _web, AsyncIterableIterator<string>>();
  const _numbers = await (await supervise<Numbers>('./numbers.ts'))();
  same<typeof _numbers, AsyncIterableIterator<number>>();

  const maybe = await supervise<Optional>('./optional.ts');
  const _maybe = [await maybe(), await maybe({ text: '' }), await maybe(undefined, { timeoutMs: 5 })];
  same<typeof _maybe, string[]>();
  // @ts-expect-error the input has another type
  await maybe({ txt: '' });
  // @ts-expect-error the input is needed
  await embed();

  const _one = await (await supervise<Batch>('./batch.ts'))({ text: '' });
  same<typeof _one, number>();

  const model = await supervise('./model.onnx');
  const { scores: _scores } = await model({ image: new Tensor('FP32', [1, 1], new Float32Array(1)) });
  same<typeof _scores, TensorValue | undefined>();
  await model({ ids: new BigInt64Array(1), bytes: new Uint8Array(1) });
  // @ts-expect-error tensors come by name
  await model(new Float32Array(1));

  const any = await supervise('./app.ts');
  const _unknown = await any({ anything: 1 });
  same<typeof _unknown, unknown>();
  const _routed = await any.route('/x')({ anything: 1 });
  same<typeof _routed, unknown>();
  any.events.on('death', ({ worker: _worker, how: _how }) =>
    same<[typeof _worker, typeof _how], [number, string]>(),
  );
  same<ReturnType<typeof any.close>, Promise<void>>();
  same<ReturnType<typeof any.metrics>, Promise<string>>();
};

export const refused = async (): Promise<void> => {
  // @ts-expect-error a function has no port
  await supervise('./embed.ts', { port: 8000 });
  // @ts-expect-error there is no such option
  await supervise('./embed.ts', { worker: 2 });
  // @ts-expect-error prints go to a stream or a function
  await supervise('./embed.ts', { prints: './file' });
};
