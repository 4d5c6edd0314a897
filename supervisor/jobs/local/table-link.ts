/**
 * The way from the server to its table of jobs, which may be slow, hang with its disk, or die with its thread: SQLite's calls
 * block until the disk has their bytes. Each call is settled within seconds: then its answer is uncertain. A table that died
 * is opened again.
 */
import { Worker } from 'node:worker_threads';
import { describeThrown } from '../../../protocol/errors.js';
import { startLimit, within, type LimitTimer } from '../../machine/limit-timer.js';
import { formatMs } from '../../options/units.js';
import type { KeepLimits } from '../job-store.js';
import { ANSWER_LIMIT_MS } from './body-files.js';
import type { CannotOpen } from './job-database.js';
import type { Effects } from './job-rows.js';
import type { TableCall, TableCalls, TableNews, TableOptions } from './table-loop.js';

/** An open table. */
export interface TablePort {
  readonly opened: Effects;
  post(calls: readonly TableCall[]): void;
  /** Resolves once all calls are done and the table is closed. */
  close(): Promise<void>;
}

/**
 * Opens the table. `isFirst`: this server has not opened it before, so that all attempts in it are those of another. Rejects
 * with the error for the operator.
 */
export type OpenPort = (
  isFirst: boolean,
  onNews: (news: TableNews) => void,
  onDied: (why: string) => void,
) => Promise<TablePort>;

/** Gets what has changed. `isAll`: the table was just opened, for the first time or again, and counts are from zero. */
export type OnEffects = (effects: Effects, isAll: boolean) => void;

/** The call may have been done, or may be done later. */
export class Uncertain extends Error {
  override readonly name = 'Uncertain';
}

const REOPEN_MS = 1000;

/** Longest wait for a thread whose disk hangs at the end. */
const CLOSE_LIMIT_MS = 5000;

interface Pending {
  readonly call: TableCall;
  readonly sentAtMs: number;
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

export class TableLink {
  readonly #open: OpenPort;
  readonly #onEffects: OnEffects;
  readonly #pending = new Map<number, Pending>();
  /** Tokens of begins that are to be taken back, such as those whose answers never came. */
  readonly #tokens = new Set<string>();
  #port: TablePort | null = null;
  /** Why calls are refused; null while they are not. */
  #problem: string | null = null;
  #wasOpen = false;
  #isOpening = false;
  #number = 0;
  /** Calls of this turn of the event loop. */
  #outbox: TableCall[] = [];
  #limit: LimitTimer | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  private constructor(open: OpenPort, onEffects: OnEffects) {
    this.#open = open;
    this.#onEffects = onEffects;
  }

  /** If the disk is full, the table is opened later. @throws CannotOpen */
  static async open(open: OpenPort, onEffects: OnEffects): Promise<TableLink> {
    const link = new TableLink(open, onEffects);
    try {
      await link.#connect();
    } catch (error) {
      if (!(error as CannotOpen).isFull) throw error;
      link.#problem = (error as CannotOpen).message;
      link.#later();
    }
    return link;
  }

  /** Why no call is done; null while they are. */
  get problem(): string | null {
    return this.#problem;
  }

