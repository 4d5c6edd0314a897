/**
 * Every option: names, meaning, default and its reason, what is allowed. The command line, the environment, the
 * config file, the app's `config`, `serve()` and docs/options.md are all read from this table. It is as long as there are
 * options: whoever looks for one looks in one place.
 */
import type {
  ModelOptionTypes,
  OperatorOptionTypes,
  ServerOptionTypes,
} from '../../protocol/option-types.js';
import { availableCores } from '../machine/cores.js';
import { parseWebhookSecrets, type WebhookSigner } from './webhook-signer.js';
import { parseHost, parsePort } from './address.js';
import { parseProgram } from './program.js';
import { NO_URLS, parseAllowedUrls, type AllowedUrls } from './allowed-urls.js';
import { parseKeyFilePath, parseKeys, type KeyDigest } from './api-key.js';
import { parseOrigins, parseTokens, type AllowedOrigins } from './cors-origin.js';
import { parseGpus } from './gpu-list.js';
import { parseNamePattern } from './name-pattern.js';
import { parseModelName } from './model-name.js';
import { parsePemPath, parseTlsListeners, type TlsListener } from './tls-values.js';
import { parseFolder, parseHandler, parseWantedModels, type WantedModels } from './wanted-models.js';
import {
  parseBytes,
  parseChoice,
  parseDurationMs,
  parsePositiveMs,
  parseSwitch,
  parseWhole,
} from './units.js';

/**
 * Whose an option is. `server`: one value for the whole server. `operator`: one for each model, given by whoever runs the
 * server. `model`: one for each model, which its app may also set in its `config`.
 */
export type OptionScope = 'server' | 'operator' | 'model';

/** In the order of the help and of docs/options.md. */
export const OPTION_GROUPS = [
  'Listening',
  'Access',
  'Models',
  'Management',
  'Workers',
  'Calls',
  'Clients',
  'Stopping',
  'Development',
  'Logs',
  'Metrics',
  'Webhooks',
] as const;

export type OptionGroup = (typeof OPTION_GROUPS)[number];

export interface OptionSpec<T, S extends OptionScope = OptionScope> {
  readonly group: OptionGroup;
  readonly scope: S;
  readonly flag: string;
  /** The text after the flag in the help; null for a switch. */
  readonly value: string | null;
  /** The meaning of the option, and the reason for its default. */
  readonly help: string;
  readonly defaultText: string;
  readonly default: T;
  /** On the command line it may be given several times; the values come as an array. */
  readonly repeats?: true;
  /** No error, warning or help shows a value of it. */
  readonly secret?: true;
  /** @throws NotAllowed */
  readonly parse: (raw: unknown) => T;
}

/** The compiler's proof that the types of `serve()` and of `config` name the options of this table, and no others. */
type EveryOption = Specs<ServerOptionName, 'server'> &
  Specs<OperatorOptionName, 'operator'> &
  Specs<ModelOptionName, 'model'>;

type Specs<Name extends string, S extends OptionScope> = Readonly<Record<Name, OptionSpec<unknown, S>>>;

type ServerOptionName = keyof ServerOptionTypes<unknown>;
type OperatorOptionName = keyof OperatorOptionTypes;
type ModelOptionName = keyof ModelOptionTypes<unknown>;

const DURATION = '<duration>';
const MIB = 1024 ** 2;
const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** An option without its scope, which the name of the function says. */
type Described<T> = Omit<OptionSpec<T>, 'scope'>;

function serverOption<T>(described: Described<T>): OptionSpec<T, 'server'> {
  return { ...described, scope: 'server' };
}

function operatorOption<T>(described: Described<T>): OptionSpec<T, 'operator'> {
  return { ...described, scope: 'operator' };
}

function modelOption<T>(described: Described<T>): OptionSpec<T, 'model'> {
  return { ...described, scope: 'model' };
}

