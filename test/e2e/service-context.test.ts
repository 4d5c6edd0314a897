/** What a custom service is told of its batches, by the operator and by itself. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { call, startServer } from '../helpers/server.js';
import { appFolder } from '../worker/app-folder.js';

const LIMIT = { timeout: 60_000 };

const service = (config: string): string => `
  export const config = ${config};
  export const handle = (data, { systemProperties }) => data?.map(() => systemProperties.batch_size);`;

for (const [what, config, args, batchSize] of [
  ['nobody says how large', '{}', [], 1],
  ['the service itself says how large', '{ batchSize: 5 }', [], 5],
  ['the operator says how large, too', '{ batchSize: 5 }', ['--batch-size', '7'], 7],
] as const) {
  test(
    `a service of whose batches ${what} they are, is told ${batchSize} before its first call`,
    LIMIT,
    async (t) => {
      const folder = appFolder(t, { 'service.mjs': service(config) });
      const server = await startServer(join(folder, 'service.mjs'), { t, args });
      const answer = await call(`${server.url}/predictions/service`, '1', {
        'content-type': 'application/json',
      });
      assert.equal(answer.text, String(batchSize));
      await server.stop();
    },
  );
}
