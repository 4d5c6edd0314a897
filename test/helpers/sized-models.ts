/** Models whose workers hold memory of a chosen size, in a folder with a banana.json. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

export interface SizedModel {
  readonly mb: number;
  /** Memory of the simulated card, in MiB: a file of this number in `folder/card`, named after the process. */
  readonly gpuMib?: number;
  /** Its first worker runs out of memory while it loads. */
  readonly failsFirst?: boolean;
  readonly options?: Readonly<Record<string, unknown>>;
}

/** Each model scales itself from zero, unless its options say otherwise. Returns the folder; gone when the test ends. */
export function sizedModels(t: TestContext, models: Readonly<Record<string, SizedModel>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-sized-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const scaling = { minWorkers: 0, maxWorkers: 1, idleTimeout: '1h' };
  const config = Object.entries(models).map<[string, object]>(([name, model]) => {
    writeFileSync(join(folder, `${name}.mjs`), appOf(folder, name, model));
    return [name, { app: `./${name}.mjs`, ...(model.options ?? scaling) }];
  });
  writeFileSync(join(folder, 'banana.json'), JSON.stringify({ models: Object.fromEntries(config) }));
  return folder;
}

/** Answers after `ms` milliseconds, and once `folder` has the file `until`. The memory counts as used only since it was written. */
function appOf(folder: string, name: string, { mb, gpuMib, failsFirst = false }: SizedModel): string {
  const mark = JSON.stringify(join(folder, `${name}.failed`));
  const card = JSON.stringify(join(folder, 'card'));
  return `import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
let held;
export function init() {
  if (${failsFirst} && !existsSync(${mark})) {
    writeFileSync(${mark}, '');
    throw new RangeError('Array buffer allocation failed');
  }
  held = Buffer.alloc(${mb} * 2 ** 20, 1);
  if (${gpuMib !== undefined}) {
    mkdirSync(${card}, { recursive: true });
    writeFileSync(${card} + '/' + process.pid, '${gpuMib ?? 0}');
  }
}
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export async function inference({ ms = 0, until }) {
  await pause(ms);
  while (until !== undefined && !existsSync(${JSON.stringify(folder)} + '/' + until)) await pause(5);
  return { pid: process.pid, bytes: held.length };
}
`;
}
