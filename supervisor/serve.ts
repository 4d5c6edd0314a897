/**
 * Builds the server and joins its parts: the only place that makes everything.
 *
 * 1. Options from every source, devices, the app's path: all refused here if wrong, before anything starts.
 * 2. The port opens; calls are held from the first moment.
 * 3. Workers start; `ready` resolves with the first one.
 * 4. `close` drains: health says so, calls are taken a little longer, then refused, the rest is finished, workers
 *    stop. `kill` does not wait.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { basename } from 'node:path';
import { ServeError } from '../protocol/errors.js';
import { findApp } from './app-path.js';
import { startText, tryText } from './banner.js';
import type { Front } from './http/front.js';
import { createHandler, createHttpServer, inviteBody } from './http/server.js';
import { listen, type Listening } from './http/listen.js';
import { ModelRuntime } from './models/model-runtime.js';
import { createLog, lineWriter } from './observe/log.js';
import { OutputRelay } from './observe/output-relay.js';
import { serverStatus } from './observe/status.js';
import { readConfigFile } from './options/config-file.js';
import { readEnvironment, resolveOptions, type Options, type OptionSource } from './options/resolve.js';
import { availableCores } from './pool/cores.js';
import { discoverGpus } from './pool/gpu-discovery.js';
import { OrphanGuard } from './pool/orphan-guard.js';
import { placeWorkers } from './pool/placement.js';
import { SpawnGate } from './pool/spawn-gate.js';
import { TERM_GRACE_MS } from './pool/worker-handle.js';
import { VERSION } from './version.js';

/** Options of `serve()`, by the names of docs/options.md; durations and sizes as on the command line. */
export interface ServeOptions {
  /** Path of the app; without it, `app` of the config file, then `app.ts` and its like. */
  readonly app?: string;
  /** Program and arguments of a worker in another language (docs/wire.md). */
  readonly workerCommand?: readonly string[];
  /** Folder of the config file and of relative paths; the current one. */
  readonly cwd?: string;
  readonly [option: string]: unknown;
}

/** Why a server ended. */
export interface ServerEnd {
  /** `drained`: every call was answered. `cut`: the drain timeout passed first. `failed`: no worker could start. */
  readonly reason: 'drained' | 'cut' | 'failed' | 'killed';
  readonly error: ServeError | null;
}

export interface ServerHandle {
  /** Where it listens, such as `http://localhost:8000`; `unix:/path` for a socket. */
  readonly url: string;
  /** Resolves with the first worker; rejects (SERVE_CRASH_LOOP, SERVE_APP_INVALID) if none can start. */
  readonly ready: Promise<void>;
  /** Resolves when the server has ended, however that came. */
  readonly ended: Promise<ServerEnd>;
  /** `--drain-lag` in force. */
  readonly drainLagMs: number;
  status(): object;
  /** Drains and stops. `lagMs`: how long calls are still accepted first; 0 by default. */
  close(options?: { lagMs?: number }): Promise<ServerEnd>;
  /** Stops at once: workers are killed, connections cut. */
  kill(): void;
}

/** How the command line adds its source of options, and takes the role of the process. */
export interface ServeInternals {
  readonly flags?: OptionSource;
}

