/**
 * The keys of Multi Model Server's `config.properties`: the options that each sets, and how its value is read. A value in
 * the option's own syntax goes to the option's parser. docs/config-properties.md is printed from here.
 */
import type { OptionName } from '../table.js';
import { NotAllowed, parseSwitch, parseWhole } from '../units.js';
import { parseMmsAddress, type DefaultPorts } from './mms-address.js';

export interface MmsKey {
  readonly sets: readonly OptionName[];
  /** For the docs: allowed values, and differences from Multi Model Server. */
  readonly note: string;
  /** An empty text is a value; for all other keys it counts as not set. */
  readonly mayBeEmpty?: true;
  /** Returns values by option, as a program would pass them: numbers of durations are ms. @throws NotAllowed */
  readonly read: (text: string) => Partial<Readonly<Record<OptionName, unknown>>>;
}

/** Applied in this order: of two keys that set the same option, the later one takes precedence. */
export const MMS_KEYS = {
  inference_address: address('host', 'port', { http: 80, https: 443 }),
  management_address: address('managementHost', 'managementPort', { http: 8081, https: 8444 }),
  metrics_address: address('metricsHost', 'metricsPort', { http: 8082, https: 8445 }),
  metrics_mode: sameAs('metricsMode', '`log`, `prometheus` or `legacy`.'),
  metric_time_interval: seconds('metricInterval', 'Seconds.'),
  model_store: sameAs('modelStore', 'A folder; relative to the folder in which the server starts.'),
  load_models: sameAs('models', '`ALL`, `none`, or `[name=]path`, separated by commas.'),
  allowed_urls: sameAs('allowedUrls', 'Beginnings of web addresses, separated by commas; not patterns.'),
  default_service_handler: sameAs(
    'defaultHandler',
    '`file`, `file:function` or `file:Class`, for models without a manifest.',
  ),
  default_workers_per_model: sameAs(
    'defaultWorkers',
    'Number of workers; 0 means the default: one, or one for each GPU.',
    (text) => (text === '0' ? undefined : text),
  ),
  number_of_gpu: sameAs('gpus', 'Use the first n GPUs, or all if there are fewer; 0: none.', (text) =>
    parseWhole(text, 0, 1024) === 0 ? 'none' : `first:${Number(text)}`,
  ),
  job_queue_size: sameAs('queueSize', 'Calls.'),
  default_response_timeout: seconds('runTimeout', 'Seconds, never minutes.'),
  default_response_timeout_seconds: sameAs(
    'runTimeout',
    'Takes precedence over `default_response_timeout`; -1: not set.',
    (text) => (text === '-1' ? undefined : readSeconds(text, 'above 0')),
  ),
  default_startup_timeout: seconds('initTimeout', 'Seconds.'),
  unregister_model_timeout: seconds(
    'unregisterTimeout',
    'Seconds; 0: unregistering does not wait.',
    'from 0',
  ),
  max_request_size: sameAs('maxBody', 'Bytes.'),
  max_response_size: sameAs('maxOutput', 'Bytes.'),
  decode_input_request: sameAs(
    'rawItems',
    '`true`, or `false`: custom services get bytes.',
    (text) => !readSwitch(text),
  ),
  blacklist_env_vars: {
    ...sameAs('withholdEnv', 'A regular expression for whole names; empty: nothing is withheld.'),
    mayBeEmpty: true,
  },
  cors_allowed_origin: sameAs('corsOrigin', '`*`, or origins, separated by commas.'),
  cors_allowed_methods: sameAs('corsMethods', 'Methods, separated by commas.'),
  cors_allowed_headers: sameAs('corsHeaders', 'Header names, separated by commas.'),
  certificate_file: sameAs('tlsCert', 'A PEM file, for the addresses that say `https`.'),
  private_key_file: sameAs('tlsKey', 'A PEM file, RSA or EC, not encrypted.'),
} as const satisfies Readonly<Record<string, MmsKey>>;

export type MmsKeyName = keyof typeof MMS_KEYS;

export const MMS_KEY_NAMES = Object.keys(MMS_KEYS) as MmsKeyName[];

/** The key that gives MMS_<KEY> variables precedence over the file and the command line. Only the file may contain it. */
export const ENVIRONMENT_SWITCH = 'enable_envvars_config';

