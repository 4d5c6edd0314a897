/** One program of the demo as a person runs it: started, asked over HTTP, started again at once when it has died, and killed. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { residentBytes } from '../machine/processes.js';

/** The limit of the JavaScript heap, for the program and for its workers. */
export const HEAP_MB = 128;

const FOLDER = fileURLToPath(new URL('../../../examples/demo', import.meta.url));
/** Without files of dumped memory, which a full heap may leave. */
const NO_DUMPS = 'ulimit -c 0; exec "$0" "$@"';

export class Program {
  readonly #path: string;
  #child: ChildProcess;
  #url: Promise<string>;
  #isOver = false;

  /** `name`: a file in examples/demo. */
  constructor(name: string) {
    this.#path = join(FOLDER, name);
    [this.#child, this.#url] = this.#start();
  }

  #start(): [child: ChildProcess, url: Promise<string>] {
    const options = `${process.env['NODE_OPTIONS'] ?? ''} --max-old-space-size=${HEAP_MB}`;
    const child = spawn('/bin/sh', ['-c', NO_DUMPS, process.execPath, this.#path], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: { ...process.env, NODE_OPTIONS: options },
    });
    const url = urlOf(child, this.#path);
    url.then(
      () => child.once('exit', () => this.#isOver || ([this.#child, this.#url] = this.#start())),
      () => {}, // whoever asks is told
    );
    return [child, url];
  }

  /** The JSON of an answer; rejects without one, and with another status than 200. */
  async ask(path: string, input?: object): Promise<unknown> {
    const given = input === undefined ? {} : { method: 'POST', body: JSON.stringify(input) };
    const response = await fetch((await this.#url) + path, given);
    const answer: unknown = await response.json();
    if (response.ok) return answer;
    throw new Error(JSON.stringify(answer));
  }

  /** Itself, then its workers. */
  pids(): Promise<readonly number[]> {
    return this.ask('/pids') as Promise<number[]>;
  }

  /** The resident memory of all its processes in MB; 0 where the system does not tell. */
  async memoryMb(): Promise<number> {
    const bytes = (await this.pids()).map((pid) => residentBytes(pid) ?? 0);
    return bytes.reduce((sum, one) => sum + one, 0) / 2 ** 20;
  }

  /** Its workers end with it. */
  end(): void {
    this.#isOver = true;
    this.#child.kill('SIGKILL');
  }
}

/** Resolves with its address once it listens. */
async function urlOf(child: ChildProcess, path: string): Promise<string> {
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString()).slice(-4000)));
  const stop = new AbortController();
  const { signal } = stop;
  const ended = once(child, 'close', { signal }).then(() => {
    throw new Error(`${path} ended before it listened: ${stderr}`);
  });
  const said = once(child, 'message', { signal }) as Promise<[number]>;
  ended.catch(() => {}); // one of the two is given up
  said.catch(() => {});
  try {
    const [port] = await Promise.race([said, ended]);
    return `http://127.0.0.1:${port}`;
  } finally {
    stop.abort();
  }
}
