/** Infers a schema from an example: a guess, so no property is required, and others are allowed. */
import { FREE, type JsonSchema } from './operation.js';

/** Deeper values, and further properties, are allowed without a description. */
const MAX_DEPTH = 8;
const MAX_PROPERTIES = 200;

/** Number of properties that may still be described. */
interface Room {
  left: number;
}

/** `example`: a value of JSON. */
export function inferSchema(example: unknown): JsonSchema {
  return commonSchema([example], 0, { left: MAX_PROPERTIES });
}

/** Describes all of these values; they are free if they differ in kind, and where one is null. */
function commonSchema(values: readonly unknown[], depth: number, room: Room): JsonSchema {
  const [kind, ...others] = new Set(values.map(kindOf));
  if (kind === undefined || others.length > 0 || depth > MAX_DEPTH) return FREE;
  if (kind === 'null') return FREE;
  if (kind === 'array')
    return { type: kind, items: commonSchema((values as unknown[][]).flat(), depth + 1, room) };
  if (kind === 'object') return commonObject(values as object[], depth, room);
  return { type: kind };
}

function commonObject(objects: readonly object[], depth: number, room: Room): JsonSchema {
  const byName = new Map<string, unknown[]>();
  for (const [name, value] of objects.flatMap((object) => Object.entries(object) as [string, unknown][])) {
    const values = byName.get(name);
    if (values === undefined) byName.set(name, [value]);
    else values.push(value);
  }
  const described = [...byName].slice(0, room.left);
  room.left -= described.length;
  const properties = described.map(
    ([name, values]) => [name, commonSchema(values, depth + 1, room)] as const,
  );
  return { type: 'object', properties: Object.fromEntries(properties), additionalProperties: true };
}

type Kind = 'null' | 'array' | 'object' | 'string' | 'number' | 'boolean';

function kindOf(value: unknown): Kind {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : (typeof value as Kind);
}
