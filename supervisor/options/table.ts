/**
 * The table of all options: names, scopes, allowed values and defaults. The command line, the environment, the config file,
 * the app's `config`, `serve()` and docs/options.md all use it. `help.json` has the meaning of each option and the reason
 * for its default, in the groups and the order of the help and of docs/options.md.
 */
import type {
  ModelOptionTypes,
  OperatorOptionTypes,
  ServerOptionTypes,
} from '../../protocol/option-types.js';
import { MAX_CONCURRENCY } from '../../protocol/wire/limits.js';
import { TASKS } from '../../protocol/wire/messages.js';
import { availableCores } from '../machine/host-figures.js';
import { parseHost, parsePort } from './address.js';
import { NO_URLS, parseAllowedUrls } from './allowed-urls.js';
import { parseKeys, parseWebhookSecrets } from './secrets.js';
import helpTexts from './help.json' with { type: 'json' };
import { parseModelName } from './model-name.js';
import {
  parseBytes,
  parseChoice,
  parseDurationMs,
  parsePositiveMs,
  parseSwitch,
  parseText,
  parseWhole,
} from './units.js';
import {
  parseBudget,
  parseGpus,
  parseHandler,
  parseJobsPlace,
  parseNamePattern,
  parseOrigins,
  parseProviders,
  parseTlsListeners,
  parseTokens,
  parseWantedModels,
} from './value-forms.js';

/** The form in which the values of an option are written. */
interface ValueForm<T> {
  /** The text after the flag in the help; null for a switch. */
  readonly value: string | null;
  /** @throws NotAllowed */
  readonly parse: (raw: unknown) => T;
  /** The flag may be given several times; `parse` then gets an array. */
  readonly repeats?: true;
  /** Errors, warnings and help never show its value. */
  readonly secret?: true;
}

interface OptionRow<T> extends ValueForm<T> {
  readonly defaultText: string;
  readonly default: T;
}

/** One option. */
export interface OptionSpec extends OptionRow<unknown> {
  /** `runTimeout` is `--run-timeout`; `--no-` begins the flag of a switch that is on by default. */
  readonly flag: string;
  readonly scope: OptionScope;
  /** Meaning of the option and reason for its default. */
  readonly help: string;
}

const DURATION = { value: '<duration>', parse: parseDurationMs };
const POSITIVE_DURATION = { value: DURATION.value, parse: parsePositiveMs };
const SIZE = { value: '<size>', parse: parseBytes };
const HOST = { value: '<address>', parse: parseHost };
const PORT = { value: '<port>', parse: parsePort };
const FILE = text('<path>', 'the path of a file');
const PEM_FILE = text('<path>', 'the path of a PEM file');
const FOLDER = text('<folder>', 'the path of a folder');
const SWITCH = { value: null, parse: parseSwitch, unset: 'off', otherwise: false };
const KEYS = { value: '<key>', parse: parseKeys, secret: true } as const;
const BUDGET = { value: '<size>', parse: parseBudget, unset: 'no limit' };

