/**
 * The models of one server with everything that their calls need, but without a way in: it knows no listener, no page and no
 * metrics. A call enters at the dispatcher of its model.
 *
 * 1. `start`: starts the workers of the first models.
 * 2. `drain`: ends calls and workers.
 * 3. `settleJobs`, then `sendWebhooks`: ends the jobs, and what their callers wait for.
 *
 * Its parts are closed by the `Closing` that it is given.
 */
import { ServeError, shuttingDown } from '../../../protocol/errors.js';
import { asClause } from '../../../protocol/text/sentences.js';
import { MemoryBudget } from '../../budget/memory-budget.js';
import { ByteBudget } from '../../dispatch/arrivals.js';
import { newRequestId } from '../../dispatch/call.js';
import { JobWebhooks, keeperOf } from '../../jobs/job-webhooks.js';
import type { JobStore } from '../../jobs/job-store.js';
import type { EndedJob, JobsListener } from '../../jobs/begins.js';
import type { BegunJob, PostedJob } from '../../jobs/job-record.js';
import { KeptJobs } from '../../jobs/kept-jobs.js';
import { startLimit } from '../../machine/limit-timer.js';
import type { ManagedModel, Model } from '../../models/model.js';
import type { ServerResources } from '../../models/model-resources.js';
import { untilQuiet } from '../../models/model-health.js';
import type { Log } from '../../observe/log.js';
import { formatMs } from '../../options/units.js';
import type { ServerPlan } from '../../plan/plan-server.js';
import { OrphanGuard } from '../../processes/orphan-guard.js';
import { SpareProcesses } from '../../processes/spare-processes.js';
import { TERM_GRACE_MS, retireLimits, stopReserveMs } from '../../processes/worker-stop.js';
import { SpawnGate } from '../../slots/spawn-gate.js';
import { drainText } from '../../status/server-status.js';
import { Webhooks, type Webhook } from '../../webhooks/webhooks.js';
import { ModelAdmin } from '../models/admin.js';
import type { CloseOptions, Closing } from './closing.js';

/** The part of jobs that knows how calls arrive, and how they are answered. */
export interface JobAnswers extends Omit<JobsListener, 'onBegun' | 'onEnded'> {
  /** The HTTP status of a job's error, for the log. */
  statusOf(error: ServeError): number;
  /** So many more bytes of results are held for clients that read them; fewer, if negative. */
  onHeldBytes(bytes: number): void;
  /** `model`: null if it is gone. */
  onEnded(ended: EndedJob, model: Model | null): void;
  /** The webhook that posts the begin or the end of a job; null if none does. */
  webhookOf(job: PostedJob): Webhook | null;
}

/** The plan of a server, without its listeners and pages. */
export interface HostPlan extends Pick<
  ServerPlan,
  'models' | 'budgets' | 'isMmsMode' | 'resolved' | 'devices' | 'sendAhead' | 'metrics'
> {
  readonly store: Pick<ServerPlan['store'], 'reportTo' | 'close'>;
}

/** The surroundings of a host: where it reports what its workers do and print, and which apps it takes. */
export type Surroundings = Pick<
  ServerResources,
  'log' | 'relay' | 'attributePrints' | 'startReporter' | 'checkApp'
>;

export class ModelHost {
  readonly spares: SpareProcesses;
  /** Null without a memory budget. */
  readonly memory: MemoryBudget | null;
  readonly webhooks: Webhooks;
  readonly jobs: KeptJobs;
  readonly served: ModelAdmin;
  isDraining = false;
  readonly #plan: HostPlan;
  readonly #log: Log;
  readonly #jobWebhooks: JobWebhooks;

