/**
 * The types of an app with schemas, as an editor checks them. Compiled and not run: `@ts-expect-error` marks each line that must
 * be refused, and is an error itself if the line is accepted.
 */
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import { run, supervise, type Inference, type InferenceBatch } from '../../index.js';
import { Potassium, Response } from '../../potassium.js';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void {}

const input = z.object({ prompt: z.string(), steps: z.number().default(10) });
const output = z.object({ vector: z.array(z.number()), at: z.date().transform((date) => date.getTime()) });

export const inference: Inference<typeof input, typeof output> = ({ prompt, steps }) => {
  same<[typeof prompt, typeof steps], [string, number]>();
  return { vector: Float32Array.of(prompt.length), at: new Date(steps) };
};

// @ts-expect-error the answer lacks a field
export const lacks: Inference<typeof input, typeof output> = () => ({ vector: [1] });

export const inferenceBatch: InferenceBatch<typeof input, typeof output> = (inputs) =>
  inputs.map(({ steps }) => (steps > 1 ? new Error('too many') : { vector: [steps], at: new Date() }));

const app = new Potassium('schemas').init(() => ({ model: 'm' }));
const other = { valibot: v.object({ a: v.optional(v.number(), 1) }), arktype: type({ a: 'number = 1' }) };

app.handler('/zod', { input, output }, ({ model }, { json: { prompt, steps } }) => {
  same<[typeof model, typeof prompt, typeof steps], [string, string, number]>();
  return new Response({ json: { vector: [steps, prompt.length, model.length], at: new Date() } });
});
app.handler('/valibot', { input: other.valibot, raw: true }, (_, { json }) => {
  same<typeof json.a, number>();
  return new Response({ json });
});
app.handler('/arktype', { input: other.arktype, batch: true }, (_, requests) =>
  requests.map(({ json }) => {
    same<typeof json.a, number>();
    return new Response({ json });
  }),
);
app.background('/later', { input, resultWebhook: 'http://localhost/' }, (_, { json }) => {
  same<typeof json.steps, number>();
  return json.steps;
});
// @ts-expect-error the answer lacks a field
app.handler('/lacks', { input, output }, () => new Response({ json: { vector: [1] } }));
// @ts-expect-error the result of a background function has no client to check it for
app.background('/output', { input, output }, () => null);

interface App {
  readonly input: typeof input;
  readonly output: typeof output;
  readonly inference: typeof inference;
}

export const called = async (): Promise<void> => {
  const model = await supervise<App>('./app.ts');
  const _answer = await model({ prompt: 'a default need not be sent' });
  same<typeof _answer, { vector: number[]; at: number }>();
  // @ts-expect-error the input has another type
  await model({ steps: 1 });
};

export const served = async (): Promise<void> => {
  await run({
    input,
    output,
    example: { prompt: 'a default need not be given' },
    inference: ({ prompt, steps }) => ({ vector: [prompt.length, steps], at: new Date() }),
    port: 8001,
  });
  // @ts-expect-error the answer lacks a field
  await run({ input, output, inference: () => ({ vector: [1] }) });
  // @ts-expect-error the input has no such field
  await run({ input, inference: ({ promp }) => String(promp) });
};
