/** A library in the place of CUDA's driver, for machines without a GPU; needs('cc'). */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { appFolder } from '../worker/app-folder.js';
import { ROOT } from './server.js';

/** Path of the library, whose functions test/fixtures/cuda-driver.c describes; it is gone after the test. */
export function makeCudaDriver(t: { after(undo: () => void): void }): string {
  const path = join(appFolder(t, {}), 'cuda-driver.so');
  const options = ['-shared', '-fPIC', '-nostdlib', '-Wl,-soname,libcuda.so.1'];
  execFileSync('cc', [...options, '-o', path, `${ROOT}test/fixtures/cuda-driver.c`]);
  return path;
}
