/**
 * `node dist/bench/json.js`: typed arrays and BigInts as JSON, by accessors on the built-in prototypes, by a replacer
 * function, or by a walk that copies first? And what does the search for blind spots cost, and an object that has one?
 * worker/values/json-encoding.ts rests on its results.
 */
import { compareSteps } from './micro.js';

// Before the import: the accessors it installs answer only inside encodeJson, but their lookup is never free.
const plainStringify = JSON.stringify;

const VALUES: Readonly<Record<string, unknown>> = {
  'a small object': { label: 7, probabilities: [0, 0, 0, 0, 0, 0, 0, 1, 0, 0], model: 'digits' },
  'a large plain object, about 1 MB': {
    items: Array.from({ length: 9000 }, (_, i) => ({
      id: i,
      label: `item number ${i}`,
      score: i / 7,
      tags: ['a', 'b'],
    })),
  },
  'an object of 50,000 keys': Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`key ${i}`, i])),
  'a Float32Array of 100,000 inside an object': {
    data: Float32Array.from({ length: 100_000 }, (_, i) => i / 3),
  },
};

for (const [title, value] of Object.entries(VALUES)) {
  compareSteps(`${title}: plain JSON.stringify, before the accessors are installed`, {
    'JSON.stringify (typed arrays come out wrong)': () => Buffer.from(plainStringify(value)),
  });
}

const { encodeJson } = await import('../worker/values/json-encoding.js');
const { hasBlindSpot } = await import('../worker/values/json-encoding.js');

for (const [title, value] of Object.entries(VALUES)) {
  compareSteps(title, {
    'accessors (encodeJson)': () => encodeJson(value),
    'a replacer function': () => Buffer.from(JSON.stringify(value, replace)),
    'a walk, then JSON.stringify': () => Buffer.from(JSON.stringify(walk(value))),
    'JSON.stringify (typed arrays come out wrong)': () => Buffer.from(JSON.stringify(value)),
    'the search for blind spots, a part of encodeJson': () => hasBlindSpot(value),
  });
}

const large = VALUES['a large plain object, about 1 MB'];
const withToJson = [{ toJSON: () => 'the app converts this one itself' }, large];
compareSteps('a large object behind a toJSON of the app', {
  'encodeJson without that toJSON': () => encodeJson(large),
  encodeJson: () => encodeJson(withToJson),
});

function replace(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return Array.from(value as Float32Array);
  if (value instanceof Map) return Object.fromEntries(value) as unknown;
  if (value instanceof Set) return [...(value as Set<unknown>)];
  return value;
}

function walk(value: unknown): unknown {
  const plain = replace('', value);
  if (typeof plain !== 'object' || plain === null || ArrayBuffer.isView(value)) return plain;
  if (Array.isArray(plain)) return plain.map(walk);
  return Object.fromEntries(Object.entries(plain).map(([key, item]) => [key, walk(item)]));
}
