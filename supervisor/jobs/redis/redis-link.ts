/**
 * The connections of one front to Redis: one for commands, one that waits for news. Commands are refused at once while there is no
 * connection, and those under way fail with it; both connections are opened again by themselves. A Redis that is stuck is
 * found by a look that takes too long: then `reset` drops the connections, so that no command waits longer than that.
 */
import { randomBytes } from 'node:crypto';
import { describeThrown } from '../../../protocol/errors.js';
import { deferred } from '../../machine/deferred.js';
import { formatMs } from '../../options/units.js';
import { Unusable } from './check-redis.js';
import type { Packages, RedisClient } from './load-packages.js';
import { lookScripts } from './look-scripts.js';
import type { Script } from './layout.js';
import { stepScripts } from './step-scripts.js';

export interface LinkOptions {
  readonly packages: Packages;
  readonly url: string;
  /** The address without its password. */
  readonly place: string;
  /** Looks at a Redis before it is used, at each new connection. Rejects if it cannot be used. */
  readonly check: (client: RedisClient) => Promise<void>;
}

type Scripts = ReturnType<typeof stepScripts> & ReturnType<typeof lookScripts>;

const RECONNECT_MS = 300;
const CONNECT_LIMIT_MS = 3000;

/** A connection that is not open after this time is tried anew: a Redis that is stuck takes connections. */
const OPEN_LIMIT_MS = 5000;

/** Answers of a Redis that will be usable: it reads its file after a restart, a script runs long, a replica has no master. */
const PASSING = /^(LOADING|BUSY|MASTERDOWN) /;

export class RedisLink {
  /** Names this server in events. */
  readonly id = randomBytes(8).toString('hex');
  readonly commands: RedisClient;
  readonly #reader: RedisClient;
  /** The name of the reader's connection in Redis. */
  #readerId = 0;
  readonly #place: string;
  readonly #scripts: Scripts;
  readonly #library: Packages['redis'];
  readonly #check: LinkOptions['check'];
  readonly #opened = deferred<void>();
  #onOpened = (): void => {};
  #lastError: string | null = null;
  #isOpen = false;
  #isOpening = false;
  #isClosed = false;
  #patience: NodeJS.Timeout | null = null;

