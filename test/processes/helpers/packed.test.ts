/** A failed install is tried again, and its last failure is reported. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install } from '../../helpers/packed.js';

test('an install is tried three times, and no more often than it has to be', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'banana-installs-'));
  t.after(() => rm(folder, { recursive: true }));
  const tries = async (): Promise<number> => (await readFile(join(folder, 'tries'), 'utf8')).length;
  const failing = (times: number): readonly string[] => [
    '-c',
    `printf . >> tries; n=$(wc -c < tries); echo "no registry, $n" >&2; [ "$n" -gt ${times} ]`,
  ];
  await install('sh', failing(2), { cwd: folder });
  assert.equal(await tries(), 3);
  await install('sh', failing(0), { cwd: folder });
  assert.equal(await tries(), 4);
  await assert.rejects(install('sh', failing(99), { cwd: folder }), /no registry, 7/);
  assert.equal(await tries(), 7);
});
