/**
 * The listeners of a server: the main one, and those of the management API and the metrics if they have their own address.
 * All are opened before anything else is started, so that nothing runs if an address is in use. Requests wait until
 * `answerBy` has set their handlers.
 */
import type { Server as HttpServer } from 'node:http';
import type { Listener } from '../http/request/request-context.js';
import type { Backend, MetricsPage } from '../http/request/backend.js';
import { callPathsIn, type FindCallPaths } from '../http/request/call-paths.js';
import { LateHandler } from '../http/socket/http-server.js';
import { listen, type Listening } from '../http/socket/listen.js';
import type { Address, ListenFlags } from '../options/address.js';
import type { TlsCredentials } from '../options/tls.js';
import type { ServerPlan } from '../plan/plan-server.js';
import type { ServerHandle } from './server-handle.js';

const LISTENERS: readonly Listener[] = ['main', 'management', 'metrics'];

/** See `ServerHandle`. `socketPath`: path of the main listener's socket; null if it listens on a port. */
export type Addresses = Pick<ServerHandle, 'url' | 'managementUrl' | 'metricsUrl'> &
  Pick<Listening, 'socketPath'>;

/** Creates a server that does not listen yet; it uses TLS if there are credentials. */
export type NewServer = (handler: LateHandler, tls: TlsCredentials | null) => HttpServer;

/** A listener other than the main one. */
type OtherListener = Exclude<Listener, 'main'>;

const FLAGS: Readonly<Record<OtherListener, ListenFlags>> = {
  management: { host: '--management-host', port: '--management-port' },
  metrics: { host: '--metrics-host', port: '--metrics-port' },
};

export class Listeners {
  readonly #plan: ServerPlan;
  readonly #newServer: NewServer;
  readonly #handlers: Readonly<Record<Listener, LateHandler>> = {
    main: new LateHandler(),
    management: new LateHandler(),
    metrics: new LateHandler(),
  };
  readonly #open = new Map<Listener, Listening>();

  constructor(plan: ServerPlan, newServer: NewServer) {
    this.#plan = plan;
    this.#newServer = newServer;
  }

  /** Once they are open. */
  get addresses(): Addresses {
    const { url = '', socketPath = null } = this.#open.get('main') ?? {};
    const own = this.#open.get('management')?.url ?? null;
    const managementUrl = this.#plan.management?.isShared === true ? url : own;
    return { url, socketPath, managementUrl, metricsUrl: this.#open.get('metrics')?.url ?? null };
  }

  /** Rejects with the system's error if an address cannot be opened; then none is open. */
  async open(): Promise<void> {
    const { resolved, management, metrics } = this.#plan;
    await this.#openOne('main', resolved.options);
    if (management !== null && !management.isShared) await this.#openOther('management', management);
    const own = metrics?.listener ?? null;
    if (own !== null) await this.#openOther('metrics', own);
  }

  async #openOther(listener: OtherListener, address: Address): Promise<void> {
    try {
      await this.#openOne(listener, address);
    } catch (error) {
      this.destroy();
      throw Object.assign(error as Error, { flags: FLAGS[listener] });
    }
  }

  async #openOne(listener: Listener, { host, port }: Address): Promise<void> {
    const { tls } = this.#plan;
    const isTls = tls?.listeners.includes(listener) === true;
    const server = this.#newServer(this.#handlers[listener], isTls ? tls : null);
    this.#open.set(listener, await listen(server, host, port, { isPrivate: listener !== 'main', isTls }));
  }

  /** Sets the handlers of requests; resolves with what finds the paths of a route. `metrics`: null without a metrics page. */
  async answerBy(backend: Backend, metrics: MetricsPage | null): Promise<FindCallPaths> {
    const { FrontHandler } = await import('../http/handler.js');
    const { dialectsOf } = await import('../http/dialects/index.js');
    const { management, metrics: metricsPlan, isMmsMode, dialects } = this.#plan;
    const byListener = dialectsOf({
      isMmsMode,
      isManagementShared: management?.isShared === true,
      metrics,
      areMetricsOnMain: metricsPlan?.isOnMain === true,
      page: backend.page,
      main: dialects,
    });
    for (const listener of LISTENERS) {
      const own = byListener[listener];
      if (own !== null) this.#handlers[listener].arrive(new FrontHandler(backend, own, listener));
    }
    return callPathsIn(byListener.main?.inOrder ?? []);
  }

  /** Stops accepting connections; resolves once the open ones have ended or the grace period has passed. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#open.values(), (listening) => listening.close()));
  }

  /** Closes all connections at once. */
  destroy(): void {
    for (const listening of this.#open.values()) listening.destroy();
  }
}
