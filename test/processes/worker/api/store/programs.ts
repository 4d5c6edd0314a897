/** Programs that use a store in a process of their own, as a worker does. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { BOUND_BY_MODES } from '../../../../helpers/bound-by-modes.js';

const INDEX = new URL('../../../../../index.js', import.meta.url).href;

export interface Program {
  readonly process: ChildProcess;
  /** Resolves with the next line on stdout. @throws if the program ends first */
  line(): Promise<string>;
  readonly stderr: () => string;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

/** Runs a program so that no file of its may outgrow so many blocks of 512 bytes, which sh counts. */
export function withFileLimit(blocks: number): string[] {
  return ['sh', '-c', 'ulimit -f "$0"; exec "$@"', String(blocks)];
}

/** Runs a program for which the folder is a disk of its own, of a size as mount takes it. Needs `unshare`. */
export function withOwnDisk(folder: string, size: string): string[] {
  const mount = ['sh', '-c', 'mount -t tmpfs -o size="$0" tmpfs "$1"; shift; exec "$@"', size, folder];
  return ['unshare', '--map-root-user', '--mount', ...mount];
}

/** Runs a program that may read and write only what the mode of a file grants, root too. Needs `BOUND_BY_MODES`. */
export function boundByModes(): string[] {
  const without = '-dac_override,-dac_read_search';
  return BOUND_BY_MODES.length === 0 ? [] : ['setpriv', `--bounding-set=${without}`, `--inh-caps=${without}`];
}

/** Runs `body` as a module that has `Store`, `options` and `say(line)`. Killed with the test. */
export function runProgram(
  t: { after(undo: () => Promise<unknown>): void },
  body: string,
  options: unknown,
  /** The command that runs it in another way than as it is. */
  within: readonly string[] = [],
): Program {
  const source = `import { Store } from ${JSON.stringify(INDEX)};
    import { writeSync } from 'node:fs';
    const options = ${JSON.stringify(options)};
    const say = (line) => writeSync(1, line + '\\n');
    ${body}`;
  const [file = '', ...args] = [...within, process.execPath, '--input-type=module', '--eval', source];
  const child = spawn(file, args, { stdio: 'pipe' });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }));
  t.after(() => {
    child.kill('SIGKILL');
    return ended;
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    process: child,
    stderr: () => stderr,
    ended,
    async line() {
      const next = await lines.next();
      if (next.done === true) throw new Error(`the program ended and said no more: ${stderr}`);
      return next.value;
    },
  };
}