/** `job_queue_size` is MMS_JOB_QUEUE_SIZE in the environment. */
export function mmsVariable(key: string): string {
  return `MMS_${key.toUpperCase()}`;
}

/** @throws NotAllowed */
export function readSwitch(text: string): boolean {
  return parseSwitch(text.toLowerCase());
}

/** A key of one option; its text is a value of the option if `read` is left out. `read` returns undefined for not set. */
function sameAs(option: OptionName, note: string, read = (text: string): unknown => text): MmsKey {
  const valuesOf = (text: string): object => {
    const value = read(text);
    return value === undefined ? {} : { [option]: value };
  };
  return { sets: [option], note, read: valuesOf };
}

function seconds(option: OptionName, note: string, least: 'above 0' | 'from 0' = 'above 0'): MmsKey {
  return sameAs(option, note, (text) => readSeconds(text, least));
}

/** Parses seconds to ms. @throws NotAllowed */
export function readSeconds(text: string, least: 'from 0' | 'above 0'): number {
  const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : -1;
  const isEnough = least === 'from 0' ? value >= 0 : value > 0;
  if (!isEnough || value > MAX_SECONDS)
    throw new NotAllowed(`a number of seconds ${least}, such as 120, up to ${MAX_SECONDS}`);
  return Math.round(value * 1000);
}

/** 24 days, the limit of a timer. */
const MAX_SECONDS = 24 * 24 * 3600;

function address(host: OptionName, port: OptionName, ports: DefaultPorts): MmsKey {
  return {
    sets: [host, port],
    note: `\`http://host[:port]\` (without a port: ${ports.http}), \`https://host[:port]\` (${ports.https}), or \`unix:/path\`.`,
    read: (text) => {
      const { host: name, port: number } = parseMmsAddress(text, ports);
      return { ...(name === undefined ? {} : { [host]: name }), [port]: number };
    },
  };
}

const JVM = 'The server does not use Java.';
const TUNING = 'The front is one event loop; there is nothing to tune.';
const NOT_SERVED = 'Not served here.';
const LAUNCHER = 'Each worker gets its share of the cores, by `OMP_NUM_THREADS` and similar variables.';

export const KEYS_LEFT_ASIDE: Readonly<Record<string, string>> = {
  model_server_home: 'The server has no home folder.',
  vmargs: JVM,
  prefer_direct_buffer: JVM,
  debug: JVM,
  number_of_netty_threads: TUNING,
  netty_client_threads: TUNING,
  use_native_io: TUNING,
  io_ratio: TUNING,
  async_logging: 'The server never waits for its log.',
  preload_model: 'Each worker loads its own copy; map the weights from a file to share them.',
  plugins_path: NOT_SERVED,
  keystore: 'Keys and certificates are PEM files: see `certificate_file`.',
  keystore_pass: 'See `keystore`.',
  keystore_type: 'See `keystore`.',
  model_snapshot: 'No snapshots are written or read.',
  snapshot_store: 'No snapshots are written or read.',
  workflow_store: NOT_SERVED,
  grpc_inference_address: NOT_SERVED,
  grpc_inference_port: NOT_SERVED,
  grpc_management_address: NOT_SERVED,
  grpc_management_port: NOT_SERVED,
  enable_grpc_ssl: NOT_SERVED,
  enable_model_api: 'The address and the key of the management API decide who may register models.',
  disable_token_authorization: 'Keys are given by `--api-key` and `--management-key`.',
  token_expiration_min: 'Keys do not expire.',
  use_env_allowed_urls: '`allowed_urls` may contain `$$VAR$$`.',
  service_envelope: NOT_SERVED,
  install_py_dep_per_model:
    'No packages are installed for a model: name an interpreter that has them with `--python`.',
  ipex_enable: 'A handler may import it; the server does not.',
  cpu_launcher_enable: LAUNCHER,
  cpu_launcher_args: LAUNCHER,
  limit_max_image_pixels: 'Pillow has a limit of its own, which a handler may change.',
  enable_metrics_api: '`metrics_address` decides where metrics are served.',
  metrics_config: 'Every metric that a handler adds is reported.',
  model_metrics_auto_detect: 'Every metric that a handler adds is reported.',
  disable_system_metrics: 'The metrics of the machine cost too little to need a switch.',
  system_metrics_cmd: 'The server measures the machine itself.',
};
