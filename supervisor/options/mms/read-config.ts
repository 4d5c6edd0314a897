/**
 * Reads Multi Model Server's `config.properties` as two sources of options.
 *
 * 1. Reads the lines of the file and replaces `$$VAR$$`.
 * 2. If the file enables them, reads the variables MMS_<KEY>, which take precedence even over the command line.
 * 3. Turns each key into options (`mms-keys.ts`), and warns of keys without effect.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { configError } from '../../../protocol/errors.js';
import { checkedValue, type OptionSource, type ResolvedOptions } from '../resolve.js';
import { didYouMean } from '../../../protocol/text/sentences.js';
import type { FoundConfig } from './find-config.js';
import {
  KEYS_LEFT_ASIDE,
  ENVIRONMENT_SWITCH,
  MMS_KEYS,
  MMS_KEY_NAMES,
  mmsVariable,
  readSwitch,
  type MmsKey,
} from './mms-keys.js';
import { MODELS_KEY, readModelSettings } from './model-settings.js';
import { concernsTls, tlsListeners, type Setting } from './mms-address.js';
import { isUtf8 } from 'node:buffer';
import { parseLines, type Node, type Pair } from 'dot-properties';

export interface MmsConfig {
  /** The MMS_<KEY> variables; empty unless the file enables them. */
  readonly environment: OptionSource;
  readonly file: OptionSource;
  /** From the value of `models`; undefined if it is not set. */
  readonly settingOf: ResolvedOptions['settingOf'];
  readonly warnings: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** @throws SERVE_CONFIG with file, line, key, value and remedy */
export function readMmsConfig({ name, path }: FoundConfig, env: Environment): MmsConfig {
  const inFile = readSettings(name, path).map((setting) => ({ ...setting, text: expanded(setting, env) }));
  const variables = settingsOf(env);
  const isEnabled = inFile.some((setting) => setting.key === ENVIRONMENT_SWITCH && isOn(setting));
  const models = modelsIn(isEnabled ? [...inFile, ...variables] : inFile);
  return {
    environment: sourceOf(isEnabled ? variables : [], inFile),
    file: sourceOf(inFile, []),
    settingOf: models?.settingOf,
    warnings: [
      ...(models?.warnings ?? []),
      ...repeated(inFile),
      ...withoutEffect(name, isEnabled ? [...inFile, ...variables] : inFile),
      ...inFile.flatMap(unknownText),
      ...(isEnabled ? [] : notEnabled(name, variables)),
    ],
  };
}

/** Real files are a page long: a larger one is the wrong file, or a device that never ends. */
const MAX_BYTES = 1024 * 1024;

function readSettings(name: string, path: string): Setting[] {
  let bytes: Buffer;
  try {
    bytes = readStart(path, MAX_BYTES + 1);
  } catch (cause) {
    throw configError(`${name}: it cannot be read: ${(cause as Error).message}.`);
  }
  const flaw = bytes.length > MAX_BYTES ? `it has more than ${MAX_BYTES} bytes` : 'it is not a text file';
  if (bytes.length > MAX_BYTES || bytes.includes(0))
    throw configError(`${name}: ${flaw}; give a file of lines such as job_queue_size=100.`);
  return readProperties(bytes).map(({ key, value, line }) => ({
    key,
    text: value,
    place: `${name} line ${line}: ${printable(key)}`,
  }));
}

/** Reads a file, up to `maxBytes`. */
function readStart(path: string, maxBytes: number): Buffer {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(maxBytes);
    let filled = 0;
    for (let read = -1; read !== 0 && filled < maxBytes; filled += read)
      read = readSync(file, bytes, filled, maxBytes - filled, null);
    return bytes.subarray(0, filled);
  } finally {
    closeSync(file);
  }
}

/** Escapes a key for the terminal: in the wrong file, a key may contain anything. */
function printable(key: string): string {
  // eslint-disable-next-line no-control-regex -- these are what must not be printed
  return /[\x00-\x1f\x7f-\x9f]/.test(key) || key.length > 100 ? JSON.stringify(key.slice(0, 100)) : key;
}

/** @throws SERVE_CONFIG */
function expanded({ text, place }: Setting, env: Environment): string {
  return text.replace(/\$\$(\w+)\$\$/g, (_, variable: string) => {
    const value = env[variable];
    if (value !== undefined) return value;
    throw configError(
      `${place}: Invalid Environment Variable ${variable}: "${text}" uses it, but it is not set. Set it, or write its value here.`,
    );
  });
}

