/**
 * Preloaded into a server by `front-heap.ts`: at SIGUSR2 its front collects garbage and writes what is left into the
 * test's folder. Workers have the same environment and do nothing of it.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const folder = process.env['CUES'];

if (folder !== undefined && process.argv[1]?.endsWith('cli.js')) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  process.on('SIGUSR2', () => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    writeFileSync(`${folder}/heap.part`, String(heapUsed + external));
    renameSync(`${folder}/heap.part`, `${folder}/heap`);
  });
}
