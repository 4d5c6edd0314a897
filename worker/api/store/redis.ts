/**
 * Values in a Redis, as plain `SET key value PX ttl`: other programs can read and write them.
 *
 * The first call opens the only connection. There are no reconnects in the background: a call without a connection
 * opens one, so an unreachable Redis costs each call one attempt, and none after it is back.
 */
import { createClient, ErrorReply, RESP_TYPES } from 'redis';
import type { RedisAddress } from './config.js';
import type { Backend } from './rules.js';

type Client = ReturnType<typeof createClient>;

interface Connection {
  readonly client: Client;
  readonly opened: Promise<unknown>;
}

const BINARY = { [RESP_TYPES.BLOB_STRING]: Buffer };

/** Time limit of one call, connecting included. */
const CALL_LIMIT_MS = 5000;

export class RedisBackend implements Backend {
  readonly #address: RedisAddress;
  readonly #limitMs: number;
  #connection: Connection | null = null;

  constructor(address: RedisAddress, limitMs = CALL_LIMIT_MS) {
    this.#address = address;
    this.#limitMs = limitMs;
  }

  async get(key: string): Promise<Buffer | null> {
    return (await this.#call(['GET', key])) as Buffer | null;
  }

  async set(key: string, bytes: Buffer, ttlMs: number | null): Promise<void> {
    await this.#call(['SET', key, bytes, ...(ttlMs === null ? [] : ['PX', String(Math.ceil(ttlMs))])]);
  }

  async delete(key: string): Promise<boolean> {
    return (await this.#call(['DEL', key])) === 1;
  }

  async has(key: string): Promise<boolean> {
    return (await this.#call(['EXISTS', key])) === 1;
  }

  close(): Promise<void> {
    if (this.#connection !== null) this.#drop(this.#connection);
    return Promise.resolve();
  }

  /** The timer also keeps the process alive during the call; the idle connection does not. */
  async #call(command: (string | Buffer)[]): Promise<unknown> {
    const late = new TooLate();
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(late), this.#limitMs);
    });
    try {
      return await this.#ask(command, limit);
    } catch (cause) {
      throw this.#explain(cause);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Repeats the call once on a new connection, because an idle connection may have died unnoticed. */
  async #ask(command: (string | Buffer)[], limit: Promise<never>): Promise<unknown> {
    for (;;) {
      const connection = this.#connection ?? this.#dial();
      const kept = connection.client.isReady;
      try {
        await Promise.race([connection.opened, limit]);
        const reply = connection.client.sendCommand(command, { typeMapping: BINARY });
        return await Promise.race([reply, limit]);
      } catch (thrown) {
        const refused = thrown instanceof ErrorReply;
        if (refused && kept) throw thrown;
        this.#drop(connection);
        if (!kept || thrown instanceof TooLate) throw thrown;
      }
    }
  }

  #dial(): Connection {
    const { host, port, tls, username, password, db } = this.#address;
    const client = createClient({
      socket: {
        host,
        port,
        connectTimeout: this.#limitMs,
        reconnectStrategy: false,
        ...(tls ? { tls } : {}),
      },
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      database: db,
      RESP: 2,
      disableOfflineQueue: true,
      disableClientInfo: true,
    }) as unknown as Client;
    const connection = { client, opened: client.connect().then(() => client.unref()) };
    // The calls that meet the error report it; here it only ends the connection.
    client.on('error', () => this.#drop(connection));
    this.#connection = connection;
    return connection;
  }

  #drop(connection: Connection): void {
    if (this.#connection === connection) this.#connection = null;
    if (connection.client.isOpen) connection.client.destroy();
  }

  /**
   * Returns an error that names host and port. A reply of Redis may quote the command, so the text from there on is
   * dropped.
   */
  #explain(cause: unknown): Error {
    const where = `Redis at ${this.#address.host}:${this.#address.port}`;
    if (cause instanceof TooLate) return new Error(`${where} did not answer within ${this.#limitMs} ms.`);
    if (cause instanceof ErrorReply) {
      return new Error(
        `${where} refused: ${cause.message.replace(/[,;]? with args beginning with.*$/s, '')}`,
      );
    }
    const { code, message } = cause as { code?: unknown; message: string };
    return new Error(`${where} cannot be reached: ${typeof code === 'string' ? code : message}`, { cause });
  }
}

class TooLate extends Error {}
