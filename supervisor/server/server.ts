/**
 * A server from its open port to its end:
 *
 * 1. `open`: the port first (a port in use starts nothing), then the workers; Koa is loaded while they boot, and
 *    requests wait for it. Calls are held from the first moment.
 * 2. `close`: calls and workers come to their end, webhooks still owed are sent (`ending.ts`). Bounded by the drain
 *    timeout.
 * 3. `kill`: nothing is waited for.
 *
 * `parts.ts` makes the parts and joins them; `build-backend.ts` builds what request handlers see of them.
 */
import { buildBackend, statusOf } from './build-backend.js';
import type { CloseOptions, ServerHandle } from './server-handle.js';
import { ProgramManagement } from './models/program-management.js';
import { ServerParts } from './parts.js';
import type { ServerPlan } from '../plan/plan-server.js';
import type { ServerEnd, ServerStatus } from '../status/server-status.js';

/** The line that scripts wait for which have started Multi Model Server. */
const MMS_READY = 'Model server started.\n';

export class Server implements ServerHandle {
  readonly #parts: ServerParts;
  readonly models: ProgramManagement;

  constructor(plan: ServerPlan) {
    this.#parts = new ServerParts(plan);
    const { resolved, devices, cwd } = plan;
    this.models = new ProgramManagement(this.#parts.served, { resolved, devices, cwd });
  }

  get url(): string {
    return this.#parts.listeners.url;
  }

  get managementUrl(): string | null {
    return this.#parts.listeners.managementUrl;
  }

  get metricsUrl(): string | null {
    return this.#parts.listeners.metricsUrl;
  }

  get ready(): Promise<void> {
    return this.#parts.served.startUp.ready;
  }

  get ended(): Promise<ServerEnd> {
    return this.#parts.ending.ended;
  }

  get drainLagMs(): number {
    return this.#parts.options.drainLag;
  }

  status(): ServerStatus {
    return statusOf(this.#parts);
  }

  /** Rejects with the system's error if the port cannot be opened; then nothing was started. */
  async open(): Promise<void> {
    const { plan, news, listeners, guard, ending, metrics, served, logs } = this.#parts;
    news.onBegin();
    try {
      await listeners.open();
    } catch (error) {
      guard.close();
      plan.store.close();
      throw error;
    }
    process.on('exit', ending.killNow);
    news.onOpen(listeners);
    metrics.start();
    await served.start(plan.models);
    await listeners.answerBy(buildBackend(this.#parts), metrics.page, plan.dialects);
    if (plan.isMmsMode) logs.writers.stdout.writeLines(MMS_READY);
  }

  close(options: CloseOptions = {}): Promise<ServerEnd> {
    this.#parts.ending.drain(options);
    return this.ended;
  }

  kill(): void {
    this.#parts.ending.kill();
  }
}
