/**
 * One server, from opening its port to its end:
 *
 * 1. `open`: opens the port first, so that nothing is started if it is in use; then starts the workers. Koa is loaded while
 *    they boot, and requests wait for it.
 * 2. `close`: drains calls and workers and sends the webhooks that are left (`ending.ts`), within the drain timeout.
 * 3. `kill`: ends at once.
 *
 * `parts.ts` creates and connects the parts; `build-backend.ts` builds the `Backend` of request handlers.
 */
import { buildBackend, statusOf } from './build-backend.js';
import type { JobStore } from '../jobs/job-store.js';
import type { CloseOptions, ServerHandle } from './server-handle.js';
import { ProgramManagement } from './models/program-management.js';
import { ServerParts } from './parts.js';
import type { ServerPlan } from '../plan/plan-server.js';
import type { ServerEnd, ServerStatus } from '../status/server-status.js';

/** Multi Model Server prints this line, and scripts that start it wait for it. */
const MMS_READY = 'Model server started.\n';

export class Server implements ServerHandle {
  readonly #parts: ServerParts;
  readonly models: ProgramManagement;

  /** `jobStore`: open, and closed with the server. */
  constructor(plan: ServerPlan, jobStore: JobStore) {
    this.#parts = new ServerParts(plan, jobStore);
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
    return statusOf(this.#parts, true);
  }

  /** Rejects with the system's error if the port cannot be opened; then nothing was started. */
  async open(): Promise<void> {
    const {
      plan,
      operatorLog,
      listeners,
      guard,
      ending,
      metrics,
      page,
      served,
      jobs,
      jobWebhooks,
      log,
      logs,
      readyFile,
    } = this.#parts;
    operatorLog.logWarnings();
    try {
      readyFile.prepare();
      await listeners.open();
    } catch (error) {
      guard.close();
      plan.store.close();
      await jobs.close();
      throw error;
    }
    process.on('exit', ending.killNow);
    this.ready.then(
      () => readyFile.write(this, log),
      () => {}, // the end of the server says why
    );
    operatorLog.logOpen(listeners, jobs);
    metrics.start();
    await served.start(plan.models);
    await listeners.answerBy(buildBackend(this.#parts), metrics.page, plan.dialects);
    void jobWebhooks.start();
    page?.live.start();
    if (plan.isMmsMode) logs.writers.stdout.writeLines(MMS_READY);
  }

  startAgain(): void {
    this.#parts.served.startAgain();
  }

  close(options: CloseOptions = {}): Promise<ServerEnd> {
    this.#parts.ending.drain(options);
    return this.ended;
  }

  kill(): void {
    this.#parts.ending.kill();
  }
}
