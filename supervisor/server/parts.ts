/** Creates the parts of one server and connects them. The only module that does. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { AccessLog } from '../http/answer/access-log.js';
import { MemoryBudget } from '../budget/memory-budget.js';
import { newRequestId } from '../dispatch/request-id.js';
import { UnsentAnswers } from '../http/socket/unsent-answers.js';
import { compressedResponses } from '../http/socket/compressed-response.js';
import { watchedResponses } from '../http/socket/watched-response.js';
import { createHttpServer } from '../http/socket/http-server.js';
import { InputTurns } from '../http/socket/input-turns.js';
import { warnOfOpenFiles } from '../http/socket/open-files.js';
import { statusOf } from '../http/answer/house-error.js';
import { GuardedStore } from '../jobs/guarded-store.js';
import { KeptJobs } from '../jobs/kept-jobs.js';
import type { JobStore } from '../jobs/job-store.js';
import type { Model } from '../models/model.js';
import type { Log } from '../observe/log.js';
import type { FullModelRef } from '../options/model-name.js';
import { metricsModeOf } from '../options/listeners.js';
import type { ServerOptions } from '../options/resolve.js';
import { OrphanGuard } from '../processes/orphan-guard.js';
import { SpareProcesses } from '../processes/spare-processes.js';
import { VERSION } from '../version.js';
import { Webhooks } from '../webhooks/webhooks.js';
import { Ending } from './ending.js';
import { JobOutcomes } from './job-outcomes.js';
import { JobWebhooks } from './job-webhooks.js';
import { Listeners } from './listeners.js';
import { MetricsParts } from './metrics-parts.js';
import { PageParts } from './page-parts.js';
import { ServedModels } from './models/served-models.js';
import { ServerLogs } from './logs.js';
import { ReadyFile } from './ready-file.js';
import { OperatorLog } from './operator-log.js';
import type { ServerPlan } from '../plan/plan-server.js';
import { sharedResources } from './shared-resources.js';
import { DELAY_RESOLUTION_MS, type ServerFacts } from '../status/snapshot.js';
import { AnswerCounts } from '../status/answer-counts.js';

/** With TLS, Node keeps an answer both plain and encrypted, and the encrypted one is slightly longer. */
const TLS_COPIES = 2.1;

export class ServerParts {
  readonly plan: ServerPlan;
  readonly options: ServerOptions;
  readonly logs: ServerLogs;
  readonly log: Log;
  readonly operatorLog: OperatorLog;
  readonly guard: OrphanGuard;
  readonly spares: SpareProcesses;
  /** Null without a memory budget. */
  readonly memory: MemoryBudget | null;
  readonly webhooks: Webhooks;
  readonly jobWebhooks: JobWebhooks;
  readonly metrics: MetricsParts;
  /** Null: there is no page at `/`. */
  readonly page: PageParts | null;
  readonly answerCounts: AnswerCounts;
  readonly unsent: UnsentAnswers;
  readonly facts: ServerFacts;
  readonly jobs: KeptJobs;
  readonly served: ServedModels;
  readonly listeners: Listeners;
  readonly readyFile: ReadyFile;
  readonly ending: Ending;