/** @throws SERVE_CONFIG if an option is wrong, with nothing started; system errors of `listen` (EADDRINUSE, …) */
export async function serve(given: ServeOptions = {}, internals: ServeInternals = {}): Promise<ServerHandle> {
  const { app: givenApp, workerCommand, cwd = process.cwd(), ...values } = given;
  const environment = readEnvironment(process.env);
  const file = readConfigFile(cwd);
  const flags = internals.flags ?? { values, where: (name: string) => `serve({ ${name} })` };
  const resolved = resolveOptions([flags, environment.source, file.source]);
  const { options } = resolved;
  const app = workerCommand === undefined ? findApp(givenApp ?? file.app, cwd) : (givenApp ?? '');

  const writers = { stdout: lineWriter(1), stderr: lineWriter(2) };
  const log = createLog(options.logFormat, options.logLevel, writers.stderr);
  for (const warning of environment.warnings) log.warn(warning);

  const discovery = options.gpus === 'none' ? { gpus: [], problem: null } : await discoverGpus(process.env);
  if (discovery.problem !== null) log.warn(`GPU discovery: ${discovery.problem}; continuing without`);
  const placements = placeWorkers({
    workers: options.workers,
    gpus: options.gpus,
    workersPerGpu: options.workersPerGpu,
    found: discovery.gpus,
    inheritedMask: process.env['CUDA_VISIBLE_DEVICES'],
    cores: availableCores(),
  });

  const facts = {
    version: VERSION,
    startedAt: new Date(),
    eventLoopDelay: monitorEventLoopDelay({ resolution: 10 }),
    replies: new Map<string, number>(),
  };
  const guard = new OrphanGuard((why) => {
    log.warn(`orphan guard: ${why}; if this server is killed, a worker inside native code ends only when it returns`);
  });
  const model = new ModelRuntime(
    { name: modelName(app), version: '1', app, workerCommand: workerCommand ?? null },
    resolved,
    placements,
    {
      gate: new SpawnGate(options.spawnConcurrency),
      guard,
      relay: new OutputRelay(options.logFormat, writers),
      log,
      attributePrints: options.logFormat === 'json',
    },
    { onFirstReady, onLatched, onClosed: () => workersClosed.resolve() },
  );

  let connectionsEnd = false;
  let listening: Listening;
  let closing: Promise<ServerEnd> | null = null;
  const ready = deferred<void>();
  ready.promise.catch(() => {}); // whoever asks for it is told; nobody has to
  const ended = deferred<ServerEnd>();
  const workersClosed = deferred<void>();

  const front: Front = {
    model,
    options,
    hasGpu: discovery.gpus.length > 0,
    closing: () => connectionsEnd,
    inviteBody,
    onSettled: (request, job, status, error) => {
      count(error?.code ?? 'ok');
      if (options.accessLog) logAccess(request.method, job.call.path, job.call.requestId, status, job);
    },
    onRefused: (request, requestId, error) => {
      count(error.code);
      if (options.accessLog) log.info({ requestId, code: error.code }, `${request.method} ${request.url} refused`);
    },
    status: () => serverStatus(facts, model),
  };

  const server = createHttpServer(options.headerTimeout, createHandler(front, log));
  try {
    listening = await listen(server, options.host, options.port);
  } catch (error) {
    guard.close();
    throw error;
  }
  process.on('exit', killNow);
  log.info(startText(app, placements, listening.url));
  model.start();

  function onFirstReady(): void {
    facts.eventLoopDelay.enable();
    log.info(tryText(model, listening.url, listening.socketPath));
    ready.resolve();
  }

  function onLatched(error: ServeError, everReady: boolean): void {
    ready.reject(error);
    if (everReady && options.onCrashLoop === 'stay') {
      log.error(`no worker can be restarted: ${error.detail}. Staying up and answering 503 (--on-crash-loop)`);
      return;
    }
    log.error(`${everReady ? 'no worker can be restarted' : 'no worker could start'}: ${error.detail}`);
    // Held callers have been answered; let the answers reach them.
    void finish({ reason: 'failed', error });
  }

  /** The order of a polite end. Bounded by the drain timeout, whatever the workers do. */
  async function drain(lagMs: number): Promise<ServerEnd> {
    const endAtMs = performance.now() + options.drainTimeout;
    model.announceDrain();
    log.info(`draining (at most ${options.drainTimeout} ms)`);
    if (lagMs > 0) await delay(Math.min(lagMs, options.drainTimeout));
    connectionsEnd = true;
    model.refuseCalls();
    const reserveMs = Math.min(options.drainTimeout / 5, WORKER_STOP_RESERVE_MS);
    const quiet = await quietBefore(model, endAtMs - reserveMs);
    if (!quiet) cutOff(model);
    const graceMs = Math.max(0, endAtMs - performance.now() - TERM_GRACE_MS);
    model.close(graceMs);
    await workersClosed.promise;
    return finish({ reason: quiet ? 'drained' : 'cut', error: null });
  }

  function cutOff({ dispatcher }: ModelRuntime): void {
    const { queued, inFlight } = dispatcher;
    log.error(`the drain timeout passed with ${inFlight} calls running and ${queued} waiting; they are cut off`);
    const error = new ServeError('SERVE_SHUTTING_DOWN', undefined, { retryAfterS: 1 });
    dispatcher.failQueued(error);
    dispatcher.failInFlight(new ServeError('SERVE_WORKER_LOST', 'The server stopped before this call was finished.'));
  }

  async function finish(end: ServerEnd): Promise<ServerEnd> {
    connectionsEnd = true;
    await listening.close();
    tearDown(end);
    return end;
  }

  function tearDown(end: ServerEnd): void {
    process.off('exit', killNow);
    model.dispatcher.close();
    model.killAll();
    guard.close();
    facts.eventLoopDelay.disable();
    log.info(endText(end));
    writers.stdout.flushSync();
    writers.stderr.flushSync();
    ended.resolve(end);
  }

  function killNow(): void {
    model.killAll();
    listening.destroy();
  }

  function count(outcome: string): void {
    facts.replies.set(outcome, (facts.replies.get(outcome) ?? 0) + 1);
  }

  function logAccess(method = '', path: string, requestId: string, status: number, job: Parameters<Front['onSettled']>[1]): void {
    const nowMs = performance.now();
    const times = { queueMs: Math.round(job.queueMs(nowMs)), runMs: Math.round(job.runMs), ms: Math.round(nowMs - job.acceptedAtMs) };
    log.info({ requestId, status, ...times }, `${method} ${path}`);
  }

  return {
    url: listening.url,
    ready: ready.promise,
    ended: ended.promise,
    drainLagMs: options.drainLag,
    status: () => front.status(),
    close: ({ lagMs = 0 } = {}) => (closing ??= drain(lagMs)),
    kill: () => {
      killNow();
      tearDown({ reason: 'killed', error: null });
    },
  };
}

/** Kept at the end of the drain for the workers' own shutdown. */
const WORKER_STOP_RESERVE_MS = 5000;

/** Resolves true once nothing waits or runs, false at the limit. Asked often: it is one sum. */
async function quietBefore(model: ModelRuntime, limitMs: number): Promise<boolean> {
  while (!model.quiet) {
    if (performance.now() >= limitMs) return false;
    await delay(10);
  }
  return true;
}

function endText(end: ServerEnd): string {
  switch (end.reason) {
    case 'drained':
      return 'stopped; every call was answered';
    case 'cut':
      return 'stopped; some calls were cut off';
    case 'failed':
      return 'stopped; no worker could start';
    case 'killed':
      return 'stopped at once';
  }
}

function modelName(app: string): string {
  const name = basename(app).replace(/\.\w+$/, '');
  return name === '' ? 'model' : name;
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: unknown) => void } {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

export type { Options };
