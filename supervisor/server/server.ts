/**
 * A server from its open port to its end: the only place that makes the parts and joins them.
 *
 * 1. `open`: the port first (a port in use starts nothing), then the workers; Koa is loaded while they boot, and
 *    requests wait for it. Calls are held from the first moment.
 * 2. `close`: calls and workers come to their end (`drain.ts`), webhooks still owed are sent. Bounded by the drain
 *    timeout.
 * 3. `kill`: nothing is waited for.
 */
import type { IncomingMessage } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { ServeError } from '../../protocol/errors.js';
import { asClause } from '../../protocol/sentences.js';
import { ByteBudget } from '../dispatch/byte-budget.js';
import { endText, startText, tryText } from './banner.js';
import { deferred } from './deferred.js';
import type { SendAhead } from '../dispatch/send-ahead.js';
import { drain, retireLimits } from './drain.js';
import type { ApiKeys } from '../http/call/api-keys.js';
import type { Backend } from '../http/call/backend.js';
import { listen, type Listening } from '../http/socket/listen.js';
import { Lobby } from '../http/call/lobby.js';
import { isLastRequest } from '../http/socket/request-facts.js';
import { requestIdOf } from '../http/socket/request-id.js';
import { UnsentAnswers } from '../http/socket/unsent-answers.js';
import { watchedResponses } from '../http/socket/watched-response.js';
import { LateHandler, createHttpServer, inviteBody } from '../http/socket/http-server.js';
import { KeptJobs, type KeptJob } from '../jobs/kept-jobs.js';
import type { ModelSpec } from '../models/model-spec.js';
import { Model } from '../models/model.js';
import { Models } from '../models/models.js';
import { AccessLog } from '../http/call/access-log.js';
import { createLog, type Log } from '../observe/log.js';
import { OutputRelay } from '../observe/output-relay.js';
import { OutputWriter } from '../observe/output-writer.js';
import { startTeller } from './start-tellers.js';
import { DELAY_RESOLUTION_MS, serverStatus, type ServerFacts } from './status.js';
import type { ResolvedOptions, ServerOptions } from '../options/resolve.js';
import { formatMs } from '../options/units.js';
import { OrphanGuard } from '../processes/orphan-guard.js';
import type { Devices } from '../machine/devices.js';
import type { Placement } from '../machine/placement.js';
import { SpawnGate } from '../slots/spawn-gate.js';
import { AppFiles, changeText } from '../watch/app-files.js';
import { Webhooks } from '../webhooks/webhooks.js';
import type { CloseOptions, ServerEnd, ServerHandle } from './server-handle.js';
import type { ServerStatus } from './server-status.js';
import { VERSION } from '../version.js';

/** Everything that a server is made from, checked already. */
export interface ServerPlan {
  readonly spec: ModelSpec;
  readonly resolved: ResolvedOptions;
  readonly keys: ApiKeys;
  readonly devices: Devices;
  /** Places of the slots that it starts with. */
  readonly placements: readonly Placement[];
  /** Another rule than `dispatch/send-ahead.ts`, to measure it. */
  readonly sendAhead: SendAhead | undefined;
  /** Said in the log at the start. */
  readonly warnings: readonly string[];
}

/** How long the last lines of workers and log may take to leave: a reader that takes none must not delay the end. */
const FLUSH_MS = 500;

