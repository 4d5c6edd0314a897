/** Programs that use a store in a process of their own, as a worker does. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const INDEX = new URL('../../../../index.js', import.meta.url).href;

export interface Program {
  readonly process: ChildProcess;
  /** Resolves with the next line on stdout. @throws if the program ends first */
  line(): Promise<string>;
  readonly stderr: () => string;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

interface Bounds {
  /** In blocks of 512 bytes, which sh counts: no file may outgrow it. */
  readonly maxFileBlocks?: number;
  /** A folder that is a disk of its own for the program, and its size, as mount takes it. Needs `unshare`. */
  readonly diskOf?: readonly [folder: string, size: string];
}

/** Runs `body` as a module that has `Store`, `options` and `say(line)`. Killed with the test. */
export function runProgram(
  t: { after(undo: () => Promise<unknown>): void },
  body: string,
  options: unknown,
  { maxFileBlocks, diskOf }: Bounds = {},
): Program {
  const source = `import { Store } from ${JSON.stringify(INDEX)};
    import { writeSync } from 'node:fs';
    const options = ${JSON.stringify(options)};
    const say = (line) => writeSync(1, line + '\\n');
    ${body}`;
  const limited = ['sh', '-c', 'ulimit -f "$0"; exec "$@"', String(maxFileBlocks ?? 'unlimited')];
  const mounted = ['sh', '-c', 'mount -t tmpfs -o size="$0" tmpfs "$1"; shift; exec "$@"'];
  const own = diskOf && ['unshare', '--map-root-user', '--mount', ...mounted, diskOf[1], diskOf[0]];
  const [file = '', ...command] = own ?? limited;
  const child = spawn(file, [...command, process.execPath, '--input-type=module', '--eval', source], {
    stdio: 'pipe',
  });
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
