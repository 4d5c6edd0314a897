import assert from 'node:assert/strict';
import { join } from 'node:path';
import { beforeEach, test } from 'node:test';
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import type { LoadedApp } from '../../../worker/adapters/loaded-app.js';
import type { RouteSchemas, StandardSchema } from '../../../worker/api/standard-schema.js';
import { describeSchemas } from '../../../worker/load/describe-schemas.js';
import { writeHintsTo } from '../../../worker/process/hint-once.js';
import { ROOT } from '../../helpers/server.js';

let lines: string[] = [];
beforeEach(() => {
  lines = [];
  writeHintsTo((line) => lines.push(line));
});

interface Shape {
  readonly properties: { readonly [name: string]: { readonly type?: string } };
  readonly required: readonly string[];
}

type Told = Readonly<Record<string, Shape>>;

/** The JSON Schemas of an app's routes, by their sides; of no schema, an empty object. */
async function described(routes: readonly RouteSchemas[], path = join(ROOT, 'app.ts')): Promise<Told[]> {
  const schemas = (route: string): RouteSchemas | undefined => routes[Number(route.slice(1))];
  const description = { routes: routes.map((_, i) => ({ path: `/${i}` })) };
  const told = await describeSchemas({ schemas, description } as unknown as LoadedApp, path);
  return told.map((route) =>
    Object.fromEntries(
      Object.entries(route.schemas ?? {}).map(([side, text]) => [side, JSON.parse(text ?? '') as Shape]),
    ),
  );
}

/** An object of a text that becomes a number, of a field with a default, and of one that has no form. */
const LIBRARIES: Readonly<Record<string, StandardSchema>> = {
  zod: z.object({
    made: z.string().transform(Number).pipe(z.number()),
    steps: z.number().default(10),
    at: z.date().optional(),
  }),
  valibot: v.object({
    made: v.pipe(v.string(), v.transform(Number), v.number()),
    steps: v.optional(v.number(), 10),
    at: v.optional(v.date()),
  }),
  arktype: type({ made: 'string.numeric.parse', steps: 'number = 10', 'at?': 'Date' }),
};

for (const [library, schema] of Object.entries(LIBRARIES))
  test(`${library}: a schema has its fields as they are on each side, and only the part is free that has no form`, async () => {
    const [told] = await described([{ input: schema, output: schema }]);
    const { input, output } = told ?? {};
    assert.deepEqual(
      [input?.properties['made']?.type, input?.properties['steps']?.type],
      ['string', 'number'],
    );
    assert.deepEqual(input?.required, ['made']);
    assert.deepEqual(input?.properties['at'], {});
    assert.deepEqual(output?.properties['made']?.type, 'number');
    assert.deepEqual(lines, []);
  });

test('what throws, has no form, or is larger than 256 KiB is left out, with one line for all', async () => {
  const failing = (): never => {
    throw new Error('it has no form.');
  };
  const own = { version: 1, vendor: 'own', validate: (value: unknown) => ({ value }) } as const;
  const throws = { '~standard': { ...own, jsonSchema: { input: failing, output: failing } } };
  const large = z.enum(Array.from({ length: 20_000 }, (_, i) => `a value ${i}`) as [string]);
  const told = await described([
    { input: throws },
    { input: { '~standard': own } },
    { input: large, output: z.string() },
  ]);
  assert.deepEqual(
    told.map((one) => Object.keys(one)),
    [[], [], ['output']],
  );
  assert.deepEqual(lines, [
    'The schema of an input is not in /openapi.json, which leaves it free: it has no form. (This is logged once per worker.)',
  ]);
});

test("valibot's converter is that of the app's folder; the line says how to install it", async () => {
  const input = v.object({ a: v.number() });
  assert.deepEqual(await described([{ input }], '/app.ts'), [{}]);
  assert.match(
    lines.join(),
    /free: valibot needs a package for that, run npm install @valibot\/to-json-schema\. \(/,
  );
});
