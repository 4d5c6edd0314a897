/** The context of a custom service: options of the operator and of the service itself. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { call } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
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
  describe('on one server', LIMIT, () => {
    const rows = [
      ['nothing', 'no option sets it', null, {}, 1],
      ['own', 'its own config sets it', 5, {}, 5],
      ['both', 'the operator sets it, too', 5, { batchSize: 7 }, 7],
    ] as const;
    const files = rows.map(([name, , own]) => {
      const [file, source] = SERVICES[language](own);
      return [`${name}/${file}`, source] as const;
    });
    const models = rows.map(([name, , , options], i) => [name, { app: `./${files[i]?.[0]}`, ...options }]);
    const config = JSON.stringify({ models: Object.fromEntries(models) as object });
    const cwd = appFolder({ after }, { ...Object.fromEntries(files), 'banana.json': config });
    const shared = shareHere(null, { cwd });

    for (const [name, what, , , batchSize] of rows)
      test(`a service has batch_size ${batchSize} before its first call when ${what}`, async () => {
        const answer = await call(`${shared.server.url}/predictions/${name}`, '1');
        assert.equal(answer.text, String(batchSize));
      });
  });
});
