/**
 * The types of the values of each option. Authors' `config`, `serve()` and `app.serve()` use them, so they lie where
 * both sides can import them; the compiler holds the supervisor's option table to them. docs/options.md describes each
 * option.
 */

import type { Task } from './wire/messages.js';

/** `true` in a program, `--flag` on the command line. */
type Switch = boolean;

/** `'512kb'`, `'10mb'`, `'1gb'`, or a number of bytes. */
type Size = string | number;

/** Options of one model that its app may set in `config`. `Duration` is the type of a length of time. */
export interface ModelOptionTypes<Duration> {
  initTimeout: Duration;
  restartLimit: number;
  queueSize: number;
  queueTimeout: Duration;
  rawItems: Switch;
  batchSize: number;
  maxBatchDelay: Duration;
  runTimeout: Duration;
  websocketIdleTimeout: Duration;
}

/** Options of one model that only the operator sets, because they concern the machine. */
export interface OperatorOptionTypes<Duration> {
  workers: number;
  gpus: string | number;
  workersPerGpu: number;
  minWorkers: number;
  maxWorkers: number;
  idleTimeout: Duration;
  targetWait: Duration;
  standby: number;
  python: string;
  providers: string;
  task: Task;
  concurrency: number;
}

/** Options of the whole server. */
export interface ServerOptionTypes<Duration> {
  host: string;
  /** A TCP port, 0 for a free one, or the path of a unix socket. */
  port: number | string;
  tlsCert: string;
  tlsKey: string;
  tlsFor: string | readonly string[];
  readyFile: string;
  page: Switch;
  openapiAll: Switch;
  apiKey: string | readonly string[];
  apiKeyFile: string;
  corsOrigin: string | readonly string[];
  corsMethods: string | readonly string[];
  corsHeaders: string | readonly string[];
  name: string;
  modelStore: string;
  mmsConfig: string;
  defaultWorkers: number;
  defaultHandler: string;
  models: string | readonly string[];
  /** URL prefixes. */
  allowedUrls: string | readonly string[];
  ping: 'health' | 'always-200';
  mmsExceptionStatus: '503' | '500';
  managementPort: number | string;
  managementHost: string;
  managementKey: string | readonly string[];
  managementInsecure: Switch;
  unregisterTimeout: Duration;
  onCrashLoop: 'stay' | 'exit';
  spawnConcurrency: number;
  spares: number;
  /** A size, or a share such as `'50%'`. */
  memoryBudget: Size;
  /** As `memoryBudget`. */
  gpuMemoryBudget: Size;
  withholdEnv: string;
  maxBody: Size;
  maxOutput: Size;
  queueBytes: Size;
  /** `memory`, `local`, or `local:` and a folder. */
  jobs: string;
  jobRetention: Duration;
  jobBytes: Size;
  compress: Switch;
  unsentBytes: Size;
  headerTimeout: Duration;
  bodyTimeout: Duration;
  stallTimeout: Duration;
  drainTimeout: Duration;
  drainLag: Duration;
  watch: Switch;
  exposeErrors: Switch;
  accessLog: Switch;
  logFormat: 'text' | 'json';
  logPrefix: 'none' | 'potassium';
  logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  logLocation: string;
  metrics: Switch;
  metricsPort: number | string;
  metricsHost: string;
  metricsMode: 'log' | 'prometheus' | 'legacy';
  metricInterval: Duration;
  metricsLocation: string;
  webhookSecret: string;
}

/** Any subset of the options; `undefined` counts as left out. */
type Given<T> = { readonly [K in keyof T]?: T[K] | undefined };

/**
 * Options that a program may set for one of several models. Durations are milliseconds as numbers, or have a unit: `'500ms'`,
 * `'30s'`, `'5m'`.
 */
export type ProgramModelOptions = Given<
  ModelOptionTypes<string | number> & OperatorOptionTypes<string | number>
>;

/** All options of a program. */
export type ProgramOptions = ProgramModelOptions & Given<ServerOptionTypes<string | number>>;

/** Options as a person writes them: durations have a unit, `'500ms'`, `'30s'`, `'5m'`. */
export type ConfigOptions = Given<ModelOptionTypes<string>>;
