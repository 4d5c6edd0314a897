/**
 * Runs tests of many files in one process: unit tests, for which a process for each file took a third of the CPU of
 * `npm test`, and tests with a server in their process, each of which would load the front. Each file is a suite, so its
 * hooks stay its own; the suites run one after the other.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, before, describe } from 'node:test';
import { pathToFileURL } from 'node:url';
import { ROOT } from '../helpers/server.js';
import { cpuSeconds, noteFile } from './cpu-time.js';

/** A process takes this many files: enough to share its start, few enough to keep all cores busy to the end. */
const FILES_EACH = { unit: 20, server: 6 };

/** Writes a test file for each process into `folder`, and returns their paths. Those of kind `server` may start processes. */
export function shareProcesses(
  files: readonly string[],
  folder: string,
  kind: keyof typeof FILES_EACH = 'unit',
): string[] {
  const count = Math.ceil(files.length / FILES_EACH[kind]);
  return Array.from({ length: count }, (_, index) => {
    const shared = join(folder, `${kind}-files-${index + 1}.test.mjs`);
    const own = files.filter((_file, position) => position % count === index);
    const source = [
      `import { defineFiles } from ${JSON.stringify(import.meta.url)};`,
      `defineFiles(${JSON.stringify(own)});`,
    ];
    writeFileSync(shared, `${source.join('\n')}\n`);
    return shared;
  });
}

/**
 * Lets the compiled files that start servers in their process share processes. One that changes its process has it alone, and
 * so has one that uses undici from npm, which keeps the dispatcher of fetch that is closed after each file.
 */
export function shareServerProcesses(files: readonly string[], folder: string): string[] {
  const shared = files.filter((file) => {
    const text = readFileSync(file, 'utf8');
    return (
      /^import .*helpers\/(?:here|shared-server|managed-command)\.js/m.test(text) &&
      !/^process\b| from 'undici'/m.test(text)
    );
  });
  return [...shareProcesses(shared, folder, 'server'), ...files.filter((file) => !shared.includes(file))];
}

/** Defines the tests of these compiled files, each in a suite of the file's path. */
export function defineFiles(files: readonly string[]): void {
  for (const file of files) {
    describe(relative(`${ROOT}dist`, file), async () => {
      let start = { cpu: cpuSeconds(), atMs: performance.now() };
      before(() => (start = { cpu: cpuSeconds(), atMs: performance.now() }));
      after(async () => {
        await closeConnections();
        const wallSeconds = (performance.now() - start.atMs) / 1000;
        noteFile({ file, cpuSeconds: cpuSeconds() - start.cpu, wallSeconds });
      });
      await import(pathToFileURL(file).href);
    });
  }
}

/**
 * Closes the connections that fetch keeps. A later file may have mocked `clearTimeout` when one closes by itself: its timer
 * would fire, and throw in that file's test.
 */
async function closeConnections(): Promise<void> {
  const globals = globalThis as unknown as Record<symbol, Dispatcher>;
  for (const symbol of Object.getOwnPropertySymbols(globals)) {
    const dispatcher = globals[symbol];
    if (!symbol.description?.startsWith('undici.globalDispatcher') || dispatcher === undefined) continue;
    if (dispatcher.constructor.name !== 'Agent') continue; // newer Nodes: the agent under its older name
    globals[symbol] = new (dispatcher.constructor as new () => Dispatcher)();
    await dispatcher.destroy();
  }
}

/** Fetch sends through it, in every version of Node. */
interface Dispatcher {
  destroy(): Promise<void>;
}
