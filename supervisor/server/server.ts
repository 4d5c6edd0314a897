/**
 * A server from its open port to its end: the only place that makes the parts and joins them.
 *
 * 1. `open`: the port first (a port in use starts nothing), then the workers; Koa is loaded while they boot, and
 *    requests wait for it. Calls are held from the first moment.
 * 2. `close`: calls and workers come to their end, webhooks still owed are sent (`ending.ts`). Bounded by the drain
 *    timeout.
 * 3. `kill`: nothing is waited for.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { ServeError } from '../../protocol/errors.js';
import { asClause } from '../../protocol/sentences.js';
import { startTexts, tryText, withheldText } from './banner.js';
import type { JobCall } from '../dispatch/job.js';
import type { SendAhead } from '../dispatch/send-ahead.js';
import { Ending } from './ending.js';
import type { ApiKeys } from '../http/call/api-keys.js';
import type { Backend } from '../http/call/backend.js';
import type { Dialects } from '../http/dialects/index.js';
import { METRICS_PATH } from '../http/dialects/metrics.js';
import { Lobby } from '../http/call/lobby.js';
import { isLastRequest } from '../http/socket/request-facts.js';
import { newRequestId } from '../http/socket/request-id.js';
import { UnsentAnswers } from '../http/socket/unsent-answers.js';
import { watchedResponses } from '../http/socket/watched-response.js';
import { createHttpServer, inviteBody } from '../http/socket/http-server.js';
import { KeptJobs, type KeptJob } from '../jobs/kept-jobs.js';
import type { Model } from '../models/model.js';
import { AccessLog } from '../http/call/access-log.js';
import type { Log } from '../observe/log.js';
import { ServerAdmin } from './models-admin.js';
import type { ModelStore } from '../store/model-store.js';
import { Listeners } from './listeners.js';
import { MetricsParts } from './metrics-parts.js';
import { modelReadiness, serverReadiness, type Readiness } from './readiness.js';
import { ServedModels, type FirstModel } from './served-models.js';
import { ServerLogs } from './server-logs.js';
import { ServerModels } from './server-models.js';
import { sharedResources } from './shared-resources.js';
import { Tally } from './tally.js';
import { DELAY_RESOLUTION_MS, serverStatus, type ServerFacts } from './status.js';
import { EVERY_ADDRESS, isUnixSocket } from '../options/address.js';
import type { ManagementPlan } from '../options/management.js';
import { metricsModeOf, type MetricsPlan } from '../options/metrics.js';
import type { TlsPlan } from '../options/tls.js';
import type { ResolvedOptions, ServerOptions } from '../options/resolve.js';
import { withheldNames } from '../options/inherited-env.js';
import { OrphanGuard } from '../processes/orphan-guard.js';
import type { Devices } from '../machine/devices.js';
import { Webhooks } from '../webhooks/webhooks.js';
import type { CloseOptions, ServerEnd, ServerHandle } from './server-handle.js';
import type { ServerStatus } from './server-status.js';
import { VERSION } from '../version.js';

/** Everything that a server is made from, checked already. */
export interface ServerPlan {
  readonly models: readonly FirstModel[];
  /** Where the management API and `--models` find theirs. */
  readonly store: ModelStore;
  /** There is no app but a store: the server speaks and listens like Multi Model Server. */
  readonly isMmsMode: boolean;
  readonly resolved: ResolvedOptions;
  readonly keys: ApiKeys;
  readonly managementKeys: ApiKeys;
  /** Null: there is no management API. */
  readonly management: ManagementPlan | null;
  /** Null: nobody asks for metrics, and nothing is counted. */
  readonly metrics: MetricsPlan | null;
  /** Null: no listener speaks TLS. */
  readonly tls: TlsPlan | null;
  readonly devices: Devices;
  /** Folder of relative paths. */
  readonly cwd: string;
  /** Another rule than `dispatch/send-ahead.ts`, to measure it. */
  readonly sendAhead: SendAhead | undefined;
  /** Others than those of `http/dialects/index.ts`, to test one. */
  readonly dialects: Dialects | undefined;
  /** Said in the log at the start. */
  readonly warnings: readonly string[];
}

/** An answer is held as it was written and as it is sent, encrypted, which is a little longer. */
const TLS_COPIES = 2.1;

/** The line that scripts wait for which have started Multi Model Server. */
const MMS_READY = 'Model server started.\n';

