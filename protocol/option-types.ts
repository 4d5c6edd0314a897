/**
 * The types of the values that each option takes. Authors' `config`, `serve()` and `app.serve()` are written with them, so
 * they stand where both sides find them; the option table of the supervisor is held to them by the compiler.
 * docs/options.md says what each option does.
 */

/** `true` from a program, `--flag` on the command line. */
type Switch = boolean;

/** `'512kb'`, `'10mb'`, `'1gb'`, or a number of bytes. */
type Size = string | number;

/** Options of one model, which its app may set in `config`. `Duration`: how a length of time may be written. */
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

/** Options of one model that only whoever runs the server gives: the machine is theirs. */
export interface OperatorOptionTypes {
  workers: number;
  gpus: string | number;
  workersPerGpu: number;
  python: string;
}

/** Options of the whole server. */
export interface ServerOptionTypes<Duration> {
  host: string;
  /** A TCP port, 0 for a free one, or the path of a unix socket. */
  port: number | string;
  tlsCert: string;
  tlsKey: string;
  tlsFor: string | readonly string[];
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
  /** Beginnings of web addresses. */
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
  withholdEnv: string;
  maxBody: Size;
  maxOutput: Size;
  queueBytes: Size;
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

/** Any of them, or none; `undefined` is as if it were left out. */
export type Given<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** A program may give durations as numbers, which are milliseconds, or with a unit: `'500ms'`, `'30s'`, `'5m'`. */
export type ProgramOptions = Given<
  ModelOptionTypes<string | number> & OperatorOptionTypes & ServerOptionTypes<string | number>
>;

/** Options that a program may give to one of several models. */
export type ProgramModelOptions = Given<ModelOptionTypes<string | number> & OperatorOptionTypes>;

/** A person writes durations with their unit: `'500ms'`, `'30s'`, `'5m'`. */
export type ConfigOptions = Given<ModelOptionTypes<string>>;