/** The MMS_<KEY> variables of known keys; an empty one counts as not set. */
function settingsOf(env: Environment): Setting[] {
  return [...MMS_KEY_NAMES, MODELS_KEY, ...Object.keys(KEYS_LEFT_ASIDE)].flatMap((key) => {
    const place = mmsVariable(key);
    const text = env[place]?.trim() ?? '';
    return text === '' ? [] : [{ key, text, place }];
  });
}

/** @throws SERVE_CONFIG */
function isOn({ text, place }: Setting): boolean {
  return text !== '' && checkedValue(place, text, readSwitch);
}

/** The options that `settings` set; `below` are settings of lower precedence. @throws SERVE_CONFIG */
function sourceOf(settings: readonly Setting[], below: readonly Setting[]): OptionSource {
  const values: Record<string, unknown> = {};
  const places: Record<string, string> = {};
  for (const key of MMS_KEY_NAMES) {
    const { mayBeEmpty, read }: MmsKey = MMS_KEYS[key];
    const setting = settings.findLast((one) => one.key === key && (mayBeEmpty === true || one.text !== ''));
    if (setting === undefined) continue;
    for (const [option, value] of Object.entries(checkedValue(setting.place, setting.text, read)))
      [values[option], places[option]] = [value, setting.place];
  }
  if (settings.some(({ key }) => concernsTls(key))) {
    const tls = tlsListeners([...below, ...settings]);
    if (tls !== null) [values['tlsFor'], places['tlsFor']] = [tls.listeners, tls.place];
    else if (tlsListeners(below) !== null) values['tlsFor'] = []; // http replaces https
  }
  return { values, where: (option) => places[option] ?? option, numbersAreMs: true };
}

/** The last `models` counts; one that is empty counts as not set. @throws SERVE_CONFIG */
function modelsIn(settings: readonly Setting[]): ReturnType<typeof readModelSettings> | null {
  const last = settings.findLast(({ key, text }) => key === MODELS_KEY && text !== '');
  return last === undefined ? null : readModelSettings(last.text, last.place);
}

function repeated(settings: readonly Setting[]): string[] {
  const seen = new Set<string>();
  return settings
    .filter(({ key }) => {
      const isAgain = seen.has(key);
      seen.add(key);
      return isAgain;
    })
    .map(({ place }) => `${place} is given more than once; the last value counts`);
}

function withoutEffect(name: string, settings: readonly Setting[]): string[] {
  const places = settings
    .filter(({ key }) => Object.hasOwn(KEYS_LEFT_ASIDE, key))
    .map(({ place }) => place.replace(`${name} line `, 'line '));
  if (places.length === 0) return [];
  return [`${name}: these keys have no effect here and are ignored: ${places.join(', ')}`];
}

const KNOWN_KEYS = [...MMS_KEY_NAMES, MODELS_KEY, ENVIRONMENT_SWITCH, ...Object.keys(KEYS_LEFT_ASIDE)];

function unknownText({ key, place }: Setting): string[] {
  if (KNOWN_KEYS.includes(key)) return [];
  return [`${place}: there is no such key${didYouMean(key, KNOWN_KEYS, '; did')}`];
}

/** Warns of MMS_<KEY> variables that are set but not enabled. */
function notEnabled(name: string, variables: readonly Setting[]): string[] {
  if (variables.length === 0) return [];
  const named = variables.map(({ place }) => place).join(', ');
  return [`${name} does not contain ${ENVIRONMENT_SWITCH}=true, so these variables are not read: ${named}`];
}

export interface Property {
  readonly key: string;
  /** Trimmed. */
  readonly value: string;
  /** Line of the key, from 1. */
  readonly line: number;
}

/** Returns entries in file order; keys may repeat. Reads UTF-8, else Latin-1, the old encoding of Java for these files. */
export function readProperties(bytes: Buffer): Property[] {
  const text = (isUtf8(bytes) ? bytes.toString('utf8') : bytes.toString('latin1')).replace(/^\ufeff/, '');
  let line = 1;
  let at = 0;
  return parseLines(text, true)
    .filter(isPair)
    .map(({ key, value, range: [start] }) => {
      line += text.slice(at, start).split(/\r\n|\r|\n/).length - 1;
      at = start;
      return { key, value: value.trim(), line };
    });
}

function isPair(node: Required<Node>): node is Required<Pair> {
  return node.type === 'PAIR';
}
