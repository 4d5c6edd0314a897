/**
 * The types of a client, as a program's editor checks them: those of a function, as JSON leaves them. Compiled and not run:
 * `@ts-expect-error` marks each line that must be refused, and is an error itself if the line is accepted.
 */
import { z } from 'zod';
import { client, type ClientJob, type Json } from '../../client.js';
import type { InferenceContext } from '../../index.js';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void {}

interface Found {
  readonly at: Date;
  readonly vector: Float32Array;
  readonly tags?: readonly string[];
  readonly maybe: number | undefined;
  readonly many: [number, { readonly url: URL }][];
}

/** Modules of apps, as `typeof import('./embed.js')` has them. */
interface Find {
  inference(input: { readonly since: Date }, ctx: InferenceContext): Promise<Found>;
}
interface Vectors {
  default: { inference: (input?: string) => AsyncGenerator<Float32Array> };
}
interface Bytes {
  inference(input: Uint8Array): Uint8Array;
}
interface Nothing {
  inference(input: string): void;
}
interface Refused {
  inference(input: { readonly big: bigint }): Map<string, number>;
}

export const input = z.object({ prompt: z.string(), steps: z.number().default(10) });
export const output = z.object({ at: z.date(), text: z.string() });
interface Schemas {
  readonly input: typeof input;
  readonly output: typeof output;
  readonly inference: (input: never) => unknown;
}

export const called = async (): Promise<void> => {
  const find = client<Find>('http://localhost:8000', { key: 'k' });
  const _found = await find({ since: '2026-01-01' }, { timeoutMs: 5000, signal: AbortSignal.timeout(1) });
  same<
    typeof _found,
    {
      readonly at: string;
      readonly vector: number[];
      readonly tags?: readonly string[] | undefined;
      readonly maybe: number | undefined;
      readonly many: [number, { readonly url: string }][];
    }
  >();
  // @ts-expect-error JSON has no dates
  await find({ since: new Date() });
  // @ts-expect-error the input is needed
  await find();
  // @ts-expect-error there is no such option of a call
  await find({ since: '' }, { onProgress: () => {} });
  same<Awaited<ReturnType<typeof find.job>>, ClientJob<typeof _found>>();

  const vectors = client<Vectors>('http://localhost:8000');
  const _vectors = [await vectors(), await vectors('text'), await vectors(undefined, { timeoutMs: 5 })];
  same<typeof _vectors, AsyncIterableIterator<number[]>[]>();
  const _bytes = await client<Bytes>('http://localhost:8000')(new Uint8Array(1));
  same<typeof _bytes, Uint8Array>();
  const _nothing = await client<Nothing>('http://localhost:8000')('text');
  same<typeof _nothing, null>();
  const _made = await client<Schemas>('http://localhost:8000')({ prompt: 'a default need not be sent' });
  same<typeof _made, { at: string; text: string }>();
  // @ts-expect-error the input lacks a field
  await client<Schemas>('http://localhost:8000')({ steps: 1 });

  const any = client('http://localhost:8000');
  const _unknown = [await any({ anything: 1 }), await any.route('/x')({ anything: 1 })];
  same<typeof _unknown, unknown[]>();
};

export const refused = async (): Promise<void> => {
  const model = client<Refused>('http://localhost:8000');
  // @ts-expect-error JSON has no such numbers
  const answer = await model({ big: 1n });
  // @ts-expect-error a Map cannot be sent
  const _map: Map<string, number> = answer;
  // @ts-expect-error a function is no JSON
  const _called: Json<{ run(): void }> = { run() {} };
};
