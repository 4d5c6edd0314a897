/**
 * One server, from opening its port to its end. It stands on a `ModelHost`, which has the models and their workers, and adds
 * the ways in and the views: listeners, metrics, the page, the ready file.
 *
 * 1. `open`: opens the port first, so that nothing is started if it is in use; then starts the workers. Koa is loaded while
 *    they boot, and requests wait for it.
 * 2. `close`: drains calls and workers and sends the webhooks that are left, within the drain timeout.
 * 3. `kill`: ends at once.
 */
import { resolve } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describeThrown, type ServeError } from '../../protocol/errors.js';
import { UnroutedBodies } from '../dispatch/arrivals.js';
import { AccessLog } from '../http/answer/access-log.js';
import type { Backend, ReadinessAnswer } from '../http/request/request-context.js';
import { UnsentAnswers } from '../http/socket/unsent-answers.js';
import { FunctionCalls } from '../functions/function-calls.js';
import type { JobStore } from '../jobs/job-store.js';
import { deferred } from '../machine/deferred.js';
import { readGpuUsage } from '../machine/nvidia-smi.js';
import { residentBytes } from '../machine/processes.js';
import { MetricsParts } from '../metrics/metrics-parts.js';
import { DELAY_RESOLUTION_MS } from '../metrics/sampler.js';
import type { Model } from '../models/model.js';
import type { ModelEvent } from '../models/model-resources.js';
import type { ModelRef } from '../models/models.js';
import { ServerLogs, startReporter } from '../observe/server-logs.js';
import { EVERY_ADDRESS, isUnixSocket } from '../options/address.js';
import type { ManagementPlan } from '../plan/plan-listeners.js';
import type { ServerPlan } from '../plan/plan-server.js';
import { AnswerCounts } from '../status/answer-counts.js';
import { logFirstReady, logOpen } from '../status/banner.js';
import { LiveFeed } from '../status/live/live-feed.js';
import type { LiveSources } from '../status/live/live-view.js';
import { readPageFiles } from '../status/page-files.js';
import { modelReadiness, serverReadiness } from '../status/readiness.js';
import { endText, type ServerEnd } from '../status/server-status.js';
import { serverStatus, type StatusSources, modelRecord } from '../status/snapshot.js';
import { Closing, type CloseOptions } from './host/closing.js';
import { ModelHost } from './host/model-host.js';
import { jobOutcomes } from './job-outcomes.js';
import { Listeners, prepareReadyFile } from './listeners.js';
import { StoreLoads } from './models/store-loads.js';
import { modelsHandle } from './program-management.js';
import type { ServerHandle } from './server-handle.js';

/** Multi Model Server prints this line, and scripts that start it wait for it. */
const MMS_READY = 'Model server started.\n';

/** Longest time to flush the last lines of workers and log: a reader that has stopped must not delay the end. */
const FLUSH_MS = 500;

/** With TLS, Node keeps an answer both plain and encrypted, and the encrypted one is slightly longer. */
const TLS_COPIES = 2.1;

export class Server {
  readonly #ended = deferred<ServerEnd>();
  /** Resolves when it has ended, for whatever reason; never if it could not be opened. */
  readonly ended = this.#ended.promise;
  readonly #plan: ServerPlan;
  readonly #logs: ServerLogs;
  readonly #closing: Closing;
  readonly #unsent: UnsentAnswers;
  readonly #answers = new AnswerCounts();
  readonly #functions = new FunctionCalls((...ended) => this.#metrics.calls.functionEnded(...ended));
  readonly #host: ModelHost;
  readonly #sources: StatusSources;
  readonly #metrics: MetricsParts;
  /** The data of the page at `/`; null if there is none. */
  readonly #live: LiveFeed | null;
  readonly #listeners: Listeners;
  /** Null until the parts are closed, and if they are closed because the server could not be opened. */
  #end: ServerEnd | null = null;
  /** See `Backend.end`. */
  readonly #endComes = { isNear: false };