/** `satisfies` proves that the types of `serve()` and `config` name exactly these options. */
const SERVER = {
  // Listeners
  host: option({ ...HOST, default: '0.0.0.0' }),
  port: option({ ...PORT, default: '8000' }),
  tlsCert: option({ ...PEM_FILE, unset: 'no TLS' }),
  tlsKey: option({ ...PEM_FILE, unset: 'no TLS' }),
  tlsFor: option({ value: '<listeners>', parse: parseTlsListeners, default: 'main' }),
  readyFile: option({ ...FILE, unset: 'no file' }),
  page: option({ ...SWITCH, unset: 'the page is there', otherwise: true }),
  openapiAll: option(SWITCH),
  apiKey: option({ ...KEYS, unset: 'no key needed' }),
  apiKeyFile: option({ ...FILE, unset: 'no file' }),
  corsOrigin: option({ value: '<origin>', parse: parseOrigins, unset: 'off' }),
  corsMethods: option({ value: '<methods>', parse: parseMethods, unset: "the path's" }),
  corsHeaders: option({ value: '<names>', parse: parseHeaders, unset: 'all that a page asks for' }),
  managementPort: option({ ...PORT, unset: 'off; with --model-store or --models 8081' }),
  managementHost: option({ ...HOST, default: '127.0.0.1' }),
  managementKey: option({ ...KEYS, unset: 'that of --api-key' }),
  managementInsecure: option(SWITCH),
  unregisterTimeout: option({ ...DURATION, default: '2m' }),

  // Models, the model store, and Multi Model Server's paths
  name: option({ value: '<name>', parse: parseModelName, unset: "its file's" }),
  modelStore: option({ ...FOLDER, unset: 'no store' }),
  models: option({ value: '<which>', parse: parseWantedModels, unset: 'none', repeats: true }),
  mmsConfig: option({ ...FILE, unset: 'no file' }),
  defaultWorkers: option({
    ...whole(1, 1024),
    unset: 'at the start one, or one for each GPU; none for models that are registered',
  }),
  defaultHandler: option({ value: '<handler>', parse: parseHandler, unset: 'found by its name' }),
  allowedUrls: option({ value: '<urls>', parse: parseAllowedUrls, unset: 'none', otherwise: NO_URLS }),
  ping: option({ ...choice('<what>', ['health', 'always-200']), default: 'health' }),
  mmsExceptionStatus: option({ ...choice('<status>', ['503', '500']), default: '503' }),

  // Workers of all models
  withholdEnv: option({
    value: '<pattern>',
    parse: parseNamePattern,
    unset: 'none; without an app, names that look like secrets',
  }),
  onCrashLoop: option({ ...choice('<what>', ['stay', 'exit']), default: 'stay' }),
  spawnConcurrency: option({
    ...whole(1, 1024),
    unset: 'cores, at least 2, at most 8',
    otherwise: Math.min(8, Math.max(2, availableCores())),
  }),
  spares: option({ ...whole(0, 64), default: '1' }),
  memoryBudget: option(BUDGET),
  gpuMemoryBudget: option(BUDGET),

  // Calls, jobs, limits of clients
  queueBytes: option({ ...SIZE, default: '512mb' }),
  jobs: option({ value: '<store>', parse: parseJobsPlace, default: 'memory', secret: true }), // may have a password
  jobRetention: option({ ...POSITIVE_DURATION, unset: '24h; in memory 15m' }),
  jobBytes: option({ ...SIZE, unset: '1gb; in memory 256mb' }),
  maxBody: option({ ...SIZE, default: '100000000' }),
  maxOutput: option({
    ...SIZE,
    parse: (raw) => Math.min(parseBytes(raw), 2 ** 32 - 1),
    default: '100000000',
  }),
  compress: option(SWITCH),
  unsentBytes: option({ ...SIZE, default: '512mb' }),
  headerTimeout: option({ ...POSITIVE_DURATION, default: '20s' }),
  bodyTimeout: option({ ...POSITIVE_DURATION, default: '30s' }),
  stallTimeout: option({ ...POSITIVE_DURATION, default: '60s' }),

  // Stop, development, logs, metrics, webhooks
  drainTimeout: option({ ...DURATION, default: '25s' }),
  drainLag: option({ ...DURATION, default: '2s' }),
  exposeErrors: option(SWITCH),
  watch: option(SWITCH),
  accessLog: option(SWITCH),
  logFormat: option({ ...choice('<format>', ['text', 'json']), default: 'text' }),
  logPrefix: option({ ...choice('<style>', ['none', 'potassium']), default: 'none' }),
  logLevel: option({ ...choice('<level>', ['debug', 'info', 'warn', 'error', 'silent']), default: 'info' }),
  logLocation: option({ ...FOLDER, unset: 'no files' }),
  metrics: option(SWITCH),
  metricsPort: option({ ...PORT, unset: 'off' }),
  metricsHost: option({ ...HOST, default: '127.0.0.1' }),
  metricsMode: option({
    ...choice('<mode>', ['log', 'prometheus', 'legacy']),
    unset: 'log without an app, else neither',
  }),
  metricInterval: option({ ...POSITIVE_DURATION, default: '60s' }),
  metricsLocation: option({ ...FOLDER, unset: 'no files' }),
  webhookSecret: option({
    value: '<secret>',
    parse: parseWebhookSecrets,
    unset: 'not signed',
    secret: true,
  }),
} satisfies Readonly<Record<keyof ServerOptionTypes<unknown>, OptionRow<unknown>>>;

const OPERATOR = {
  workers: option({ ...whole(1, 1024), unset: '1' }),
  gpus: option({ value: '<which>', parse: parseGpus, unset: 'all that nvidia-smi finds' }),
  workersPerGpu: option({ ...whole(1, 64), unset: '1' }),
  minWorkers: option({ ...whole(0, 1024), unset: '1; 0 with --idle-timeout alone' }),
  maxWorkers: option({ ...whole(1, 1024), unset: 'as many as would start without it' }),
  idleTimeout: option({ ...POSITIVE_DURATION, unset: '60s' }),
  targetWait: option({ ...POSITIVE_DURATION, default: '100ms' }),
  standby: option({ ...whole(0, 64), default: '0' }),
  python: option({ value: '<path>', parse: parsePython, unset: 'found' }),
  providers: option({
    value: '<names>',
    parse: parseProviders,
    unset: 'cuda,cpu for a worker with a GPU, else cpu',
  }),
  task: option({ ...choice('<task>', TASKS), unset: 'what the app exports' }),
  concurrency: option({ ...whole(1, MAX_CONCURRENCY), unset: 'what the app sets' }),
} satisfies Readonly<Record<keyof OperatorOptionTypes<unknown>, OptionRow<unknown>>>;

