/** Random requests: a dialect claims each or not, and throws only errors that can be answered. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ServeError } from '../../../../protocol/errors.js';
import type { RequestContext } from '../../../../supervisor/http/request/request-context.js';
import {
  MAIN_DIALECTS,
  MANAGEMENT_DIALECTS,
  MMS_DIALECTS,
  withManagement,
} from '../../../../supervisor/http/dialects/index.js';
import { namedPath, writtenPath } from '../../../../supervisor/http/socket/request-facts.js';
import { Registry } from '../../../../supervisor/models/models.js';

const WORDS = [
  'predictions',
  'models',
  'invoke',
  'predict',
  'm',
  'readyz',
  '_k',
  'jobs',
  'start',
  'v4',
  'all',
  'v2',
  'versions',
  'infer',
  'repository',
  'load',
];
const urls = fc
  .array(fc.oneof(fc.constantFrom('/', '%', '%2F', '%zz', '?', '*', ...WORDS), fc.string()), { maxLength: 9 })
  .map((parts) => parts.join(''));
const methods = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS');

/** A registry of one model, `m`, whose app is loaded. */
function models(): Registry {
  const registry = new Registry();
  const spec = { name: 'm', version: '1' };
  const routes = new Map([['/', { path: '/', kind: 'handler', input: 'any' }]]);
  registry.addFirst({ spec, routes } as unknown as ReturnType<typeof registry.registered>, false);
  return registry;
}

for (const [listener, dialects] of Object.entries({
  main: MAIN_DIALECTS,
  'main without an app': MMS_DIALECTS,
  management: MANAGEMENT_DIALECTS,
  shared: withManagement(MMS_DIALECTS),
}))
  describe(`on the listener ${listener}`, () => {
    const registry = models();
    const askFor = (method: string, url: string): RequestContext => {
      const written = writtenPath(url);
      const path = namedPath(written) ?? written;
      const request = { method, url, headers: {} };
      return {
        path,
        request,
        listener,
        isWebSocket: false,
        backend: { models: registry },
      } as unknown as RequestContext;
    };

    for (const dialect of dialects.inOrder)
      test(`${dialect.name} claims a request or returns null`, () => {
        fc.assert(
          fc.property(urls, methods, (url, method) => {
            if (namedPath(writtenPath(url)) === null) return; // no dialect is asked to claim it
            try {
              dialect.claim(askFor(method, url), registry);
            } catch (thrown) {
              assert.ok(thrown instanceof ServeError, String(thrown));
            }
          }),
        );
      });

    test('a request that no dialect claims has an answer', () => {
      fc.assert(
        fc.property(urls, methods, (url, method) => {
          assert.ok(dialects.default.unclaimed(askFor(method, url), registry).act);
        }),
      );
    });
  });
