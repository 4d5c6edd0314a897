/**
 * Looks up the addresses of other machines in a process of its own. The system's look-up (getaddrinfo, which knows
 * the hosts file and search domains) blocks a thread for as long as a name server is silent, and cannot be called off:
 * it would take the few threads that Node has for look-ups from all others, and hold the server's exit, which waits for
 * its threads. A process can be killed.
 *
 * The process is started with the first look-up and ended when there were none for a while.
 */
import { fork, type ChildProcess } from 'node:child_process';
import type { LookupAddress, LookupOptions } from 'node:dns';
import { fileURLToPath } from 'node:url';

/** Of these threads libuv gives half to look-ups: one for each webhook that may be tried at once. */
const THREADS = 256;
const IDLE_MS = 30_000;
const PROGRAM = fileURLToPath(new URL('./look-up-process.js', import.meta.url));

export interface Question {
  readonly id: number;
  readonly name: string;
  readonly options: { readonly family: number; readonly hints: number };
}

export type Answer =
  | { readonly id: number; readonly addresses: readonly LookupAddress[] }
  | { readonly id: number; readonly code: string };

type Told = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

interface Asked {
  readonly name: string;
  readonly all: boolean;
  readonly told: Told;
}

export class LookUp {
  readonly #startProcess: () => ChildProcess;
  readonly #asked = new Map<number, Asked>();
  #process: ChildProcess | null = null;
  #idle: NodeJS.Timeout | undefined;
  #lastId = 0;

  constructor(startProcess: () => ChildProcess = startLookUpProcess) {
    this.#startProcess = startProcess;
  }

  /**
   * As `dns.lookup`, for `net.connect`. Tells once, unless `close` comes first; keeps the server's process alive
   * meanwhile.
   */
  readonly lookup = (name: string, options: LookupOptions, told: Told): void => {
    clearTimeout(this.#idle);
    this.#lastId += 1;
    const id = this.#lastId;
    this.#asked.set(id, { name, all: options.all === true, told });
    const { family, hints = 0 } = options;
    const question: Question = { id, name, options: { family: familyNumber(family), hints } };
    try {
      this.#process ??= this.#start();
      this.#keepAwake(true);
      this.#process.send(question, () => {}); // a process that is gone says so itself
    } catch (error) {
      this.#fail(id, (error as NodeJS.ErrnoException).code ?? 'EAI_AGAIN');
    }
  };

  /** Abandons what is not known yet. A later look-up starts anew. */
  close(): void {
    clearTimeout(this.#idle);
    this.#asked.clear();
    this.#process?.kill('SIGKILL');
    this.#process = null;
  }

  #start(): ChildProcess {
    const child = this.#startProcess();
    const gone = (code: string): void => {
      if (this.#process !== child) return;
      this.#process = null;
      for (const id of [...this.#asked.keys()]) this.#fail(id, code);
    };
    child.on('message', (answer: Answer) => this.#answer(answer));
    child.on('error', (error: NodeJS.ErrnoException) => gone(error.code ?? 'EAI_AGAIN'));
    child.on('exit', () => gone('EAI_AGAIN'));
    return child;
  }

  #keepAwake(awake: boolean): void {
    const how = awake ? 'ref' : 'unref';
    this.#process?.[how]();
    this.#process?.channel?.[how]();
  }

  #answer(answer: Answer): void {
    const asked = this.#asked.get(answer.id);
    if (asked === undefined) return;
    if ('code' in answer) {
      this.#fail(answer.id, answer.code);
      return;
    }
    const { addresses } = answer;
    this.#forget(answer.id);
    if (asked.all) asked.told(null, [...addresses]);
    else asked.told(null, addresses[0]?.address ?? '', addresses[0]?.family);
  }

  #fail(id: number, code: string): void {
    const asked = this.#asked.get(id);
    this.#forget(id);
    if (asked === undefined) return;
    const error = new Error(`getaddrinfo ${code} ${asked.name}`);
    asked.told(Object.assign(error, { code, syscall: 'getaddrinfo', hostname: asked.name }), []);
  }

  #forget(id: number): void {
    this.#asked.delete(id);
    if (this.#asked.size > 0) return;
    this.#keepAwake(false);
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.close(), IDLE_MS);
    this.#idle.unref();
  }
}

function familyNumber(family: LookupOptions['family']): number {
  if (family === 'IPv4') return 4;
  return family === 'IPv6' ? 6 : (family ?? 0);
}

function startLookUpProcess(): ChildProcess {
  const { NODE_OPTIONS: _, ...env } = process.env;
  return fork(PROGRAM, {
    env: { ...env, UV_THREADPOOL_SIZE: String(THREADS) },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
}
