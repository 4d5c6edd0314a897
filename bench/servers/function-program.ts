/** The handle on a program that calls a model as a function (`function-main.ts`), and what the two tell each other. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Percentiles } from '../statistics.js';
import { compiled } from './child-server.js';

/** In its own thread; in piscina, with copies or moved arrays; as our function, also one that computes long; over our HTTP, arrays as bytes or as JSON. */
export type Way = 'thread' | 'piscina' | 'piscina-moves' | 'function' | 'busy' | 'http' | 'http-json';

export type InputName = 'small' | '1 MB' | '10 MB';

export type FunctionOrder =
  | {
      readonly do: 'load';
      readonly input: InputName;
      readonly callers: number;
      readonly seconds: number;
      readonly maxCalls: number;
    }
  | { readonly do: 'kill' }
  | { readonly do: 'compute'; readonly seconds: number };

export interface FunctionAnswer {
  /** Time since the start of the process. */
  readonly firstAnswerMs?: number;
  readonly pids?: readonly number[];
  /** Times in ms. */
  readonly load?: { readonly calls: number; readonly p50: number; readonly p99: number };
  readonly recoveryMs?: number;
  readonly lateness?: Percentiles;
}

export class FunctionProgram {
  readonly #child: ChildProcess;
  readonly firstAnswerMs: number;
  /** Workers that it calls; not those of a server. */
  workers: readonly number[];

  /** Resolves once its first call is answered. `url`: that of the server which it calls. */
  static async start(way: Way, url = ''): Promise<FunctionProgram> {
    const child = fork(compiled('servers/function-main.js'), [way, url], { serialization: 'advanced' });
    return new FunctionProgram(child, await answerOf(child));
  }

  private constructor(child: ChildProcess, { firstAnswerMs = NaN, pids = [] }: FunctionAnswer) {
    this.#child = child;
    this.firstAnswerMs = firstAnswerMs;
    this.workers = pids;
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  async follow(order: FunctionOrder): Promise<FunctionAnswer> {
    const answer = answerOf(this.#child);
    this.#child.send(order);
    const { pids = this.workers } = await answer;
    this.workers = pids;
    return answer;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}

async function answerOf(child: ChildProcess): Promise<FunctionAnswer> {
  const stop = new AbortController();
  const { signal } = stop;
  const died = once(child, 'exit', { signal }).then((): never => {
    throw new Error('a program that calls a function died');
  });
  died.catch(() => {}); // given up when it has answered
  try {
    const [answer] = (await Promise.race([once(child, 'message', { signal }), died])) as [FunctionAnswer];
    return answer;
  } finally {
    stop.abort();
  }
}
