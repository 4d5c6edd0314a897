/**
 * A server whose unpacking stands still at a file called `held`, until the test lets it go on: what happens in the middle
 * of it can be tested at any speed of the machine. Node's `open` waits in that process; nothing of the server is another.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { makeCues, type Cues } from './cues.js';

/** The name of the entry at which it stands still. */
export const HELD = 'held';

const HOOK = `
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const folder = process.env.CUES;
const { open } = fs.promises;
fs.promises.open = async (path, ...more) => {
  if (String(path).endsWith('/${HELD}')) {
    fs.appendFileSync(folder + '/notes', 'unpacking ' + path + '\\n');
    while (!fs.existsSync(folder + '/go-on')) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return open(path, ...more);
};
syncBuiltinESMExports();
`;

export interface HeldUnpacking {
  /** Variables of the server. */
  readonly env: Readonly<Record<string, string>>;
  /** Holds the next unpacking too. */
  hold(): void;
  /** Resolves once it stands still. */
  untilHeld(): Promise<void>;
  goOn(): void;
}

export function holdUnpacking(t: TestContext): HeldUnpacking {
  const cues: Cues = makeCues(t);
  const hook = join(cues.folder, 'hook.mjs');
  writeFileSync(hook, HOOK);
  return {
    env: { ...cues.env, NODE_OPTIONS: `--import ${pathToFileURL(hook).href}` },
    hold: () => {
      rmSync(join(cues.folder, 'go-on'), { force: true });
      writeFileSync(join(cues.folder, 'notes'), '');
    },
    untilHeld: () => cues.untilNoted(/^unpacking /),
    goOn: () => cues.give('go-on'),
  };
}