  constructor(plan: ServerPlan, jobStore: JobStore) {
    this.plan = plan;
    this.options = plan.resolved.options;
    this.logs = new ServerLogs(this.options, plan.cwd);
    this.log = this.logs.log;
    plan.store.reportTo((problem) => this.log.warn(problem));
    this.operatorLog = new OperatorLog(this.log, plan);
    this.guard = new OrphanGuard((why) => this.operatorLog.logUnguarded(why));
    this.spares = new SpareProcesses({
      mostEach: this.options.spares,
      guard: this.guard,
      log: this.log,
      hasRoom: () => this.memory?.hasRoomForSpare ?? true,
    });
    const { budgets } = plan;
    this.memory =
      budgets === null
        ? null
        : new MemoryBudget({ ...budgets, expendables: this.spares, log: this.log, env: process.env });
    const guardedStore = new GuardedStore(jobStore);
    const webhookStore = jobStore.isDurable ? guardedStore : null;
    this.webhooks = new Webhooks({
      log: this.log,
      signer: this.options.webhookSecret,
      keeper: webhookStore,
    });
    this.jobWebhooks = new JobWebhooks(this.webhooks, webhookStore);
    this.metrics = this.#newMetrics();
    const { recent } = this.logs;
    this.page = recent === null ? null : new PageParts(this, recent, plan);
    this.answerCounts = this.#newAnswerCounts();
    this.unsent = this.#newUnsent();
    this.facts = {
      version: VERSION,
      startedAt: new Date(),
      eventLoopDelay: monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS }),
      replies: this.answerCounts.replies,
    };
    this.jobs = this.#newJobs(guardedStore);
    this.served = this.#newServed();
    this.listeners = this.#newListeners();
    this.readyFile = new ReadyFile(this.options.readyFile, plan.cwd);
    this.ending = this.#newEnding();
    this.served.add(plan.models);
  }

  #newMetrics(): MetricsParts {
    const { metrics, isMmsMode, cwd } = this.plan;
    return new MetricsParts(
      {
        scraped: metrics,
        isPageOn: this.options.page,
        mode: metricsModeOf(this.options, isMmsMode),
        intervalMs: this.options.metricInterval,
        folder: cwd,
      },
      this.logs,
      () => ({ models: this.served.registry, unsent: this.unsent, memory: this.memory }),
      (ref) => this.served.labelOf(ref),
    );
  }

  #newAnswerCounts(): AnswerCounts {
    const { calls } = this.logs;
    const accessLog = calls && new AccessLog(calls, ({ spec }) => this.served.labelOf(spec));
    const observers = [accessLog, ...this.metrics.observers, this.page?.calls ?? null];
    return new AnswerCounts(observers.filter((one) => one !== null));
  }

  #newUnsent(): UnsentAnswers {
    const { unsentBytes, maxOutput, stallTimeout } = this.options;
    // At least one answer of the maximum size must fit.
    return new UnsentAnswers({
      maxBytes: Math.max(unsentBytes, this.plan.tls === null ? maxOutput : TLS_COPIES * maxOutput),
      stallTimeoutMs: stallTimeout,
    });
  }

  #newJobs(store: GuardedStore): KeptJobs {
    const { operatorLog: log, answerCounts: observer, jobWebhooks: webhooks } = this;
    const modelOf = (ref: FullModelRef): Model | null => this.served.find(ref);
    const listener = new JobOutcomes({ log, observer, webhooks, modelOf });
    const { maxOutput: maxResultBytes } = this.options;
    return new KeptJobs({
      newId: newRequestId,
      statusOf,
      store,
      maxResultBytes,
      onHeldBytes: (bytes) => this.unsent.share(bytes),
      listener,
    });
  }

  #newServed(): ServedModels {
    const { isMmsMode, devices, sendAhead, metrics } = this.plan;
    const { writers, printFiles, recent } = this.logs;
    const { guard, spares, memory, log, webhooks, jobs } = this;
    const measuresLoad = metrics !== null;
    const own = { guard, spares, memory, log, webhooks, jobs, writers, printFiles, recent };
    const shared = { ...own, devices, sendAhead, measuresLoad };
    return new ServedModels(
      this.options,
      isMmsMode,
      sharedResources(this.options, shared),
      {
        onFirstReady: (model) => this.#onFirstReady(model),
        onEnd: (error) => this.ending.fail(error),
      },
      [...this.metrics.workerObservers, ...(this.page === null ? [] : [this.page])],
    );
  }

  #newListeners(): Listeners {
    const { host, port, headerTimeout, compress } = this.options;
    const { management, metrics, tls } = this.plan;
    const onConnection = warnOfOpenFiles((text) => this.log.warn(text));
    const turns = new InputTurns(); // its bounds are those of all listeners
    return new Listeners({ host, port, management, metrics, tls }, (handler, credentials) => {
      const Watched = watchedResponses(this.unsent, (...cut) => this.answerCounts.cut(...cut));
      const Response = compress ? compressedResponses(Watched) : Watched;
      const server = createHttpServer(headerTimeout, handler, Response, turns, credentials);
      return server.on('connection', onConnection);
    });
  }

  #newEnding(): Ending {
    const {
      log,
      logs,
      served,
      jobs,
      webhooks,
      jobWebhooks,
      unsent,
      guard,
      spares,
      memory,
      metrics,
      page,
      listeners,
      readyFile,
    } = this;
    return new Ending({
      drainTimeoutMs: this.options.drainTimeout,
      log,
      logs,
      served,
      jobs,
      webhooks,
      jobWebhooks,
      unsent,
      guard,
      spares,
      memory,
      eventLoopDelay: this.facts.eventLoopDelay,
      metrics,
      live: page?.live ?? null,
      listeners,
      readyFile,
      store: this.plan.store,
    });
  }

  #onFirstReady(model: Model): void {
    this.facts.eventLoopDelay.enable();
    if (model === this.served.registry.default) this.operatorLog.logExample(model, this.listeners);
  }
}
