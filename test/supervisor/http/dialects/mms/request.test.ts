/** Paths as Multi Model Server reads them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RequestContext } from '../../../../../supervisor/http/request/request-context.js';
import { segmentsOf } from '../../../../../supervisor/http/dialects/mms/request.js';
import { namedPath, queryOf, writtenPath } from '../../../../../supervisor/http/socket/request-facts.js';

function askFor(url: string): RequestContext {
  const written = writtenPath(url);
  return { path: namedPath(written) ?? written, request: { url } } as unknown as RequestContext;
}

for (const [url, segments] of [
  ['/', []],
  ['//', []],
  ['/a', ['a']],
  ['/a/b//', ['a', 'b']],
  ['/a//b', ['a', '', 'b']],
  ['/a%2Fb%2F', ['a', 'b']],
  ['/%61%20b', ['a b']],
  ['/a%252Fb', ['a%2Fb']],
  ['http://host/a/b?c=%2F', ['a', 'b']],
  ['*', ['*']],
  ['/%zz/b', ['%zz', 'b']],
  ['/%ff', ['%ff']],
] as const)
  test(`${url} has the segments ${JSON.stringify(segments)}`, () =>
    assert.deepEqual(segmentsOf(askFor(url)), segments));

for (const [url, query] of [
  ['/a', ''],
  ['/a?', ''],
  ['/a?b=%31&b=2?', 'b=%31&b=2?'],
] as const)
  test(`${url} has the query ${JSON.stringify(query)}`, () => assert.equal(queryOf(askFor(url)), query));