const MODEL = {
  initTimeout: option({ ...POSITIVE_DURATION, default: '10m' }),
  restartLimit: option({ ...whole(0, 1_000_000), default: '5' }),
  queueSize: option({ ...whole(0, 1_000_000), default: '1024' }),
  queueTimeout: option({ ...POSITIVE_DURATION, default: '5m' }),
  rawItems: option(SWITCH),
  batchSize: option({ ...whole(1, 1024), default: '1' }),
  maxBatchDelay: option({ ...DURATION, default: '0' }),
  runTimeout: option({ ...POSITIVE_DURATION, default: '5m' }),
  websocketIdleTimeout: option({ ...POSITIVE_DURATION, default: '1m' }),
} satisfies Readonly<Record<keyof ModelOptionTypes<unknown>, OptionRow<unknown>>>;

const SCOPES = { server: SERVER, operator: OPERATOR, model: MODEL };
type Rows = typeof SERVER & typeof OPERATOR & typeof MODEL;

/**
 * Scope of an option. `server`: one value for the whole server. `operator`: one per model, set by the operator only.
 * `model`: one per model, which its app may also set in its `config`.
 */
export type OptionScope = keyof typeof SCOPES;
export const OPTION_SCOPES = Object.keys(SCOPES) as OptionScope[];

export type OptionName = keyof Rows;
/** The values of all options. */
export type Options = { readonly [K in OptionName]: Rows[K]['default'] };

/** Options of the whole server; they never change while it runs. */
export type ServerOptions = Pick<Options, keyof typeof SERVER>;

/** Options of one model: those that only the operator sets, and those that its app may set too. */
export type ModelOptions = Pick<Options, keyof typeof OPERATOR | keyof typeof MODEL>;

/** Groups in the order of the help and of docs/options.md, with the names of their options. */
export const OPTION_GROUPS = Object.entries(helpTexts).map(
  ([group, texts]) => [group, Object.keys(texts) as OptionName[]] as const,
);

export const OPTION_NAMES = OPTION_GROUPS.flatMap(([, names]) => names);

export const OPTIONS = described();

function described(): { readonly [K in OptionName]: OptionSpec & Rows[K] } {
  const helpOf = Object.fromEntries(Object.values(helpTexts).flatMap((texts) => Object.entries(texts)));
  const all = Object.entries(SCOPES).flatMap(([scope, rows]) =>
    Object.entries(rows).map(([name, row]) => {
      const words = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      const flag = row.default === true ? `--no-${words}` : `--${words}`;
      return [name, { ...row, flag, scope, help: helpOf[name] }];
    }),
  );
  return Object.fromEntries(all) as ReturnType<typeof described>;
}

/** Whether the option's value is a duration. */
export function isDuration(name: OptionName): boolean {
  return OPTIONS[name].value === DURATION.value;
}

/** `runTimeout` is BANANA_RUN_TIMEOUT in the environment. */
export function envName(name: OptionName): string {
  return `BANANA_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/**
 * Makes a row. `default` is written as a person would give it; `unset` says in words what happens without the option, whose
 * value is then `otherwise`, or null.
 */
function option<T>(given: ValueForm<T> & { default: string }): OptionRow<T>;
function option<T, D = null>(
  given: ValueForm<T> & { unset: string; otherwise?: D },
): OptionRow<T | NoInfer<D>>;
function option({
  unset = '',
  otherwise = null,
  default: text,
  ...form
}: ValueForm<unknown> & { default?: string; unset?: string; otherwise?: unknown }): OptionRow<unknown> {
  return text === undefined
    ? { ...form, defaultText: unset, default: otherwise }
    : { ...form, defaultText: text, default: form.parse(text) };
}

/** The form of any text that is not empty; `allowed` describes it. */
function text(value: string, allowed: string): ValueForm<string> {
  return { value, parse: (raw) => parseText(raw, allowed) };
}

/** The form of a whole number between `min` and `max`. */
function whole(min: number, max: number): ValueForm<number> {
  return { value: '<n>', parse: (raw) => parseWhole(raw, min, max) };
}

/** The form of one of `choices`; `value` is its text in the help. */
function choice<const T extends string>(value: string, choices: readonly T[]): ValueForm<T> {
  return { value, parse: (raw) => parseChoice(raw, choices) };
}

function parseMethods(raw: unknown): readonly string[] {
  return parseTokens(raw, 'GET, POST').map((method) => method.toUpperCase());
}

function parseHeaders(raw: unknown): readonly string[] {
  return parseTokens(raw, 'Content-Type, X-Request-Id');
}

function parsePython(raw: unknown): string {
  return parseText(raw, 'the path or the name of a program').trim();
}
