/** Describes the schemas of an app's routes as JSON Schemas, by the libraries that they are written with. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { MAX_SCHEMAS_BYTES, MAX_SCHEMA_BYTES } from '../../protocol/wire/limits.js';
import { asClause } from '../../protocol/text/sentences.js';
import type { Route } from '../../protocol/wire/messages.js';
import type { LoadedApp } from '../adapters/loaded-app.js';
import type { StandardSchema } from '../api/standard-schema.js';
import { hintOnce } from '../process/hint-once.js';

/** Returns the routes with their JSON Schemas. `path`: the app's file. Never rejects: what has no form is left out. */
export async function describeSchemas(
  { schemas: schemasOf, description }: LoadedApp,
  path: string,
): Promise<Route[]> {
  const room = { left: MAX_SCHEMAS_BYTES };
  const routes: Route[] = [];
  for (const route of description.routes) {
    const { input, output } = schemasOf?.(route.path) ?? {};
    const told = {
      ...(input === undefined ? {} : await described(input, 'input', path, room)),
      ...(output === undefined ? {} : await described(output, 'output', path, room)),
    };
    routes.push(Object.keys(told).length === 0 ? route : { ...route, schemas: told });
  }
  return routes;
}

type Side = 'input' | 'output';

async function described(
  schema: StandardSchema,
  side: Side,
  path: string,
  room: { left: number },
): Promise<{ [S in Side]?: string }> {
  try {
    const text = JSON.stringify(await jsonSchemaOf(schema, side, path));
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_SCHEMA_BYTES || bytes > room.left)
      throw new Error(`it is too large, ${bytes} bytes of JSON`);
    room.left -= bytes;
    return { [side]: text };
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    hintOnce(
      'json schema',
      () => `The schema of an ${side} is not in /openapi.json, which leaves it free: ${asClause(why)}.`,
    );
    return {};
  }
}

/** The part of the specification of Standard JSON Schema; `libraryOptions` are those of zod and valibot. */
interface JsonSchemaMaker {
  readonly jsonSchema?: { readonly [S in Side]: (options: object) => unknown };
}

const OPTIONS = {
  target: 'draft-2020-12',
  libraryOptions: { unrepresentable: 'any', errorMode: 'ignore' }, // free is only the part that has no form
};

async function jsonSchemaOf(schema: StandardSchema, side: Side, path: string): Promise<unknown> {
  const { jsonSchema } = schema['~standard'] as JsonSchemaMaker;
  const { jsonSchema: maker } =
    jsonSchema === undefined && schema['~standard'].vendor === 'valibot'
      ? (await valibotConverter(path))(schema)['~standard']
      : { jsonSchema };
  if (maker === undefined) throw new Error(`${schema['~standard'].vendor} has no JSON Schema for it`);
  return maker[side](OPTIONS);
}

type ValibotConverter = (schema: StandardSchema) => { readonly '~standard': JsonSchemaMaker };

async function valibotConverter(path: string): Promise<ValibotConverter> {
  let file: string;
  try {
    file = createRequire(path).resolve('@valibot/to-json-schema');
  } catch {
    throw new Error('valibot needs a package for that, run npm install @valibot/to-json-schema');
  }
  const loaded = (await import(pathToFileURL(file).href)) as {
    readonly toStandardJsonSchema: ValibotConverter;
  };
  return loaded.toStandardJsonSchema;
}
