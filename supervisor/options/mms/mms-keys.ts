/**
 * The keys of Multi Model Server's `config.properties`: the options that each sets, and how its value is read. A value in
 * the option's own syntax goes to the option's parser. docs/config-properties.md is printed from here and from
 * `keys.json`.
 */
import type { OptionName } from '../table.js';
import { NotAllowed, parseSwitch, parseWhole } from '../units.js';
import texts from './keys.json' with { type: 'json' };

interface MmsKey {
  readonly sets: readonly OptionName[];
  /** An empty text is a value; for all other keys it counts as not set. */
  readonly mayBeEmpty?: true;
  /**
   * Returns the value of each option of `sets`, undefined if it is not set, as a program would pass it: numbers of
   * durations are ms. @throws NotAllowed
   */
  readonly read: (text: string) => readonly unknown[];
}

/** Applied in this order: of two keys that set the same option, the later one takes precedence. */
export const MMS_KEYS: Readonly<Record<MmsKeyName, MmsKey>> = {
  inference_address: address('host', 'port', { http: 80, https: 443 }),
  management_address: address('managementHost', 'managementPort', { http: 8081, https: 8444 }),
  metrics_address: address('metricsHost', 'metricsPort', { http: 8082, https: 8445 }),
  metrics_mode: sets('metricsMode'),
  metric_time_interval: sets('metricInterval', positiveSeconds),
  model_store: sets('modelStore'),
  load_models: sets('models'),
  allowed_urls: sets('allowedUrls'),
  default_service_handler: sets('defaultHandler'),
  default_workers_per_model: sets('defaultWorkers', (text) => (text === '0' ? undefined : text)),
  number_of_gpu: sets('gpus', (text) => (parseWhole(text, 0, 1024) === 0 ? 'none' : `first:${Number(text)}`)),
  job_queue_size: sets('queueSize'),
  default_response_timeout: sets('runTimeout', positiveSeconds),
  default_response_timeout_seconds: sets('runTimeout', (text) =>
    text === '-1' ? undefined : positiveSeconds(text),
  ),
  default_startup_timeout: sets('initTimeout', positiveSeconds),
  unregister_model_timeout: sets('unregisterTimeout', (text) => readSeconds(text, 'from 0')),
  max_request_size: sets('maxBody'),
  max_response_size: sets('maxOutput'),
  decode_input_request: sets('rawItems', (text) => !readSwitch(text)),
  blacklist_env_vars: { ...sets('withholdEnv'), mayBeEmpty: true },
  cors_allowed_origin: sets('corsOrigin'),
  cors_allowed_methods: sets('corsMethods'),
  cors_allowed_headers: sets('corsHeaders'),
  certificate_file: sets('tlsCert'),
  private_key_file: sets('tlsKey'),
};

export type MmsKeyName = keyof typeof texts.notes;

export const MMS_KEY_NAMES = Object.keys(MMS_KEYS) as MmsKeyName[];

/** For the docs: the allowed values of each key, and differences from Multi Model Server. */
export const MMS_NOTES = texts.notes;

/** Keys without effect, with the reasons. */
export const KEYS_LEFT_ASIDE: Readonly<Record<string, string>> = texts.leftAside;

/** The key that gives MMS_<KEY> variables precedence over the file and the command line. Only the file may contain it. */
export const ENVIRONMENT_SWITCH = 'enable_envvars_config';

/** @throws NotAllowed */
export function readSwitch(text: string): boolean {
  return parseSwitch(text.toLowerCase());
}

/** A key of one option; its text is a value of the option if `read` is left out. */
function sets(option: OptionName, read = (text: string): unknown => text): MmsKey {
  return { sets: [option], read: (text) => [read(text)] };
}

/** Parses seconds above 0 to ms. @throws NotAllowed */
export function positiveSeconds(text: string): number {
  return readSeconds(text, 'above 0');
}

function readSeconds(text: string, least: 'from 0' | 'above 0'): number {
  const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : -1;
  const isEnough = least === 'from 0' ? value >= 0 : value > 0;
  if (!isEnough || value > MAX_SECONDS)
    throw new NotAllowed(`a number of seconds ${least}, such as 120, up to ${MAX_SECONDS}`);
  return Math.round(value * 1000);
}

/** 24 days, the limit of a timer. */
const MAX_SECONDS = 24 * 24 * 3600;

/** An address: `http://host:port`, `https://host`, `unix:/path`. `ports`: those of addresses without a port. */
function address(host: OptionName, port: OptionName, ports: Readonly<Record<string, number>>): MmsKey {
  const read = (text: string): readonly unknown[] => {
    const [, socket] = UNIX.exec(text) ?? [];
    if (socket !== undefined) return [undefined, socket];
    const [, scheme = '', name = '', digits] = WEB.exec(text) ?? [];
    const number = Number(digits ?? ports[scheme.toLowerCase()]);
    if (name === '' || number > 65_535) throw new NotAllowed(ALLOWED);
    return [name.replace(/^\[|\]$/g, ''), number];
  };
  return { sets: [host, port], read };
}

const UNIX = /^unix:(\/.*[^/])$/;
const WEB = /^(https?):\/\/(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?\/?$/i;

const ALLOWED =
  'http://host:port or https://host:port, with a port up to 65535 and no path, or unix:/path of a socket';
