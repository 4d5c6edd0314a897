/**
 * The JSON files with the fixed paths of the dialects. TypeScript reads every word of them as any text, so each is compared
 * with the code here.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { ERRORS } from '../../../../protocol/errors.js';
import {
  MAIN_DIALECTS,
  MANAGEMENT_DIALECTS,
  dialectsOf,
} from '../../../../supervisor/http/dialects/index.js';
import type { Dialect } from '../../../../supervisor/http/dialects/dialect.js';
import { operationsOf, type ApiFile } from '../../../../supervisor/http/openapi/operation.js';
import { JOB_STATES } from '../../../../supervisor/jobs/job-record.js';
import { RUNTIME_NAMES } from '../../../../supervisor/runtimes/index.js';
import { ROOT } from '../../../helpers/server.js';
import { SERVERS, type Served } from '../openapi/described-servers.js';

const main = dialectsOf((SERVERS['several models, with management and metrics'] as Served).settings).main;
const DIALECTS = [...(main?.inOrder ?? []), ...MAIN_DIALECTS.inOrder, ...MANAGEMENT_DIALECTS.inOrder];

/** Files and their dialects. */
const FILES: readonly (readonly [file: string, dialects: readonly string[]])[] = [
  ['banana.json', ['banana']],
  ['metrics.json', ['metrics']],
  ['openapi.json', ['openapi']],
  ['cog/paths.json', ['cog']],
  ['gateway/paths.json', ['gateway']],
  ['mms/description.json', ['mms', 'mms-management']],
  ['open-inference/paths.json', ['open-inference']],
  ['openai/paths.json', ['openai']],
  ['openai/rerank.json', ['rerank']],
  ['potassium/paths.json', ['potassium']],
  ['predict/paths.json', ['kserve-v1']],
  ['v1/paths.json', ['v1']],
  ['web-page/paths.json', ['page']],
];

function read(file: string): Required<ApiFile> {
  const text = readFileSync(`${ROOT}supervisor/http/dialects/${file}`, 'utf8');
  return { parts: {}, ...(JSON.parse(text) as ApiFile) };
}

/** The methods of each path, of all dialects with these names. */
function answeredBy(names: readonly string[]): Map<string, Set<string>> {
  const answered = new Map<string, Set<string>>();
  const rows = DIALECTS.filter(({ name }) => names.includes(name)).flatMap(({ paths }: Dialect) => [
    ...paths,
  ]);
  for (const [path, methods] of rows)
    answered.set(path, new Set([...(answered.get(path) ?? []), ...methods.toLowerCase().split(', ')]));
  return answered;
}

test('every dialect has a file', () => {
  const named = FILES.flatMap(([, names]) => names);
  assert.deepEqual([...new Set(DIALECTS.map(({ name }) => name))].sort(), [...named].sort());
});

for (const [file, names] of FILES)
  describe(file, () => {
    const { paths, parts } = read(file);
    const operations = operationsOf({ paths, parts });

    test('has the paths that its dialect answers, with methods that they take', () => {
      const answered = answeredBy(names);
      const isSlashed = file === 'gateway/paths.json'; // its clients write a slash at the end, people do not
      const own = [...answered.keys()].filter((path) => !isSlashed || path.endsWith('/'));
      assert.deepEqual(Object.keys(paths).sort(), own.sort());
      for (const { path, method } of operations)
        assert.ok(answered.get(path)?.has(method) === true, `${method} ${path}`);
    });

    test('names errors of the error table, and places of keys that there are', () => {
      for (const { path, auth, failures = [] } of operations) {
        assert.ok(['none', 'call', 'management', 'body'].includes(auth), `${auth} of ${path}`);
        for (const { code } of failures) assert.ok(Object.hasOwn(ERRORS, code), `${code} of ${path}`);
      }
    });

    test('uses each of its parts, and no others', () => {
      const used = [...JSON.stringify({ paths, parts }).matchAll(/"\$ref":"#([^"]*)"/g)].map(
        ([, name]) => name,
      );
      assert.deepEqual([...new Set(used)].sort(), Object.keys(parts).sort());
    });

    test('says something of each operation, once', () => {
      const ids = operations.map(({ operationId }) => operationId);
      assert.deepEqual(ids, [...new Set(ids)]);
      for (const { path, operationId, description, responses } of operations) {
        assert.ok(operationId !== '' && description !== '', path);
        for (const reply of Object.values(responses))
          assert.notEqual((reply as { description?: string }).description ?? '', '', path);
      }
    });
  });

test('the states of jobs and the names of runtimes are those of the code', () => {
  const words = (file: string, part: string): unknown => (read(file).parts[part] as { enum: unknown }).enum;
  assert.deepEqual(words('potassium/paths.json', 'state'), JOB_STATES);
  assert.deepEqual(words('mms/description.json', 'runtime'), RUNTIME_NAMES);
});

test('a registration takes the same parameters from a query and from a body', () => {
  const [post] = operationsOf(read('mms/description.json')).filter(
    ({ operationId }) => operationId === 'registerModel',
  );
  const { parameters = [], requestBody } = post ?? {};
  const { content } = requestBody as { content: Record<string, { schema: { properties: object } }> };
  const inQuery = parameters as readonly { readonly name: string; readonly schema: object }[];
  assert.deepEqual(
    inQuery.map(({ name, schema }) => [name, schema]),
    Object.entries(content['application/json']?.schema.properties ?? {}),
  );
});