export class Server implements ServerHandle {
  readonly #plan: ServerPlan;
  readonly #options: ServerOptions;
  readonly #writers = { stdout: new OutputWriter(1), stderr: new OutputWriter(2) };
  readonly #log: Log;
  readonly #guard: OrphanGuard;
  readonly #webhooks: Webhooks;
  readonly #model: Model;
  readonly #facts: ServerFacts & { readonly replies: Map<string, number> };
  readonly #jobs = new KeptJobs(
    () => requestIdOf({}),
    (job) => this.#onJobEnded(job),
  );
  readonly #accessLog: AccessLog | null;
  readonly #unsent: UnsentAnswers;
  readonly #ready = deferred<void>();
  readonly #ended = deferred<ServerEnd>();
  readonly #workersClosed = deferred<void>();
  #listening: Listening | null = null;
  #appFiles: readonly AppFiles[] = [];
  #closing: Promise<void> | null = null;
  #hasEnded = false;
  /** Replies end their connections: a new one could find nobody. */
  #lastReplies = false;

  constructor(plan: ServerPlan) {
    this.#plan = plan;
    this.#options = plan.resolved.options;
    this.#log = createLog(this.#options.logFormat, this.#options.logLevel, this.#writers.stderr);
    this.#accessLog = this.#options.accessLog ? new AccessLog(this.#log) : null;
    const { unsentBytes, maxOutput, stallTimeout } = this.#options;
    // One answer always has room, or none of that size could ever be sent.
    this.#unsent = new UnsentAnswers({
      maxBytes: Math.max(unsentBytes, maxOutput),
      stallTimeoutMs: stallTimeout,
    });
    this.#facts = {
      version: VERSION,
      startedAt: new Date(),
      eventLoopDelay: monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS }),
      replies: new Map<string, number>(),
    };
    this.#guard = new OrphanGuard((why) => this.#warnUnguarded(why));
    this.#webhooks = new Webhooks({ log: this.#log, signer: this.#options.webhookSecret });
    this.#model = this.#newModel();
    this.#ready.promise.catch(() => {}); // whoever asks for it is told; nobody has to
  }

  get url(): string {
    return this.#listening?.url ?? '';
  }

  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get ended(): Promise<ServerEnd> {
    return this.#ended.promise;
  }

  get drainLagMs(): number {
    return this.#options.drainLag;
  }

  status(): ServerStatus {
    return serverStatus(this.#facts, this.#model, this.#unsent);
  }

  /** Rejects with the system's error if the port cannot be opened; then nothing was started. */
  async open(): Promise<void> {
    for (const warning of this.#plan.warnings) this.#log.warn(warning);
    const handler = new LateHandler();
    const { headerTimeout, host, port } = this.#options;
    try {
      const Response = watchedResponses(this.#unsent, ({ req }, error) => this.#onCut(req, error));
      this.#listening = await listen(createHttpServer(headerTimeout, handler, Response), host, port);
    } catch (error) {
      this.#guard.close();
      throw error;
    }
    process.on('exit', this.#killNow);
    const { spec, placements, devices } = this.#plan;
    this.#log.info(startText(spec.app, placements, devices.threads, this.url));
    if (this.#options.watch) await this.#watchApp(); // before it is loaded: no change may slip between
    this.#model.start(placements);
    const { createHandler } = await import('../http/handler.js');
    handler.arrive(createHandler(this.#newBackend()));
  }

  close({ lagMs = 0, hint = '' }: CloseOptions = {}): Promise<ServerEnd> {
    if (this.#closing === null) this.#closing = this.#drain(lagMs, hint);
    return this.ended;
  }

  kill(): void {
    this.#reportUnfinished();
    this.#killNow();
    void this.#tearDown({ reason: 'killed', error: null });
  }

  #newModel(): Model {
    const { spec, devices } = this.#plan;
    const { logFormat, logPrefix, queueBytes, spawnConcurrency } = this.#options;
    const printFormat = logFormat === 'text' && logPrefix === 'potassium' ? logPrefix : logFormat;
    return new Model(
      spec,
      {
        devices,
        gate: new SpawnGate(spawnConcurrency),
        budget: new ByteBudget(queueBytes),
        guard: this.#guard,
        relay: new OutputRelay(printFormat, () => devices.slots, this.#writers),
        log: this.#log,
        webhooks: this.#webhooks,
        startTeller: startTeller(logFormat, this.#log, this.#writers),
        attributePrints: printFormat !== 'text',
        maxOutputBytes: this.#options.maxOutput,
        sendAhead: this.#plan.sendAhead,
      },
      {
        onFirstReady: () => this.#onFirstReady(),
        onLatched: (error, everReady) => this.#onLatched(error, everReady),
        onClosed: () => this.#workersClosed.resolve(),
      },
    );
  }

  #newBackend(): Backend {
    const { replies } = this.#facts;
    const models = new Models();
    models.add(this.#model);
    return {
      models,
      options: this.#options,
      jobs: this.#jobs,
      webhooks: this.#webhooks,
      unsent: this.#unsent,
      posts: { count: 0 },
      replies,
      lobby: new Lobby(),
      keys: this.#plan.keys,
      log: this.#log,
      hasGpu: this.#plan.placements.some(({ gpu }) => gpu !== null),
      stopping: () => this.#lastReplies,
      closing: (request) => this.#lastReplies && isLastRequest(request),
      inviteBody,
      onSettled: (asked, job, status, error) => {
        this.#countReply(error?.code ?? 'ok');
        this.#accessLog?.settled(asked, status, job, error);
      },
      onRefused: (asked, error) => {
        if (asked.counts) this.#countReply(error.code);
        this.#accessLog?.refused(asked, error);
      },
      status: () => this.status(),
    };
  }

  #countReply(outcome: string): void {
    const { replies } = this.#facts;
    replies.set(outcome, (replies.get(outcome) ?? 0) + 1);
  }

  /** An answer that is no call's: a gateway's reply, a kept job, an error. */
  #onCut(request: IncomingMessage, error: ServeError): void {
    this.#countReply(error.code);
    this.#accessLog?.cut(request, requestIdOf(request.headers), error);
  }

  async #watchApp(): Promise<void> {
    const listener = {
      onChange: (files: readonly string[]) => this.#onAppChanged(files),
      onProblem: (problem: string) => this.#log.error(`--watch: ${problem}`),
    };
    this.#appFiles = this.#plan.spec.program.watches.map((path) => new AppFiles(path, listener));
    await Promise.all(this.#appFiles.map((files) => files.open()));
  }

  #onAppChanged(files: readonly string[]): void {
    this.#log.info(`${changeText(files)} changed: starting the workers again`);
    this.#model.replaceWorkers(retireLimits(this.#options.drainTimeout));
  }

  #onFirstReady(): void {
    this.#facts.eventLoopDelay.enable();
    const socketPath = this.#listening?.socketPath ?? null;
    const command = tryText(this.#model, this.url, socketPath, this.#plan.keys.required);
    if (command !== null) this.#log.info(command);
    this.#ready.resolve();
  }

  #onLatched(error: ServeError, everReady: boolean): void {
    const what = everReady ? 'no worker can be restarted' : 'no worker could start';
    const whatAndWhy = `${what}; the reason stands above`; // in the report of the death
    if (this.#options.watch) {
      this.#log.error(`${whatAndWhy}. Answering 503 until a file of the app changes (--watch)`);
      return;
    }
    this.#ready.reject(error);
    if (everReady && this.#options.onCrashLoop === 'stay') {
      this.#log.error(`${whatAndWhy}. Staying up and answering 503 (--on-crash-loop)`);
      return;
    }
    this.#log.error(whatAndWhy);
    // Held callers have been answered; `finish` lets the answers reach them.
    void this.#finish({ reason: 'failed', error }, performance.now() + this.#options.drainTimeout);
  }

  async #drain(lagMs: number, hint: string): Promise<void> {
    const timeoutMs = this.#options.drainTimeout;
    const endAtMs = performance.now() + timeoutMs;
    for (const files of this.#appFiles) files.close();
    const reason = await drain({
      model: this.#model,
      log: this.#log,
      lagMs,
      timeoutMs,
      hint,
      webhooksOwed: this.#webhooks.owed,
      workersClosed: this.#workersClosed.promise,
      onRefusing: () => (this.#lastReplies = true),
      onCut: () => this.#reportUnfinished(),
    });
    await this.#finish({ reason, error: null }, endAtMs);
  }

  /** Their callers were told that they are taken, and hear nothing more. */
  #reportUnfinished(): void {
    const jobs = this.#jobs.unfinished();
    if (jobs.length > 0) this.#log.error({ jobs }, `background jobs cut off: ${jobs.join(', ')}`);
  }

  #onJobEnded({ id, requestId, route, error }: KeptJob): void {
    if (error === null) return;
    const text = `the background job ${id} of ${route} failed: ${error.message}`;
    this.#log.warn({ job: id, requestId, route, code: error.code }, text);
  }

  async #finish(end: ServerEnd, endAtMs: number): Promise<void> {
    this.#lastReplies = true;
    await Promise.all([this.#listening?.close(), this.#drainWebhooks(endAtMs - performance.now())]);
    await this.#tearDown(end);
  }

  async #drainWebhooks(limitMs: number): Promise<void> {
    const { owed } = this.#webhooks;
    if (owed > 0) this.#log.info(`sending ${owed} webhooks (at most ${formatMs(Math.max(0, limitMs))})`);
    await this.#webhooks.drain(limitMs);
  }

  /** The first end is the one that counts: a kill during a drain, a drain after a failed start. */
  async #tearDown(end: ServerEnd): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#ready.reject(
      end.error ?? new ServeError('SERVE_SHUTTING_DOWN', 'The server ended before it was ready.'),
    );
    process.off('exit', this.#killNow);
    for (const files of this.#appFiles) files.close();
    this.#model.dispatcher.close();
    this.#jobs.close();
    this.#model.killAll();
    this.#webhooks.close();
    this.#unsent.close();
    this.#guard.close();
    this.#facts.eventLoopDelay.disable();
    this.#log.info(endText(end));
    await Promise.all(Object.values(this.#writers).map((writer) => writer.flush(FLUSH_MS)));
    this.#ended.resolve(end);
  }

  readonly #killNow = (): void => {
    this.#model.killAll();
    this.#listening?.destroy();
  };

  #warnUnguarded(why: string): void {
    this.#log.warn(
      `orphan guard: ${asClause(why)}; if this server is killed, a worker inside native code ends only when it returns`,
    );
  }
}
