/** The context of a custom service: options of the operator and of the service itself. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { call, startServer } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 240_000 };

/** A service with this batch size in its config, if any, that answers with the one in its context. */
const SERVICES: Readonly<Record<Language, (own: number | null) => [file: string, source: string]>> = {
  TypeScript: (own) => [
    'service.mjs',
    `export const config = ${own === null ? '{}' : `{ batchSize: ${own} }`};
     export const handle = (data, { systemProperties }) => data?.map(() => systemProperties.batch_size);`,
  ],
  Python: (own) => [
    'service.py',
    `config = ${own === null ? '{}' : `{"batch_size": ${own}}`}
def handle(data, context):
    return data and [context.system_properties["batch_size"] for _ in data]
`,
  ],
};

withEachRuntime(({ language }) => {
  for (const [what, own, args, batchSize] of [
    ['no option sets it', null, [], 1],
    ['its own config sets it', 5, [], 5],
    ['the operator sets it, too', 5, ['--batch-size', '7'], 7],
  ] as const) {
    test(`a service has batch_size ${batchSize} before its first call when ${what}`, LIMIT, async (t) => {
      const [file, source] = SERVICES[language](own);
      const server = await startServer(join(appFolder(t, { [file]: source }), file), { t, args });
      const answer = await call(`${server.url}/predictions/service`, '1', {
        'content-type': 'application/json',
      });
      assert.equal(answer.text, String(batchSize));
      await server.stop();
    });
  }
});