  /**
   * The calls of one turn of the event loop share a commit: the outcome of a job and the begin of the next one, for example.
   * Rejects with `Uncertain` if no answer came; with another error the call was not done.
   */
  send<Name extends keyof TableCalls>(
    name: Name,
    ...args: Parameters<TableCalls[Name]>
  ): Promise<ReturnType<TableCalls[Name]>> {
    return new Promise((resolve, reject) => {
      if (this.#port === null || this.#problem !== null) {
        reject(new Error(this.#problem ?? 'the store of jobs is closed'));
        return;
      }
      this.#number += 1;
      const call = { number: this.#number, name, args } as TableCall;
      this.#pending.set(call.number, { call, sentAtMs: performance.now(), resolve, reject });
      if (this.#outbox.push(call) === 1) setImmediate(() => this.#post());
      this.#watch();
    });
  }

  /** Gives back the jobs of a begin that no worker gets. Repeated until it is done. */
  takeBack(token: string): void {
    this.#tokens.add(token);
    this.#takeBack();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#post();
    await this.#port?.close();
    this.#port = null;
    this.#limit?.stop();
    this.#failAll('the store of jobs is closed');
  }

  /** Rejects if the table cannot be opened now. */
  async #connect(): Promise<void> {
    const port = await this.#open(
      !this.#wasOpen,
      (news) => this.#onNews(news),
      (why) => this.#onDied(why),
    );
    if (this.#isClosed) return void port.close();
    this.#port = port;
    this.#wasOpen = true;
    this.#problem = null;
    this.#onEffects(port.opened, true);
    this.#takeBack();
  }

  #post(): void {
    const calls = this.#outbox;
    this.#outbox = [];
    if (calls.length > 0) this.#port?.post(calls);
  }

  #onNews({ answers, effects }: TableNews): void {
    if (this.#port === null) return; // of a thread that is gone
    this.#problem = null;
    this.#onEffects(effects, false);
    for (const answer of answers) {
      const pending = this.#pending.get(answer.number);
      this.#pending.delete(answer.number);
      if (answer.failure === undefined) pending?.resolve(answer.value as never);
      else pending?.reject(new Error(answer.failure));
    }
  }

  #onDied(why: string): void {
    this.#port = null;
    this.#outbox = [];
    this.#problem = `the thread of the store of jobs has ended: ${why}`;
    this.#failAll(this.#problem);
    if (!this.#isClosed) this.#reopen();
  }

  #reopen(): void {
    this.#isOpening = true;
    this.#connect()
      .catch((error: unknown) => {
        this.#problem = describeThrown(error).message;
        this.#later();
      })
      .finally(() => (this.#isOpening = false));
  }

  /** Limits the time of the oldest call; the others were sent later. */
  #watch(): void {
    const [oldest] = this.#pending;
    if (this.#limit !== null || oldest === undefined) return;
    const [number, { sentAtMs }] = oldest;
    const leftMs = sentAtMs + ANSWER_LIMIT_MS - performance.now();
    this.#limit = startLimit(Math.max(0, leftMs), () => {
      this.#limit = null;
      if (this.#pending.has(number)) this.#onHung();
      this.#watch();
    });
  }

  /** Calls are refused until it answers one, or they would pile up in front of it. */
  #onHung(): void {
    const problem = `the store of jobs has not answered for ${formatMs(ANSWER_LIMIT_MS)}: its disk may hang`;
    this.#failAll(problem);
    this.#takeBack(); // stands behind the calls that hang
    this.#problem = problem;
  }

  #failAll(why: string): void {
    for (const { call, reject } of this.#pending.values()) {
      if (call.name === 'begin') this.#tokens.add(call.args[1]);
      reject(new Uncertain(why));
    }
    this.#pending.clear();
  }

  #takeBack(): void {
    for (const token of this.#tokens) {
      this.send('takeBack', token).then(
        () => this.#tokens.delete(token),
        () => this.#later(),
      );
    }
  }

  /** Tries again what has failed. */
  #later(): void {
    if (this.#isClosed || this.#timer !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#port !== null) this.#takeBack();
      else if (!this.#isOpening) this.#reopen();
    }, REOPEN_MS).unref();
  }
}

/** Opens the table in a thread of its own. `onStarted`: gets each thread, for tests. */
export function threadIn(
  folder: string,
  limits: KeepLimits,
  onStarted: (thread: Worker) => void = () => {},
): OpenPort {
  return (isFirst, onNews, onDied) =>
    new Promise((resolve, reject) => {
      const workerData: TableOptions = { folder, limits, isFirst };
      const thread = new Worker(new URL('./table-thread.js', import.meta.url), { workerData });
      onStarted(thread);
      let why = 'it ended by itself';
      const ended = new Promise<void>((onEnd) => thread.once('exit', () => onEnd()));
      thread.once('exit', () => reject(new Error(`the thread of the store of jobs has ended: ${why}`)));
      thread.on('error', (error) => {
        why = describeThrown(error).stack;
        reject(error);
      });
      const close = async (): Promise<void> => {
        thread.postMessage(null);
        await within(CLOSE_LIMIT_MS, ended);
        void thread.terminate();
      };
      thread.once('message', (opened: Effects) => {
        thread.on('message', onNews);
        thread.once('exit', () => onDied(why));
        resolve({ opened, post: (calls) => thread.postMessage(calls), close });
      });
    });
}
