/**
 * The addresses that a server listens on: its own, and that of the management API where it has one. Both are open before
 * anything is started, so that one in use starts nothing; requests wait until it is known who answers them.
 */
import type { Server as HttpServer } from 'node:http';
import type { Backend } from '../http/call/backend.js';
import type { Dialects } from '../http/dialects/index.js';
import { LateHandler } from '../http/socket/http-server.js';
import { listen, type Listening } from '../http/socket/listen.js';
import type { ManagementPlan } from '../options/management.js';

export interface Addresses {
  readonly host: string;
  readonly port: number | string;
  /** Null: there is no management API. */
  readonly management: ManagementPlan | null;
}

/** How a flag is named that would have led to another address. */
export interface ListenFlags {
  readonly host: string;
  readonly port: string;
}

const MANAGEMENT_FLAGS: ListenFlags = { host: '--management-host', port: '--management-port' };

export class Listeners {
  readonly #addresses: Addresses;
  readonly #newServer: (handler: LateHandler) => HttpServer;
  readonly #handlers = { main: new LateHandler(), management: new LateHandler() };
  #main: Listening | null = null;
  #management: Listening | null = null;

  constructor(addresses: Addresses, newServer: (handler: LateHandler) => HttpServer) {
    this.#addresses = addresses;
    this.#newServer = newServer;
  }

  get url(): string {
    return this.#main?.url ?? '';
  }

  /** Null if the server listens on a port. */
  get socketPath(): string | null {
    return this.#main?.socketPath ?? null;
  }

  /** Null if there is no management API. */
  get managementUrl(): string | null {
    const { management } = this.#addresses;
    return management?.isShared === true ? this.url : (this.#management?.url ?? null);
  }

  /** Rejects with the system's error if an address cannot be had; then none is open. */
  async open(): Promise<void> {
    const { host, port, management } = this.#addresses;
    this.#main = await listen(this.#newServer(this.#handlers.main), host, port);
    if (management === null || management.isShared) return;
    try {
      const server = this.#newServer(this.#handlers.management);
      this.#management = await listen(server, management.host, management.port, { isPrivate: true });
    } catch (error) {
      this.destroy();
      throw Object.assign(error as Error, { flags: MANAGEMENT_FLAGS });
    }
  }

  /** Says who answers. `dialects`: others than the server's own, to test one. */
  async answerBy(backend: Backend, dialects: Dialects | undefined): Promise<void> {
    const { createHandler } = await import('../http/handler.js');
    const { MAIN_DIALECTS, MMS_DIALECTS, MANAGEMENT_DIALECTS, withManagement } =
      await import('../http/dialects/index.js');
    const own = dialects ?? (backend.isMmsMode ? MMS_DIALECTS : MAIN_DIALECTS);
    const isShared = this.#addresses.management?.isShared === true;
    const main = isShared ? withManagement(own) : own;
    this.#handlers.main.arrive(createHandler(backend, main, 'main'));
    this.#handlers.management.arrive(createHandler(backend, MANAGEMENT_DIALECTS, 'management'));
  }

  /** Stops taking connections; resolves once the open ones have ended, or the grace has passed. */
  async close(): Promise<void> {
    await Promise.all([this.#main?.close(), this.#management?.close()]);
  }

  /** Cuts everything at once. */
  destroy(): void {
    this.#main?.destroy();
    this.#management?.destroy();
  }
}
