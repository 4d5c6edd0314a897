/** Workers start one at a time per GPU, where memory peaks during init, and in parallel across GPUs. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { makeCues } from '../helpers/cues.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';

const LIMIT = { timeout: 240_000 };

withOneRuntime(({ app }) => {
  test(
    'two GPUs with two workers each: inits take turns on a GPU and overlap across GPUs',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--workers-per-gpu', '2', '--spawn-concurrency', '8'];
      const env = {
        ...cues.env,
        PATH: pathWithGpus(cues.folder, 2),
        CUDA_VISIBLE_DEVICES: '0,1',
      };
      const server = await startHere(app('starts-slowly'), { t, env, args });
      await Promise.all(['start 0', 'start 1'].map((line) => cues.untilNoted(line)));
      const { model: starting } = await server.status();
      assert.deepEqual(
        starting.workers.map(({ pid }) => pid !== null),
        [true, false, true, false],
        'both GPUs begin before either has ended, each with one process',
      );
      cues.give('init may end');
      await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
      const notes = cues.notes();
      for (const gpu of ['0', '1']) {
        const own = notes.filter((line) => line.endsWith(` ${gpu}`));
        assert.deepEqual(own, [`start ${gpu}`, `end ${gpu}`, `start ${gpu}`, `end ${gpu}`]);
      }
      const { model } = await server.status();
      assert.deepEqual(
        model.workers.map(({ device }) => device),
        ['gpu 0', 'gpu 0', 'gpu 1', 'gpu 1'],
      );
      await server.stop();
    },
  );

  test('a worker that dies in init gives its GPU to the next one waiting', LIMIT, async (t) => {
    const cues = makeCues(t);
    const args = ['--workers-per-gpu', '2', '--restart-limit', '0'];
    const env = { PATH: pathWithGpus(cues.folder, 1) };
    const server = await startHere(app('throws-in-one-slot'), { t, env, args });
    const { model } = await server.until((status) =>
      status.model.workers.every(({ state, lastExit }) => state === 'idle' || lastExit !== null),
    );
    assert.deepEqual(
      model.workers.map(({ lastExit }) => lastExit === null),
      [true, false],
    );
    server.process.kill('SIGINT');
    await server.ended;
  });
});

/** A PATH on which `nvidia-smi -L` lists this many cards. */
function pathWithGpus(folder: string, count: number): string {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const cards = Array.from({ length: count }, (_, i) => `echo 'GPU ${i}: Fake A100 (UUID: GPU-fake-${i})'`);
  writeFileSync(join(bin, 'nvidia-smi'), `#!/bin/sh\n${cards.join('\n')}\n`);
  chmodSync(join(bin, 'nvidia-smi'), 0o755);
  return `${bin}${delimiter}${process.env['PATH'] ?? ''}`;
}