  /** `jobStore`: open, and closed with the server. */
  constructor(plan: ServerPlan, jobStore: JobStore) {
    this.#plan = plan;
    const { options } = plan.resolved;
    this.#logs = new ServerLogs(options, plan.cwd);
    const { log } = this.#logs;
    const closing = new Closing((thrown) =>
      log.error(`a part of the server could not be closed: ${describeThrown(thrown).message}`),
    );
    this.#closing = closing;
    const { hold } = this.#functions; // if the program has functions too, neither timers nor workers keep it alive during a drain
    hold.begin();
    closing.onClose(() => hold.close());
    closing.onClose(() => this.#closeLogs());
    const { unsentBytes, maxOutput, stallTimeout } = options;
    const mostBytes = plan.tls === null ? maxOutput : TLS_COPIES * maxOutput; // at least one such answer must fit
    this.#unsent = new UnsentAnswers(Math.max(unsentBytes, mostBytes), stallTimeout);
    closing.onClose(() => this.#unsent.close());
    const eventLoopDelay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
    closing.onClose(() => void eventLoopDelay.disable());
    const answers = this.#answers;
    const outcomes = jobOutcomes(log, answers, (bytes) => this.#unsent.share(bytes));
    const onEnd = (error: ServeError): void => void this.#drain({}, error);
    const output = {
      log,
      relay: this.#logs.relay(options, () => plan.devices.slots),
      attributePrints: options.logFormat !== 'text' || options.logPrefix === 'potassium',
      startReporter: startReporter(options.logFormat, this.#logs),
    };
    this.#host = new ModelHost(plan, jobStore, output, closing, outcomes, onEnd);
    const { served, jobs, spares, memory } = this.#host;
    const facts = { startedAt: new Date(), eventLoopDelay, replies: answers.replies };
    const readiness = (): ReadinessAnswer => this.#readiness();
    const unsent = this.#unsent;
    this.#sources = { facts, registry: served.registry, unsent, jobs, spares, memory, readiness };
    const { calls } = this.#logs;
    const labelOf = ({ spec }: Model): string => served.labelOf(spec);
    if (calls !== null) answers.tell(new AccessLog(calls, labelOf));
    const measured = { models: served.registry, unsent, memory };
    this.#metrics = new MetricsParts(options, plan.metrics !== null, plan.cwd, this.#logs, measured, labelOf);
    for (const observer of this.#metrics.observers) answers.tell(observer);
    this.#live = this.#newLive();
    closing.onClose(() => this.#live?.stop());
    if (this.#live !== null) answers.tell(this.#live.calls);
    served.observers.push(...this.#metrics.modelObservers, { told: (...told) => this.#told(...told) });
    this.#listeners = new Listeners(plan, unsent, answers, log);
    closing.onKill(() => this.#listeners.destroy());
  }

  /** Rejects with the system's error if the port cannot be opened; then nothing was started, and everything is closed. */
  async open(): Promise<ServerHandle> {
    try {
      return await this.#open();
    } catch (error) {
      this.#closing.kill();
      await this.#closing.close();
      throw error;
    }
  }

  close(options: CloseOptions = {}): Promise<ServerEnd> {
    if (!this.#host.isDraining) void this.#drain(options, null);
    return this.ended;
  }

  kill(): void {
    this.#host.reportUnfinished();
    this.#closing.kill();
    void this.#close({ reason: 'killed', error: null });
  }

  async #open(): Promise<ServerHandle> {
    const { log, writers } = this.#logs;
    const plan = this.#plan;
    for (const warning of plan.warnings) log.warn(warning);
    const { readyFile } = plan.resolved.options;
    const path = readyFile && resolve(plan.cwd, readyFile);
    const onReady = path === null ? () => {} : prepareReadyFile(path, this.#closing, log);
    await this.#listeners.open();
    const { addresses } = this.#listeners;
    this.#host.served.startUp.ready.then(
      () => onReady(addresses),
      () => {}, // the end of the server says why
    );
    logOpen(log, plan, addresses, this.#host.jobs.guard.store);
    this.#metrics.start();
    await this.#host.start();
    await this.#listeners.answerBy(this.#backend(), this.#metrics.page);
    this.#live?.start();
    if (plan.isMmsMode) writers.stdout.writeLines(MMS_READY);
    return this.#handle();
  }

  /** The open server, as programs get it. */
  #handle(): ServerHandle {
    const { url, managementUrl, metricsUrl } = this.#listeners.addresses;
    const { served } = this.#host;
    return {
      url,
      managementUrl,
      metricsUrl,
      ready: served.startUp.ready,
      ended: this.ended,
      drainLagMs: this.#plan.resolved.options.drainLag,
      models: modelsHandle(served, this.#plan.cwd),
      call: (model, input, options) => {
        const ref = typeof model === 'string' ? { name: model } : model;
        return this.#functions.call(() => served.registry.find(ref), null, input, options);
      },
      status: () => serverStatus(this.#sources, true),
      startAgain: () => served.all.forEach((model) => model.startAgain()),
      close: (options) => this.close(options),
      kill: () => this.kill(),
    };
  }

  /**
   * The three phases of a drain, in this order. `failure`: the workers have ended, because no model can serve; callers that
   * waited have been answered, and their answers are still sent.
   */
  async #drain(options: CloseOptions, failure: ServeError | null): Promise<void> {
    const endAtMs = performance.now() + this.#plan.resolved.options.drainTimeout;
    const onRefusing = (): void => void (this.#endComes.isNear = true);
    const reason = failure === null ? await this.#host.drain(options, onRefusing) : 'failed';
    this.#endComes.isNear = true;
    this.#live?.end(reason); // its viewers would never leave by themselves
    await this.#host.settleJobs(); // answers those who wait for a job
    await Promise.all([this.#listeners.close(), this.#host.sendWebhooks(endAtMs - performance.now())]);
    await this.#close({ reason, error: failure });
  }

  /** Closes every part, once: there may be a kill during a drain, or a drain after a failed start. */
  async #close(end: ServerEnd): Promise<void> {
    this.#end ??= end;
    await this.#closing.close();
    this.#ended.resolve(this.#end);
  }

  /** Metrics count until all calls have ended. A server that could not be opened has no last line. */
  async #closeLogs(): Promise<void> {
    this.#metrics.stop();
    if (this.#end !== null) this.#logs.log.info(endText(this.#end));
    await this.#logs.close(FLUSH_MS);
  }

  #newLive(): LiveFeed | null {
    const { recent } = this.#logs;
    if (recent === null) return null;
    const sources: LiveSources = {
      ...this.#sources,
      lines: recent,
      counts: this.#metrics.calls,
      jobs: this.#host.jobs,
      findPaths: (called) => this.#listeners.findPaths(called),
      readMemory: residentBytes,
      // A failure leaves the figures of GPUs out: the start of the server and `--metrics` report it.
      readGpus: async () => (await readGpuUsage(process.env)).gpus,
    };
    return new LiveFeed(sources, this.#plan.keys.required);
  }

  /** Receives the events of all models, once their host has handled them. */
  #told(model: Model, event: ModelEvent): void {
    if (event.type === 'died') this.#live?.deaths.died(model, event.slot, event.death);
    if (event.type !== 'firstReady') return;
    this.#sources.facts.eventLoopDelay.enable();
    logFirstReady(this.#logs.log, this.#plan, this.#listeners.addresses, model, this.#host.served.registry);
  }

  /** All that request handlers may use of the server. */
  #backend(): Backend {
    const plan = this.#plan;
    const { keys, management, managementKeys: own, isMmsMode, resolved } = plan;
    const { served, jobs, webhooks } = this.#host;
    const answers = this.#answers;
    const { recent, replies } = answers;
    const { calls } = this.#metrics;
    return {
      models: served.registry,
      modelManagement: served,
      storedModels: new StoreLoads(served, plan),
      describeModels: (showsWords) =>
        served.registry.describe().map((one) => modelRecord(one, recent, showsWords)),
      options: resolved.options,
      jobs,
      webhooks,
      observer: answers,
      unsent: this.#unsent,
      posts: { count: 0 },
      replies,
      callsOf(model) {
        answers.tell(calls);
        return calls.of(model).figures();
      },
      unroutedBodies: new UnroutedBodies(),
      keys,
      management: { keys: own, host: nameOf(management) },
      isMmsMode,
      page: this.#live && { files: readPageFiles(plan.pageFolder), live: this.#live },
      log: this.#logs.log,
      hasGpu: plan.models.some(({ placements }) => placements.some(({ gpu }) => gpu !== null)),
      end: this.#endComes,
      status: (showsWords) => serverStatus(this.#sources, showsWords),
      readiness: (ref) => this.#readiness(ref),
    };
  }

  /** Readiness of this model, else over the models that callers can find. @throws as `Models.find` */
  #readiness(ref?: ModelRef): ReadinessAnswer {
    const { served, isDraining, jobs } = this.#host;
    if (ref !== undefined) return modelReadiness(served.presenceOf(served.registry.find(ref)));
    const models = [...served.registry.all()].map((model) => served.presenceOf(model));
    return serverReadiness(models, isDraining, jobs.guard.problem !== null);
  }
}

/** The address of the management API that its requests must name; null if it listens on every address or on a socket. */
function nameOf(management: ManagementPlan | null): string | null {
  if (management === null || isUnixSocket(management.port)) return null;
  return EVERY_ADDRESS.includes(management.host) ? null : management.host;
}