export class Server implements ServerHandle {
  readonly #plan: ServerPlan;
  readonly #options: ServerOptions;
  readonly #logs: ServerLogs;
  readonly #log: Log;
  readonly #guard: OrphanGuard;
  readonly #webhooks: Webhooks;
  readonly #served: ServedModels;
  readonly models: ServerModels;
  readonly #facts: ServerFacts;
  readonly #jobs = new KeptJobs(newRequestId, {
    onEnded: (job) => this.#onJobEnded(job),
    onNotKept: (call, error) => this.#onJobNotKept(call, error),
  });
  readonly #tally: Tally;
  readonly #metrics: MetricsParts;
  readonly #unsent: UnsentAnswers;
  readonly #ending: Ending;
  readonly #listeners: Listeners;

  constructor(plan: ServerPlan) {
    this.#plan = plan;
    this.#options = plan.resolved.options;
    this.#logs = new ServerLogs(this.#options, plan.cwd);
    this.#log = this.#logs.log;
    const { calls, writers, printFiles } = this.#logs;
    const accessLog = calls && new AccessLog(calls, ({ spec }) => this.#served.labelOf(spec));
    this.#metrics = this.#newMetrics();
    this.#tally = new Tally([...(accessLog === null ? [] : [accessLog]), ...this.#metrics.callListeners]);
    const { unsentBytes, maxOutput, stallTimeout } = this.#options;
    // One answer always has room, or none of that size could ever be sent.
    this.#unsent = new UnsentAnswers({
      maxBytes: Math.max(unsentBytes, plan.tls === null ? maxOutput : TLS_COPIES * maxOutput),
      stallTimeoutMs: stallTimeout,
    });
    this.#facts = {
      version: VERSION,
      startedAt: new Date(),
      eventLoopDelay: monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS }),
      replies: this.#tally.replies,
    };
    this.#guard = new OrphanGuard((why) => this.#warnUnguarded(why));
    this.#webhooks = new Webhooks({ log: this.#log, signer: this.#options.webhookSecret });
    this.#served = new ServedModels(
      this.#options,
      plan.isMmsMode,
      sharedResources(this.#options, {
        devices: plan.devices,
        guard: this.#guard,
        log: this.#log,
        webhooks: this.#webhooks,
        writers,
        printFiles,
        sendAhead: plan.sendAhead,
      }),
      {
        onFirstReady: (model) => this.#onFirstReady(model),
        onEnd: (error) => this.#ending.fail(error),
      },
      this.#metrics.workerObservers,
    );
    this.#served.add(plan.models);
    const { resolved, devices, cwd } = plan;
    this.models = new ServerModels(this.#served, { resolved, devices, cwd });
    const { host, port, headerTimeout } = this.#options;
    const { management, metrics, tls } = plan;
    this.#listeners = new Listeners({ host, port, management, metrics, tls }, (handler, credentials) => {
      const Response = watchedResponses(this.#unsent, (...cut) => this.#tally.cut(...cut));
      return createHttpServer(headerTimeout, handler, Response, credentials);
    });
    this.#ending = new Ending({
      drainTimeoutMs: this.#options.drainTimeout,
      log: this.#log,
      logs: this.#logs,
      served: this.#served,
      jobs: this.#jobs,
      webhooks: this.#webhooks,
      unsent: this.#unsent,
      guard: this.#guard,
      eventLoopDelay: this.#facts.eventLoopDelay,
      metrics: this.#metrics,
      listeners: this.#listeners,
      store: plan.store,
    });
  }

  get url(): string {
    return this.#listeners.url;
  }

  get managementUrl(): string | null {
    return this.#listeners.managementUrl;
  }

  get metricsUrl(): string | null {
    return this.#listeners.metricsUrl;
  }

  get ready(): Promise<void> {
    return this.#served.startUp.ready;
  }

  get ended(): Promise<ServerEnd> {
    return this.#ending.ended;
  }

  get drainLagMs(): number {
    return this.#options.drainLag;
  }

  status(): ServerStatus {
    return serverStatus(this.#facts, this.#served, this.#unsent, this.#readiness());
  }

  /** Rejects with the system's error if the port cannot be opened; then nothing was started. */
  async open(): Promise<void> {
    for (const warning of this.#plan.warnings) this.#log.warn(warning);
    try {
      await this.#listeners.open();
    } catch (error) {
      this.#guard.close();
      this.#plan.store.close();
      throw error;
    }
    process.on('exit', this.#ending.killNow);
    const { models, devices } = this.#plan;
    for (const text of startTexts(models, devices.threads, this.url)) this.#log.info(text);
    this.#tellOfSecrets();
    this.#tellOfManagement();
    this.#tellOfMetrics();
    this.#metrics.start();
    await this.#served.start(this.#plan.models);
    await this.#listeners.answerBy(this.#newBackend(), this.#metrics.page, this.#plan.dialects);
    if (this.#plan.isMmsMode) this.#logs.writers.stdout.writeLines(MMS_READY);
  }

  close(options: CloseOptions = {}): Promise<ServerEnd> {
    this.#ending.drain(options);
    return this.ended;
  }

  kill(): void {
    this.#ending.kill();
  }

  #tellOfSecrets(): void {
    if (this.#plan.resolved.explicit.has('withholdEnv')) return;
    const names = withheldNames(this.#options.withholdEnv);
    if (names.length > 0) this.#log.info(withheldText(names));
  }

  #tellOfManagement(): void {
    if (this.managementUrl === null) return;
    this.#log.info(`the management API is on ${this.managementUrl}`);
    if (this.#plan.management?.isOpenToAll === true)
      this.#log.warn('the management API asks for no key, and whoever reaches it can run code here');
  }

  #tellOfMetrics(): void {
    const own = this.metricsUrl;
    if (own !== null) this.#log.info(`metrics are on ${own}${METRICS_PATH}`);
    if (this.#plan.metrics?.isOnMain === true) this.#log.info(`metrics are on ${this.url}${METRICS_PATH}`);
  }

  #newMetrics(): MetricsParts {
    const { metrics, isMmsMode, cwd } = this.#plan;
    return new MetricsParts(
      {
        scraped: metrics,
        mode: metricsModeOf(this.#options, isMmsMode),
        intervalMs: this.#options.metricInterval,
        folder: cwd,
      },
      this.#logs,
      () => ({ models: this.#served.registry, unsent: this.#unsent }),
      (ref) => this.#served.labelOf(ref),
    );
  }

  #newBackend(): Backend {
    const { keys, management, managementKeys, isMmsMode } = this.#plan;
    return {
      models: this.#served.registry,
      admin: this.#newAdmin(),
      options: this.#options,
      jobs: this.#jobs,
      webhooks: this.#webhooks,
      unsent: this.#unsent,
      posts: { count: 0 },
      replies: this.#tally.replies,
      lobby: new Lobby(),
      keys,
      management: { keys: managementKeys, host: nameOf(management) },
      isMmsMode,
      log: this.#log,
      hasGpu: this.#plan.models.some(({ placements }) => placements.some(({ gpu }) => gpu !== null)),
      stopping: () => this.#ending.lastReplies,
      closing: (request) => this.#ending.lastReplies && isLastRequest(request),
      inviteBody,
      onSettled: (asked, job, status, error) => this.#tally.settled(asked, job, status, error),
      onRefused: (asked, error, status) => this.#tally.refused(asked, error, status),
      onAnswered: (...answered) => this.#tally.answered(...answered),
      onBroken: (status) => this.#tally.broken(status),
      status: () => this.status(),
      readiness: (name) => this.#readiness(name),
    };
  }

  #newAdmin(): ServerAdmin {
    const { resolved, store, cwd } = this.#plan;
    return new ServerAdmin(this.#served, { resolved, cwd, store, recent: this.#tally.recent });
  }

  /** @throws SERVE_MODEL_NOT_FOUND that names no other model if callers need keys: a probe has none */
  #readiness(name?: string): Readiness {
    const { registry } = this.#served;
    if (name !== undefined) {
      const isThere = [...registry.all()].some(({ spec }) => spec.name === name);
      if (!isThere && this.#plan.keys.required) throw new ServeError('SERVE_MODEL_NOT_FOUND');
      return modelReadiness(this.#served.presenceOf(registry.find({ name })));
    }
    const models = [...registry.all()].map((model) => this.#served.presenceOf(model));
    return serverReadiness(models, this.#ending.isDraining);
  }

  #onFirstReady(model: Model): void {
    this.#facts.eventLoopDelay.enable();
    if (model !== this.#served.registry.default) return;
    const { url, socketPath } = this.#listeners;
    const command = tryText(model, url, socketPath, this.#plan.keys.required);
    if (command !== null) this.#log.info(command);
  }

  #onJobEnded({ id, requestId, route, error }: KeptJob): void {
    if (error === null) return;
    const text = `the background job ${id} of ${route} failed: ${error.message}`;
    this.#log.warn({ job: id, requestId, route, code: error.code }, text);
  }

  #onJobNotKept({ requestId, route }: JobCall, { code, detail }: ServeError): void {
    this.#log.error({ requestId, route, code }, `a call of ${route} could not be put on record: ${detail}`);
  }

  #warnUnguarded(why: string): void {
    this.#log.warn(
      `orphan guard: ${asClause(why)}; if this server is killed, a worker inside native code ends only when it returns`,
    );
  }
}

/** The address that requests to the management API are for; null if nobody knows how others call this machine. */
function nameOf(management: ManagementPlan | null): string | null {
  if (management === null || isUnixSocket(management.port)) return null;
  return EVERY_ADDRESS.includes(management.host) ? null : management.host;
}