  constructor({ packages: { redis, bull }, url, place, check }: LinkOptions) {
    this.#library = redis;
    this.#scripts = { ...stepScripts(bull), ...lookScripts(bull) };
    this.#place = place;
    this.#check = check;
    const options = {
      url,
      RESP: 2,
      disableOfflineQueue: true,
      disableClientInfo: true,
      commandOptions: { timeout: 0 }, // its limit ends when the command is sent, which is at once, and costs a timer for each
      socket: { connectTimeout: CONNECT_LIMIT_MS, reconnectStrategy: () => RECONNECT_MS },
    } as const;
    this.commands = redis.createClient(options) as unknown as RedisClient;
    this.#reader = redis.createClient(options) as unknown as RedisClient;
    for (const client of this.#clients) client.on('error', (error: unknown) => this.#onError(error));
    for (const client of this.#clients) client.on('ready', () => void this.#onReady());
  }

  /** Both connections are open, and Redis can be used. */
  get isReady(): boolean {
    return this.#isOpen;
  }

  /** Why they are not open. */
  get problem(): string {
    return this.explain(new Error('no answer')).message;
  }

  /**
   * Resolves once both are open. Rejects if Redis answers, but cannot be used; waits while it is away. `onOpened`: called then,
   * and each time after they were not.
   */
  open(onOpened: () => void): Promise<void> {
    this.#onOpened = onOpened;
    this.#connect();
    return this.#opened.promise;
  }

  /** Uses the open connection. @throws with a message that names the address */
  async use<T>(command: () => Promise<T>): Promise<T> {
    if (!this.#isOpen) throw this.explain(new Error('no connection'));
    try {
      return await command();
    } catch (cause) {
      throw this.explain(cause);
    }
  }

  /** Runs a script. */
  run(script: keyof Scripts, args: readonly (string | number | Buffer)[]): Promise<unknown> {
    const texts = args.map((one) => (typeof one === 'number' ? String(one) : one));
    return this.use(() => this.#evaluate(this.#scripts[script], texts));
  }

  /** Reads a key as bytes. */
  bytes(key: string, field?: string): Promise<Buffer | null> {
    const typeMapping = { [this.#library.RESP_TYPES.BLOB_STRING]: Buffer };
    const command = field === undefined ? ['GET', key] : ['HGET', key, field];
    return this.use(() => this.commands.sendCommand<Buffer | null>(command, { typeMapping }));
  }

  /** Sends a command that waits for news; one at a time. Null if none came. */
  wait<T>(args: readonly string[]): Promise<T | null> {
    return this.use(() => this.#reader.sendCommand<T | null>(args));
  }

  /** Ends the command that waits. */
  unblockReader(): void {
    this.use(() => this.commands.sendCommand(['CLIENT', 'UNBLOCK', String(this.#readerId)])).catch(() => {});
  }

  /** An error of a command, or of a connection, as people read it. */
  explain(cause: unknown): Error {
    const { message } = describeThrown(cause);
    const why = this.isReady ? message : (this.#lastError ?? message);
    return new Error(`Redis at ${this.#place}: ${why}`, { cause });
  }

  /** Drops both connections and opens new ones; all that is under way fails. */
  reset(why: string): void {
    if (this.#isClosed) return;
    this.#shut(why);
    this.#drop();
    this.#connect();
  }

  close(): void {
    this.#isClosed = true;
    this.#shut('it is closed');
    this.#stopPatience();
    this.#drop();
  }

  get #clients(): readonly RedisClient[] {
    return [this.commands, this.#reader];
  }

  async #evaluate(script: Script, args: readonly (string | Buffer)[]): Promise<unknown> {
    const rest = ['0', ...args];
    try {
      return await this.commands.sendCommand(['EVALSHA', script.sha, ...rest]);
    } catch (error) {
      if (!describeThrown(error).message.startsWith('NOSCRIPT')) throw error;
      return this.commands.sendCommand(['EVAL', script.text, ...rest]); // Redis has started anew
    }
  }

  /** Clients connect again by themselves until they are destroyed. */
  #connect(): void {
    for (const client of this.#clients) client.connect().catch((error: unknown) => this.#onError(error));
    this.#wait();
  }

  #drop(): void {
    for (const client of this.#clients) if (client.isOpen) client.destroy();
  }

  async #onReady(): Promise<void> {
    const areReady = this.commands.isReady && this.#reader.isReady;
    if (!areReady || this.#isOpen || this.#isOpening || this.#isClosed) return;
    this.#isOpening = true;
    try {
      await this.#check(this.commands);
      this.#readerId = await this.#reader.clientId();
      // A new Redis has no scripts, and one that must be sent a second time would come after later ones.
      await Promise.all(
        Object.values<Script>(this.#scripts).map(({ text }) => this.commands.scriptLoad(text)),
      );
      this.#isOpen = true;
      this.#stopPatience();
      this.#opened.resolve();
      this.#onOpened();
    } catch (error) {
      this.#onError(error);
      if (this.#isPassing(error)) setTimeout(() => void this.#onReady(), RECONNECT_MS).unref();
    } finally {
      this.#isOpening = false;
    }
  }

  #onError(error: unknown): void {
    const { message } = describeThrown(error);
    const { code } = error as { code?: unknown };
    this.#shut(message === '' && typeof code === 'string' ? code : message);
    const isAnswer = error instanceof this.#library.ErrorReply && !this.#isPassing(error);
    if (isAnswer || error instanceof Unusable) this.#opened.reject(this.explain(error));
  }

  /** Asked again soon: who comes late to a Redis that has started anew finds its running jobs taken for lost. */
  #isPassing(error: unknown): boolean {
    return error instanceof this.#library.ErrorReply && PASSING.test(error.message);
  }

  #shut(why: string): void {
    this.#isOpen = false;
    this.#lastError = why;
    this.#wait();
  }

  /** Connects anew if that takes too long. */
  #wait(): void {
    if (this.#isClosed) return;
    this.#patience ??= setTimeout(() => {
      this.#patience = null;
      this.reset(this.#lastError ?? `it did not answer within ${formatMs(OPEN_LIMIT_MS)}`);
    }, OPEN_LIMIT_MS).unref();
  }

  #stopPatience(): void {
    if (this.#patience !== null) clearTimeout(this.#patience);
    this.#patience = null;
  }
}
