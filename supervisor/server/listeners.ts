/**
 * The listeners of a server: the main one, and those of the management API and the metrics if they have their own address.
 * All are opened before anything else is started, so that nothing runs if an address is in use. Requests wait until
 * `answerBy` has set their handlers. The file of `--ready-file` has their addresses.
 */
import type { Server as HttpServer } from 'node:http';
import type { Backend, Listener, MetricsPage } from '../http/request/request-context.js';
import type { FindCallPaths } from '../http/request/call-paths.js';
import { CompressedResponse } from '../http/socket/compressed-response.js';
import { LateHandler, createHttpServer } from '../http/socket/http-server.js';
import { InputTurns } from '../http/socket/input-turns.js';
import { listen, warnOfOpenFiles, type Listening } from '../http/socket/listen.js';
import { WatchedResponse, responsesOf, type UnsentAnswers } from '../http/socket/unsent-answers.js';
import type { Log } from '../observe/log.js';
import { addressFlags, type Address } from '../options/address.js';
import type { TlsPlan } from '../options/tls.js';
import type { ServerPlan } from '../plan/plan-server.js';
import type { AnswerCounts } from '../status/answer-counts.js';
import type { Addresses } from '../status/banner.js';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { ServeError, describeThrown } from '../../protocol/errors.js';
import type { Closing } from './host/closing.js';

export class Listeners {
  /** Finds the paths of a route; none until requests are answered. */
  findPaths: FindCallPaths = () => [];
  readonly #plan: ServerPlan;
  /** Creates a server that does not listen yet. */
  readonly #newServer: (handler: LateHandler, tls: TlsPlan | null) => HttpServer;
  readonly #open = new Map<Listener, Listening & { readonly handler: LateHandler }>();

  constructor(plan: ServerPlan, unsent: UnsentAnswers, answers: AnswerCounts, log: Log) {
    this.#plan = plan;
    const { headerTimeout, compress } = plan.resolved.options;
    const onConnection = warnOfOpenFiles((text) => log.warn(text));
    const turns = new InputTurns(); // its bounds are those of all listeners
    const Base = compress ? CompressedResponse : WatchedResponse;
    const Response = responsesOf(Base, unsent, (...cut) => answers.cut(...cut));
    this.#newServer = (handler, tls) =>
      createHttpServer(headerTimeout, handler, Response, turns, tls).on('connection', onConnection);
  }

  /** Once they are open. */
  get addresses(): Addresses {
    const { url = '', socketPath = null } = this.#open.get('main') ?? {};
    const own = this.#open.get('management')?.url ?? null;
    const managementUrl = this.#plan.management?.isShared === true ? url : own;
    return { url, socketPath, managementUrl, metricsUrl: this.#open.get('metrics')?.url ?? null };
  }

  /** Rejects with the system's error if an address cannot be opened. */
  async open(): Promise<void> {
    const { resolved, management, metrics } = this.#plan;
    await this.#openOne('main', resolved.options);
    if (management !== null && !management.isShared) await this.#openOne('management', management);
    const own = metrics?.listener ?? null;
    if (own !== null) await this.#openOne('metrics', own);
  }

  async #openOne(listener: Listener, { host, port }: Address): Promise<void> {
    const { tls } = this.#plan;
    const isTls = tls?.listeners.includes(listener) === true;
    const handler = new LateHandler();
    const server = this.#newServer(handler, isTls ? tls : null);
    try {
      const listening = await listen(server, host, port, { isPrivate: listener !== 'main', isTls });
      this.#open.set(listener, { ...listening, handler });
    } catch (error) {
      throw Object.assign(error as Error, { flags: addressFlags(listener) });
    }
  }

  /** Sets the handlers of requests. `metrics`: null without a metrics page. */
  async answerBy(backend: Backend, metrics: MetricsPage | null): Promise<void> {
    const { FrontHandler } = await import('../http/handler.js');
    const { callPathsIn, dialectsOf } = await import('../http/dialects/index.js');
    const { management, metrics: metricsPlan, isMmsMode, platform, dialects } = this.#plan;
    const byListener = dialectsOf({
      isMmsMode,
      isManagementShared: management?.isShared === true,
      metrics,
      areMetricsOnMain: metricsPlan?.isOnMain === true,
      page: backend.page,
      platform,
      main: dialects,
    });
    for (const [listener, { handler }] of this.#open) {
      const own = byListener[listener];
      if (own !== null) handler.arrive(new FrontHandler(backend, own, listener));
    }
    this.findPaths = callPathsIn(byListener.main?.inOrder ?? []);
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

/**
 * Writes the file of `--ready-file`, by which a program that starts the server learns that it is ready, and its addresses.
 * Removes the file of an earlier server, and proves that one can be written; removes it at the end. Returns what writes the
 * addresses. @throws SERVE_CONFIG
 */
export function prepareReadyFile(
  path: string,
  closing: Pick<Closing, 'onClose'>,
  log: Pick<Log, 'error'>,
): (addresses: Omit<Addresses, 'socketPath'>) => void {
  const unfinished = `${path}.unfinished`;
  const remove = (): void => [path, unfinished].forEach((file) => rmSync(file, { force: true }));
  const textOf = (thrown: unknown): string =>
    `--ready-file cannot be written: ${describeThrown(thrown).message}`;
  try {
    remove();
    writeFileSync(unfinished, '');
  } catch (cause) {
    throw new ServeError('SERVE_CONFIG', textOf(cause), { cause });
  }
  closing.onClose(remove);
  return ({ url, managementUrl, metricsUrl }) => {
    const facts = { url, managementUrl, metricsUrl, pid: process.pid };
    try {
      writeFileSync(unfinished, `${JSON.stringify(facts)}\n`);
      renameSync(unfinished, path); // a reader never finds a part of the addresses
    } catch (cause) {
      log.error(textOf(cause));
    }
  };
}