  /** `jobStore`: open, and closed with the other parts. `onEnd` is called if no model can serve: the server must end. */
  constructor(
    plan: HostPlan,
    jobStore: JobStore,
    surroundings: Surroundings,
    closing: Closing,
    answers: JobAnswers,
    onEnd: (error: ServeError) => void,
  ) {
    const { store, budgets } = plan;
    const { options } = plan.resolved;
    const { log } = surroundings;
    this.#plan = plan;
    this.#log = log;
    store.reportTo((problem) => log.warn(problem));
    closing.onClose(() => store.close());
    const guard = new OrphanGuard((why) => log.warn(`orphan guard: ${asClause(why)}; ${UNGUARDED}`));
    closing.onClose(() => guard.close());
    const hasRoom = (): boolean => this.memory?.ledger.hasRoomForSpare ?? true;
    this.spares = new SpareProcesses({ mostEach: options.spares, guard, log, hasRoom });
    this.memory = budgets && new MemoryBudget(budgets, this.spares, log, process.env);
    this.jobs = this.#newJobs(jobStore, answers);
    const guarded = jobStore.isDurable ? this.jobs.guard : null;
    const keeper = guarded && keeperOf(guarded);
    this.webhooks = new Webhooks({ log, signer: options.webhookSecret, keeper });
    this.#jobWebhooks = new JobWebhooks(this.webhooks, guarded, answers.webhookOf);
    closing.onClose(async () => {
      this.#jobWebhooks.close(); // before the jobs stop: what ends or is taken then stays in the store, if that keeps it
      this.webhooks.close();
      await this.jobs.stop();
      await this.jobs.close();
    });
    this.served = new ModelAdmin(plan.resolved, plan.isMmsMode, this.#resources(guard, surroundings), onEnd);
    closing.onKill(() => this.#killWorkers());
    closing.onClose(() => this.#closeModels());
  }

  /** Starts the workers of the first models, and sends the webhooks that other servers have left. */
  async start(): Promise<void> {
    await this.served.startFirst(this.#plan.models);
    void this.#jobWebhooks.start();
  }

  /** Resolves when every call and every worker has ended. `onRefusing`: new calls are refused from then on. */
  drain({ lagMs = 0, hint = '' }: CloseOptions, onRefusing: () => void): Promise<'drained' | 'cut'> {
    this.isDraining = true;
    this.spares.close();
    this.served.close();
    this.jobs.drain(); // first, so that the drain waits for no job that is kept
    return drain({
      models: this.served.all,
      log: this.#log,
      lagMs,
      timeoutMs: this.#plan.resolved.options.drainTimeout,
      hint,
      webhooksOwed: this.webhooks.owed,
      workersClosed: this.served.untilClosed(),
      onRefusing,
      onCut: () => this.reportUnfinished(),
    });
  }

  /**
   * Logs the background jobs that are cut off: their callers were answered at their start. Jobs that wait in a store which
   * outlives the server are not among them.
   */
  reportUnfinished(): void {
    const ids = this.jobs.unfinished();
    if (ids.length > 0) this.#log.error({ jobs: ids }, `background jobs cut off: ${ids.join(', ')}`);
  }

  /** No worker runs any more: jobs end, and those who wait for one are answered. */
  async settleJobs(): Promise<void> {
    this.#jobWebhooks.close(); // first: what is taken while the jobs stop would not be sent in time
    await this.jobs.stop();
  }

  /** Sends the webhooks that are owed, within this time. */
  async sendWebhooks(limitMs: number): Promise<void> {
    const { owed } = this.webhooks;
    if (owed > 0) this.#log.info(`sending ${owed} webhooks (at most ${formatMs(Math.max(0, limitMs))})`);
    await this.webhooks.drain(limitMs);
  }

  #newJobs(store: JobStore, { statusOf, onHeldBytes, ...answers }: JobAnswers): KeptJobs {
    const onEnded = (ended: EndedJob): void => {
      const { model: name, version, hasWebhook } = ended.record;
      const isIts = ({ spec }: Model): boolean => spec.name === name && spec.version === version;
      answers.onEnded(ended, this.served.all.find(isIts) ?? null);
      if (hasWebhook) this.#jobWebhooks.post(ended);
    };
    const onBegun = (begun: BegunJob): void => {
      if (begun.record.hasWebhook) this.#jobWebhooks.postBegin(begun);
    };
    const { maxOutput: maxResultBytes } = this.#plan.resolved.options;
    const listener = { ...answers, onBegun, onEnded };
    return new KeptJobs({ newId: newRequestId, statusOf, store, maxResultBytes, onHeldBytes, listener });
  }

  /** All that the models of a server share. */
  #resources(guard: OrphanGuard, surroundings: Surroundings): Omit<ServerResources, 'labelOf' | 'isDefault'> {
    const { spares, memory, webhooks, jobs } = this;
    const { devices, sendAhead, resolved, metrics } = this.#plan;
    const { options } = resolved;
    return {
      ...surroundings,
      guard,
      spares,
      memory,
      webhooks,
      jobs,
      devices,
      sendAhead,
      measuresLoad: metrics !== null,
      watch: options.watch,
      gate: new SpawnGate(options.spawnConcurrency, memory),
      budget: new ByteBudget(options.queueBytes),
      maxOutputBytes: options.maxOutput,
      withheldEnv: options.withholdEnv,
      retireLimits: retireLimits(options.drainTimeout),
    };
  }

  /** Sends SIGKILL to every worker. The spares close first: the end of the last start would begin another one. */
  #killWorkers(): void {
    this.spares.close();
    for (const model of this.served.all) model.killAll();
  }

  #closeModels(): void {
    const { startUp } = this.served;
    startUp.end(new ServeError('SERVE_SHUTTING_DOWN', 'The server ended before it was ready.')); // unless it has failed
    this.served.close();
    for (const { dispatcher } of this.served.all) dispatcher.close();
    this.memory?.close(); // before workers are killed, or their memory would be given to others that wait for it
    this.#killWorkers();
  }
}

