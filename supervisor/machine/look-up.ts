/**
 * Resolves host names in a separate process. The system's look-up (getaddrinfo, which reads the hosts file and search
 * domains) blocks a thread for as long as a name server does not answer, and cannot be cancelled: it would occupy the few
 * threads that Node has for look-ups, and delay the server's exit, which waits for its threads. A process can be killed.
 *
 * The process starts with the first look-up and ends after `IDLE_MS` without one.
 */
import { fork, type ChildProcess } from 'node:child_process';
import type { LookupAddress, LookupOptions } from 'node:dns';
import { fileURLToPath } from 'node:url';

/** libuv uses half of these threads for look-ups: one for each webhook that may be sent at once. */
const THREADS = 256;
const IDLE_MS = 30_000;
const PROGRAM = fileURLToPath(new URL('./look-up-process.js', import.meta.url));

export interface Question {
  readonly id: number;
  readonly name: string;
  readonly options: LookupOptions;
}

export type Answer =
  | { readonly id: number; readonly addresses: readonly LookupAddress[] }
  | { readonly id: number; readonly code: string };

type LookupCallback = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void;

export class LookUp {
  readonly #startProcess: () => ChildProcess;
  /** Take the answers of the questions that wait, by their ids. */
  readonly #pending = new Map<number, (answer: Answer) => void>();
  #process: ChildProcess | null = null;
  #idle: NodeJS.Timeout | undefined;
  #lastId = 0;

  constructor(startProcess: () => ChildProcess = startLookUpProcess) {
    this.#startProcess = startProcess;
  }

  /**
   * As `dns.lookup`, for `net.connect`. Calls back once, unless `close` comes first; keeps the server's process alive
   * until then.
   */
  readonly lookup = (name: string, options: LookupOptions, callback: LookupCallback): void => {
    clearTimeout(this.#idle);
    this.#lastId += 1;
    const id = this.#lastId;
    this.#pending.set(id, (answer) => {
      if ('code' in answer) callback(errorOf(name, answer.code), []);
      else if (options.all === true) callback(null, [...answer.addresses]);
      else callback(null, answer.addresses[0]?.address ?? '', answer.addresses[0]?.family);
    });
    const { family, hints } = options;
    const question: Question = { id, name, options: { family, hints } };
    try {
      this.#process ??= this.#start();
      this.#keepAwake(true);
      this.#process.send(question, () => {}); // the end of the process is reported by its own events
    } catch (error) {
      this.#answer({ id, code: (error as NodeJS.ErrnoException).code ?? 'EAI_AGAIN' });
    }
  };

  /** Abandons pending look-ups. A later look-up starts a new process. */
  close(): void {
    clearTimeout(this.#idle);
    this.#pending.clear();
    this.#process?.kill('SIGKILL');
    this.#process = null;
  }

  #start(): ChildProcess {
    const child = this.#startProcess();
    const fail = (code: string): void => {
      if (this.#process !== child) return;
      this.#process = null;
      for (const id of [...this.#pending.keys()]) this.#answer({ id, code });
    };
    child.on('message', (answer: Answer) => this.#answer(answer));
    child.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? 'EAI_AGAIN'));
    child.on('exit', () => fail('EAI_AGAIN'));
    return child;
  }

  #keepAwake(awake: boolean): void {
    const how = awake ? 'ref' : 'unref';
    this.#process?.[how]();
    this.#process?.channel?.[how]();
  }

  #answer(answer: Answer): void {
    const settle = this.#pending.get(answer.id);
    this.#pending.delete(answer.id);
    if (this.#pending.size === 0) {
      this.#keepAwake(false);
      clearTimeout(this.#idle);
      this.#idle = setTimeout(() => this.close(), IDLE_MS).unref();
    }
    settle?.(answer);
  }
}

function errorOf(name: string, code: string): Error {
  return Object.assign(new Error(`getaddrinfo ${code} ${name}`), {
    code,
    syscall: 'getaddrinfo',
    hostname: name,
  });
}

/** Says why a connection failed. If a name has several addresses, the error has no message but a list of errors. */
export function connectionFailure(thrown: unknown): string {
  const { message, code, errors } = thrown as { message?: string; code?: string; errors?: Error[] };
  return message || errors?.[0]?.message || code || 'unknown';
}

function startLookUpProcess(): ChildProcess {
  const { NODE_OPTIONS: _, ...env } = process.env;
  return fork(PROGRAM, {
    env: { ...env, UV_THREADPOOL_SIZE: String(THREADS) },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
}