export const OPTIONS = {
  host: serverOption<string>({
    group: 'Listening',
    flag: '--host',
    value: '<address>',
    help: 'Address to listen on. All interfaces, as a container needs; use 127.0.0.1 to keep it to this machine.',
    defaultText: '0.0.0.0',
    default: '0.0.0.0',
    parse: parseHost,
  }),
  port: serverOption<number | string>({
    group: 'Listening',
    flag: '--port',
    value: '<port>',
    help: 'TCP port, 0 for a free one, or the path of a unix socket (anything with a /). PORT in the environment counts too.',
    defaultText: '8000',
    default: 8000,
    parse: parsePort,
  }),
  tlsCert: serverOption<string | null>({
    group: 'Listening',
    flag: '--tls-cert',
    value: '<path>',
    help: 'PEM file of the certificate for TLS, with those that vouch for it behind it; clients then use https. Read at the start only. Needs --tls-key.',
    defaultText: 'no TLS',
    default: null,
    parse: parsePemPath,
  }),
  tlsKey: serverOption<string | null>({
    group: 'Listening',
    flag: '--tls-key',
    value: '<path>',
    help: "PEM file of the certificate's private key, RSA or EC, not encrypted.",
    defaultText: 'no TLS',
    default: null,
    parse: parsePemPath,
  }),
  tlsFor: serverOption<readonly TlsListener[]>({
    group: 'Listening',
    flag: '--tls-for',
    value: '<listeners>',
    help: 'Which listeners speak TLS, with the same certificate: main, management, metrics, separated by commas. The management API speaks none by default, because it is kept to this machine.',
    defaultText: 'main',
    default: ['main'],
    parse: parseTlsListeners,
  }),
  apiKey: serverOption<readonly KeyDigest[] | null>({
    group: 'Access',
    flag: '--api-key',
    value: '<key>',
    help: 'Key that calls and /status must bring; several, separated by commas, hold at once. Flags can be seen in ps for a moment: better the environment or a file.',
    defaultText: 'no key needed',
    default: null,
    secret: true,
    parse: parseKeys,
  }),
  apiKeyFile: serverOption<string | null>({
    group: 'Access',
    flag: '--api-key-file',
    value: '<path>',
    help: 'File of such keys, one per line, # begins a comment line; they hold besides those of --api-key. Read at the start only.',
    defaultText: 'no file',
    default: null,
    parse: parseKeyFilePath,
  }),
  corsOrigin: serverOption<AllowedOrigins | null>({
    group: 'Access',
    flag: '--cors-origin',
    value: '<origin>',
    help: 'Origin whose pages may call from a browser, such as https://app.example.com; several, separated by commas, or * for all. Off: a page of another origin cannot read any reply.',
    defaultText: 'off',
    default: null,
    parse: parseOrigins,
  }),
  corsMethods: serverOption<readonly string[] | null>({
    group: 'Access',
    flag: '--cors-methods',
    value: '<methods>',
    help: 'Methods that browsers are told their pages may use, separated by commas, whatever the path takes. Of no effect without --cors-origin.',
    defaultText: "the path's",
    default: null,
    parse: (raw) => parseTokens(raw, 'GET, POST').map((method) => method.toUpperCase()),
  }),
  corsHeaders: serverOption<readonly string[] | null>({
    group: 'Access',
    flag: '--cors-headers',
    value: '<names>',
    help: 'Request headers that browsers are told their pages may send, separated by commas. Of no effect without --cors-origin.',
    defaultText: 'all that a page asks for',
    default: null,
    parse: (raw) => parseTokens(raw, 'Content-Type, X-Request-Id'),
  }),
  name: serverOption<string | null>({
    group: 'Models',
    flag: '--name',
    value: '<name>',
    help: 'Name of the model that answers on /, in paths, logs and /status: letters, digits, dots, underscores and hyphens.',
    defaultText: "its file's",
    default: null,
    parse: parseModelName,
  }),
  modelStore: serverOption<string | null>({
    group: 'Models',
    flag: '--model-store',
    value: '<folder>',
    help: 'Folder of models, each a folder or a file in it, which --models and the management API name by their paths there. Without an app, the server is like Multi Model Server: see docs/models.md.',
    defaultText: 'no store',
    default: null,
    parse: parseFolder,
  }),
  models: serverOption<WantedModels | null>({
    group: 'Models',
    flag: '--models',
    value: '<which>',
    help: 'Models of the store to begin with: all, or paths there, each with a name before it if it is to have another: digits,cats=zoo/cats. By commas, or given several times.',
    defaultText: 'none',
    default: null,
    repeats: true,
    parse: parseWantedModels,
  }),
  mmsConfig: serverOption<string | null>({
    group: 'Models',
    flag: '--mms-config',
    value: '<path>',
    help: 'A config.properties of Multi Model Server. MMS_CONFIG_FILE in the environment goes before it; without either, config.properties of the current folder is read if no app is named and none lies there. See docs/config-properties.md.',
    defaultText: 'no file',
    default: null,
    parse: parseKeyFilePath,
  }),
  defaultWorkers: serverOption<number | null>({
    group: 'Models',
    flag: '--default-workers',
    value: '<n>',
    help: 'Workers of each model of the store, both of those that the server begins with and of those that are registered without a number; they share the GPUs, if there are any. --workers and --workers-per-gpu go before it at the start.',
    defaultText: 'at the start one, or one for each GPU; none for models that are registered',
    default: null,
    parse: (raw) => parseWhole(raw, 1, 1024),
  }),
  defaultHandler: serverOption<string | null>({
    group: 'Models',
    flag: '--default-handler',
    value: '<handler>',
    help: 'Handler of folders and archives of the store that have no manifest, where nobody names one: file, file:function or file:Class.',
    defaultText: 'found by its name',
    default: null,
    parse: parseHandler,
  }),
  allowedUrls: serverOption<AllowedUrls>({
    group: 'Models',
    flag: '--allowed-urls',
    value: '<urls>',
    help: 'Beginnings of the web addresses that models may be downloaded from, such as https://models.example.com/zoo/; several, separated by commas. None: whoever may have a model downloaded may have it run here. See docs/security.md.',
    defaultText: 'none',
    default: NO_URLS,
    parse: parseAllowedUrls,
  }),
  ping: serverOption<'health' | 'always-200'>({
    group: 'Models',
    flag: '--ping',
    value: '<what>',
    help: 'What /ping says: health, with 503 while no model that wants workers has one, or always-200, as Multi Model Server did.',
    defaultText: 'health',
    default: 'health',
    parse: (raw) => parseChoice(raw, ['health', 'always-200']),
  }),
  mmsExceptionStatus: serverOption<'503' | '500'>({
    group: 'Models',
    flag: '--mms-exception-status',
    value: '<status>',
    help: "What a failure of the model's code is on Multi Model Server's paths: 503, as it was there, or 500, which no balancer takes for a server that is too busy.",
    defaultText: '503',
    default: '503',
    parse: (raw) => parseChoice(raw, ['503', '500']),
  }),
  managementPort: serverOption<number | string | null>({
    group: 'Management',
    flag: '--management-port',
    value: '<port>',
    help: 'TCP port of the management API, 0 for a free one, or the path of a unix socket (anything with a /). The port of the server itself puts both on one.',
    defaultText: 'off; with --model-store or --models 8081',
    default: null,
    parse: parsePort,
  }),
  managementHost: serverOption<string>({
    group: 'Management',
    flag: '--management-host',
    value: '<address>',
    help: 'Address of the management API. This machine only, because who reaches it can run code; another one needs a key.',
    defaultText: '127.0.0.1',
    default: '127.0.0.1',
    parse: parseHost,
  }),
  managementKey: serverOption<readonly KeyDigest[] | null>({
    group: 'Management',
    flag: '--management-key',
    value: '<key>',
    help: 'Key that the management API asks for, instead of those of --api-key; several, separated by commas, hold at once. Better given in the environment or a file.',
    defaultText: 'that of --api-key',
    default: null,
    secret: true,
    parse: parseKeys,
  }),
  managementInsecure: serverOption<boolean>({
    group: 'Management',
    flag: '--management-insecure',
    value: null,
    help: 'Allows a management API without a key on an address that others reach. Off: whoever reaches it can run code here.',
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  unregisterTimeout: serverOption<number>({
    group: 'Management',
    flag: '--unregister-timeout',
    value: DURATION,
    help: 'Longest time that the management API waits for the running calls and the workers of a model that is unregistered; then it answers 408, and the rest goes on. 0: it waits for nothing.',
    defaultText: '2m',
    default: 2 * MINUTE,
    parse: parseDurationMs,
  }),
  workers: operatorOption<number | null>({
    group: 'Workers',
    flag: '--workers',
    value: '<n>',
    help: 'Worker processes on a machine without GPUs. One: a model is loaded once until you ask for more.',
    defaultText: '1',
    default: null,
    parse: (raw) => parseWhole(raw, 1, 1024),
  }),
  gpus: operatorOption<string | null>({
    group: 'Workers',
    flag: '--gpus',
    value: '<which>',
    help: 'all, none, first:2 for the first two or as many as there are, or a list of indexes or ids as nvidia-smi prints them: 0,2 or GPU-uuid or MIG-uuid.',
    defaultText: 'all that nvidia-smi finds',
    default: null,
    parse: parseGpus,
  }),
  workersPerGpu: operatorOption<number | null>({
    group: 'Workers',
    flag: '--workers-per-gpu',
    value: '<n>',
    help: 'Worker processes on each GPU. One: every worker holds its own copy of the model in GPU memory.',
    defaultText: '1',
    default: null,
    parse: (raw) => parseWhole(raw, 1, 64),
  }),
  python: operatorOption<string | null>({
    group: 'Workers',
    flag: '--python',
    value: '<path>',
    help: 'Interpreter of apps in Python: a path, or a name to be looked for in PATH. Left out: that of the active environment, of a .venv or venv beside the app or above it, else python3. See docs/python.md.',
    defaultText: 'found',
    default: null,
    parse: parseProgram,
  }),
  queueSize: modelOption<number>({
    group: 'Calls',
    flag: '--queue-size',
    value: '<n>',
    help: 'Calls that may wait for a worker; more are refused with 503. 0 refuses whenever every worker is busy.',
    defaultText: '1024',
    default: 1024,
    parse: (raw) => parseWhole(raw, 0, 1_000_000),
  }),
  queueBytes: serverOption<number>({
    group: 'Calls',
    flag: '--queue-bytes',
    value: '<size>',
    help: 'Request bodies that may wait or be arriving, for all models together, in bytes, counted as they arrive; more are refused with 503, the slowest first, so memory stays bounded.',
    defaultText: '512mb',
    default: 512 * MIB,
    parse: parseBytes,
  }),
  queueTimeout: modelOption<number>({
    group: 'Calls',
    flag: '--queue-timeout',
    value: DURATION,
    help: 'Longest wait for a worker before 504. As long as common clients wait.',
    defaultText: '5m',
    default: 5 * MINUTE,
    parse: parsePositiveMs,
  }),
  rawItems: modelOption<boolean>({
    group: 'Calls',
    flag: '--raw-items',
    value: null,
    help: 'Custom services get bodies and fields as bytes, whatever their content type. Off: JSON is read, and text is text.',
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  batchSize: modelOption<number>({
    group: 'Calls',
    flag: '--batch-size',
    value: '<n>',
    help: 'Most calls that one run of an app that takes batches may be given at once. 1: every call runs by itself, as in an app that takes none. See docs/batching.md.',
    defaultText: '1',
    default: 1,
    parse: (raw) => parseWhole(raw, 1, 1024),
  }),
  maxBatchDelay: modelOption<number>({
    group: 'Calls',
    flag: '--max-batch-delay',
    value: DURATION,
    help: 'Longest time that a call waits, beside an idle worker, for others to fill its batch. 0: an idle worker takes at once what is there.',
    defaultText: '0',
    default: 0,
    parse: parseDurationMs,
  }),
  runTimeout: modelOption<number>({
    group: 'Calls',
    flag: '--run-timeout',
    value: DURATION,
    help: 'Longest run of one call: then the abort signal, a grace of 1s, SIGKILL; the caller gets 504.',
    defaultText: '5m',
    default: 5 * MINUTE,
    parse: parsePositiveMs,
  }),
  websocketIdleTimeout: modelOption<number>({
    group: 'Calls',
    flag: '--websocket-idle-timeout',
    value: DURATION,
    help: 'Longest silence, on both sides, of a WebSocket whose app waits for its client; then it is closed. It holds a worker all the while.',
    defaultText: '1m',
    default: MINUTE,
    parse: parsePositiveMs,
  }),
  initTimeout: modelOption<number>({
    group: 'Workers',
    flag: '--init-timeout',
    value: DURATION,
    help: 'Longest start of a worker, from spawn to ready. Large models take minutes to load.',
    defaultText: '10m',
    default: 10 * MINUTE,
    parse: parsePositiveMs,
  }),
  drainTimeout: serverOption<number>({
    group: 'Stopping',
    flag: '--drain-timeout',
    value: DURATION,
    help: "Longest stop. Below Kubernetes' 30s; docker stop waits only 10s unless told otherwise (docker stop -t 30).",
    defaultText: '25s',
    default: 25 * SECOND,
    parse: parseDurationMs,
  }),
  drainLag: serverOption<number>({
    group: 'Stopping',
    flag: '--drain-lag',
    value: DURATION,
    help: 'After SIGTERM, how long calls are still accepted while load balancers notice that /readyz says 503. Ctrl-C: 0.',
    defaultText: '2s',
    default: 2 * SECOND,
    parse: parseDurationMs,
  }),
  maxBody: serverOption<number>({
    group: 'Clients',
    flag: '--max-body',
    value: '<size>',
    help: 'Largest request body; larger ones get 413 while they arrive. 100,000,000 bytes, as the Banana server had.',
    defaultText: '100000000',
    default: 100_000_000,
    parse: parseBytes,
  }),
  maxOutput: serverOption<number>({
    group: 'Clients',
    flag: '--max-output',
    value: '<size>',
    help: 'Largest answer that is not a stream; a larger one is a 500. It is held in memory once.',
    defaultText: '100000000',
    default: 100_000_000,
    parse: (raw) => Math.min(parseBytes(raw), 2 ** 32 - 1),
  }),
  unsentBytes: serverOption<number>({
    group: 'Clients',
    flag: '--unsent-bytes',
    value: '<size>',
    help: 'Answers that clients have not taken, in bytes; over it the slowest readers are cut off, so memory stays bounded. One answer of --max-output always has room.',
    defaultText: '512mb',
    default: 512 * MIB,
    parse: parseBytes,
  }),
  withholdEnv: serverOption<RegExp | null>({
    group: 'Workers',
    flag: '--withhold-env',
    value: '<pattern>',
    help: "Variables of the environment that workers do not get: those whose whole name this regular expression matches; '' for none. The server's own keys and secrets never reach them. Without an app, models are other people's: secrets by their names (docs/security.md) are withheld, and the start says which.",
    defaultText: 'none; without an app, secrets by their names',
    default: null,
    parse: parseNamePattern,
  }),
  restartLimit: modelOption<number>({
    group: 'Workers',
    flag: '--restart-limit',
    value: '<n>',
    help: 'Failed starts in a row (a worker that dies before it is ready, or idle before its first call) that are tried again; after that it is not started any more. With --watch 0, unless given: the next change is the next try.',
    defaultText: '5',
    default: 5,
    parse: (raw) => parseWhole(raw, 0, 1_000_000),
  }),
  onCrashLoop: serverOption<'stay' | 'exit'>({
    group: 'Workers',
    flag: '--on-crash-loop',
    value: '<what>',
    help: 'When no worker can be restarted any more: stay (answer 503, keep the logs) or exit with code 3.',
    defaultText: 'stay',
    default: 'stay',
    parse: (raw) => parseChoice(raw, ['stay', 'exit']),
  }),
  headerTimeout: serverOption<number>({
    group: 'Clients',
    flag: '--header-timeout',
    value: DURATION,
    help: 'Longest arrival of request headers, against clients that send a byte at a time; then 408.',
    defaultText: '20s',
    default: 20 * SECOND,
    parse: parsePositiveMs,
  }),
  bodyTimeout: serverOption<number>({
    group: 'Clients',
    flag: '--body-timeout',
    value: DURATION,
    help: 'Longest pause inside a request body; then 408. A body that brings less than 1 kB/s on average gets 408 too, once 30 s have passed.',
    defaultText: '30s',
    default: 30 * SECOND,
    parse: parsePositiveMs,
  }),
  stallTimeout: serverOption<number>({
    group: 'Clients',
    flag: '--stall-timeout',
    value: DURATION,
    help: 'Longest time a client may take nothing of its answer before it is cut off. One that takes at least 1 kB/s on average never is.',
    defaultText: '60s',
    default: 60 * SECOND,
    parse: parsePositiveMs,
  }),
  accessLog: serverOption<boolean>({
    group: 'Logs',
    flag: '--access-log',
    value: null,
    help: 'Log one line per call. Off: failures are logged in any case, and a line per call costs throughput.',
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  exposeErrors: serverOption<boolean>({
    group: 'Development',
    flag: '--expose-errors',
    value: null,
    help: "Answer with the stack, as text, when the app throws: for development. Off: a stack tells a stranger about your code, and may hold a caller's data.",
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  watch: serverOption<boolean>({
    group: 'Development',
    flag: '--watch',
    value: null,
    help: "Start the workers again, init included, whenever a code or JSON file in the app's folder changes: for development. Off: nothing that is written to a server's disk should stop its workers.",
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  logFormat: serverOption<'text' | 'json'>({
    group: 'Logs',
    flag: '--log-format',
    value: '<format>',
    help: "text for people; json for machines: the app's own prints are wrapped too, with worker and request id.",
    defaultText: 'text',
    default: 'text',
    parse: (raw) => parseChoice(raw, ['text', 'json']),
  }),
  logPrefix: serverOption<'none' | 'potassium'>({
    group: 'Logs',
    flag: '--log-prefix',
    value: '<style>',
    help: "none: the app's own prints as they are; potassium: each line behind [requestID ...], and [worker ...] if there are several. A server of a model store without an app has potassium, and names the model. Of no effect on --log-format json.",
    defaultText: 'none',
    default: 'none',
    parse: (raw) => parseChoice(raw, ['none', 'potassium']),
  }),
  logLevel: serverOption<LogLevel>({
    group: 'Logs',
    flag: '--log-level',
    value: '<level>',
    help: "Least level of the server's own log: debug, info, warn, error or silent.",
    defaultText: 'info',
    default: 'info',
    parse: (raw) => parseChoice(raw, LOG_LEVELS),
  }),
  logLocation: serverOption<string | null>({
    group: 'Logs',
    flag: '--log-location',
    value: '<folder>',
    help: 'Folder of files that lines go to as well: access_log.log has one for each call, mms_log.log what the server says and its workers print, model_log.log what workers print. LOG_LOCATION in the environment counts too, where there is a model store or a config.properties. See docs/config-properties.md.',
    defaultText: 'no files',
    default: null,
    parse: parseFolder,
  }),
  metrics: serverOption<boolean>({
    group: 'Metrics',
    flag: '--metrics',
    value: null,
    help: 'Answer GET /metrics on the port of the server, in the text format of Prometheus, with the key that /status asks for. Off: nothing is counted. See docs/metrics.md.',
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  metricsPort: serverOption<number | string | null>({
    group: 'Metrics',
    flag: '--metrics-port',
    value: '<port>',
    help: 'TCP port of a listener for GET /metrics alone, which asks for no key; 0 for a free one, or the path of a unix socket (anything with a /).',
    defaultText: 'off',
    default: null,
    parse: parsePort,
  }),
  metricsHost: serverOption<string>({
    group: 'Metrics',
    flag: '--metrics-host',
    value: '<address>',
    help: 'Address of that listener. This machine only, because whoever reaches it learns the names of models and how busy they are.',
    defaultText: '127.0.0.1',
    default: '127.0.0.1',
    parse: parseHost,
  }),
  metricsMode: serverOption<MetricsMode | null>({
    group: 'Metrics',
    flag: '--metrics-mode',
    value: '<mode>',
    help: "Multi Model Server's own metrics: log writes its lines to the log, prometheus adds TorchServe's names to GET /metrics, legacy writes the lines and adds TorchServe's three counters of calls.",
    defaultText: 'log without an app, else neither',
    default: null,
    parse: (raw) => parseChoice(raw, METRICS_MODES),
  }),
  metricInterval: serverOption<number>({
    group: 'Metrics',
    flag: '--metric-interval',
    value: DURATION,
    help: 'How often these tell of the processors, the memory and the disk of the machine.',
    defaultText: '60s',
    default: 60 * SECOND,
    parse: parsePositiveMs,
  }),
  metricsLocation: serverOption<string | null>({
    group: 'Metrics',
    flag: '--metrics-location',
    value: '<folder>',
    help: 'Folder of files that the lines of --metrics-mode log go to as well: mms_metrics.log has those of the server, model_metrics.log those of custom services. METRICS_LOCATION in the environment counts too, where there is a model store or a config.properties.',
    defaultText: 'no files',
    default: null,
    parse: parseFolder,
  }),
  webhookSecret: serverOption<WebhookSigner | null>({
    group: 'Webhooks',
    flag: '--webhook-secret',
    value: '<secret>',
    help: 'Signs webhooks (Standard Webhooks): whsec_ and base64; several, apart by spaces or commas, all sign. Best given in the environment.',
    defaultText: 'not signed',
    default: null,
    secret: true,
    parse: parseWebhookSecrets,
  }),
  spawnConcurrency: serverOption<number>({
    group: 'Workers',
    flag: '--spawn-concurrency',
    value: '<n>',
    help: 'Workers that may start at once over all devices; one at a time per GPU, where the peak is above steady state.',
    defaultText: 'cores, at least 2, at most 8',
    default: Math.min(8, Math.max(2, availableCores())),
    parse: (raw) => parseWhole(raw, 1, 1024),
  }),
} as const satisfies EveryOption;

export type MetricsMode = 'log' | 'prometheus' | 'legacy';
const METRICS_MODES: readonly MetricsMode[] = ['log', 'prometheus', 'legacy'];

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

export type OptionName = keyof typeof OPTIONS;
export type OptionValues = {
  [K in OptionName]: ReturnType<(typeof OPTIONS)[K]['parse']> | (typeof OPTIONS)[K]['default'];
};

/** Options of the whole server, the same from its start to its end. */
export type ServerOptions = Readonly<Pick<OptionValues, ServerOptionName>>;

/** Options of one model: those that only the operator gives, and those that its app may set too. */
export type ModelOptions = Readonly<Pick<OptionValues, OperatorOptionName | ModelOptionName>>;

export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];

export function optionsOf(group: OptionGroup): OptionName[] {
  return OPTION_NAMES.filter((name) => OPTIONS[name].group === group);
}

/** Whether its values are lengths of time. */
export function isDuration(name: OptionName): boolean {
  return OPTIONS[name].value === DURATION;
}

/** `runTimeout` is BANANA_RUN_TIMEOUT in the environment. */
export function envName(name: OptionName): string {
  return `BANANA_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}