const UNGUARDED = 'if this server is killed, a worker inside native code ends only when it returns';

interface Drain extends Required<CloseOptions> {
  /** All models; none is added during the drain. */
  readonly models: readonly ManagedModel[];
  readonly log: Pick<Log, 'info' | 'error'>;
  /** Longest time of the whole drain, including the lag. */
  readonly timeoutMs: number;
  readonly webhooksOwed: number;
  /** Resolves when every worker has ended. */
  readonly workersClosed: Promise<void>;
  /** Calls are refused from now on. */
  onRefusing(): void;
  /** Running calls are about to be cut off. */
  onCut(): void;
}

/**
 * Ends the calls and workers of all models, and divides the drain timeout between the two.
 *
 * 1. Readiness is `draining`; calls are still accepted for the drain lag, until load balancers have noticed.
 * 2. New calls are refused; accepted ones finish, or are cut off when only the time reserved for the workers is left.
 * 3. The workers stop: a message, then SIGTERM, then SIGKILL.
 *
 * Resolves when every worker has ended. `drained`: every call was answered.
 */
export async function drain({ models, log, timeoutMs, ...given }: Drain): Promise<'drained' | 'cut'> {
  const endAtMs = performance.now() + timeoutMs;
  const sum = (count: (model: ManagedModel) => number): number =>
    models.reduce((all, one) => all + count(one), 0);
  for (const model of models) model.health.announceDrain();
  const waits = {
    running: sum(({ dispatcher }) => dispatcher.inFlight),
    waiting: sum(({ dispatcher }) => dispatcher.queued + dispatcher.arriving),
    workers: sum(({ crew }) => crew.workers.length),
    webhooks: given.webhooksOwed,
  };
  log.info(drainText(timeoutMs, waits, given.hint));
  const lagMs = Math.min(given.lagMs, timeoutMs);
  if (lagMs > 0) await new Promise<void>((resolve) => startLimit(lagMs, resolve));
  given.onRefusing();
  for (const model of models) model.refuseCalls();
  const hasShutdown = models.some((model) => model.hasShutdown);
  const cutAtMs = endAtMs - stopReserveMs(timeoutMs, hasShutdown);
  const isQuiet = await untilQuiet(() => models.every(({ dispatcher }) => dispatcher.isQuiet), cutAtMs);
  if (!isQuiet) {
    const running = sum(({ dispatcher }) => dispatcher.inFlight);
    const waiting = sum(({ dispatcher }) => dispatcher.queued);
    log.error(`the drain timeout passed; calls are cut off: ${running} running, ${waiting} waiting`);
    given.onCut();
    const lost = new ServeError('SERVE_WORKER_LOST', 'The server stopped before this call was finished.');
    for (const { dispatcher } of models) {
      dispatcher.failQueued(shuttingDown());
      dispatcher.failInFlight(lost, shuttingDown());
    }
  }
  const graceMs = Math.max(0, endAtMs - performance.now() - TERM_GRACE_MS);
  for (const model of models) model.close(graceMs);
  await given.workersClosed;
  // Calls that a dying worker had not begun went back to the queue.
  for (const { dispatcher } of models) dispatcher.failQueued(shuttingDown());
  return isQuiet ? 'drained' : 'cut';
}
