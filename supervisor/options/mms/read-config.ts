/**
 * What Multi Model Server's `config.properties` says, as two sources of options.
 *
 * 1. The lines of the file, with `$$VAR$$` replaced.
 * 2. If the file says so, the variables MMS_<KEY>, which go before everything, the command line included.
 * 3. Each key becomes options (`mms-keys.ts`); what means nothing here is told in warnings.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { configError } from '../../../protocol/errors.js';
import { notAllowed, type OptionSource } from '../resolve.js';
import { suggest } from '../suggest.js';
import { NotAllowed } from '../units.js';
import type { FoundConfig } from './find-config.js';
import { KEYS_LEFT_ASIDE } from './keys-left-aside.js';
import {
  ENVIRONMENT_SWITCH,
  MMS_KEYS,
  MMS_KEY_NAMES,
  mmsVariable,
  readSwitch,
  type MmsKey,
  type MmsKeyName,
  type OptionValuesGiven,
} from './mms-keys.js';
import { readProperties } from './properties-file.js';
import { concernsTls, tlsListeners } from './tls-addresses.js';

export interface MmsConfig {
  /** The variables; empty unless the file lets them count. */
  readonly environment: OptionSource;
  readonly file: OptionSource;
  readonly warnings: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** A key as somebody has set it. */
interface Setting {
  readonly key: string;
  readonly text: string;
  /** `config.properties line 3: job_queue_size`, or the name of a variable. */
  readonly place: string;
}

/** @throws SERVE_CONFIG naming file, line, key, value and cure */
export function readMmsConfig({ name, path }: FoundConfig, env: Environment): MmsConfig {
  const inFile = readSettings(name, path).map((setting) => ({ ...setting, text: expanded(setting, env) }));
  const variables = settingsOf(env);
  const isEnabled = inFile.some((setting) => setting.key === ENVIRONMENT_SWITCH && isOn(setting));
  return {
    environment: sourceOf(isEnabled ? variables : [], inFile),
    file: sourceOf(inFile, []),
    warnings: [
      ...doubled(inFile),
      ...leftAside(name, isEnabled ? [...inFile, ...variables] : inFile),
      ...inFile.flatMap(unknownText),
      ...(isEnabled ? [] : unheeded(name, variables)),
    ],
  };
}

/** Real ones are a page long: more is another file, or a device that never ends. */
const MAX_BYTES = 1024 * 1024;

function readSettings(name: string, path: string): Setting[] {
  let bytes: Buffer;
  try {
    bytes = readStart(path, MAX_BYTES + 1);
  } catch (cause) {
    throw configError(`${name}: it cannot be read: ${(cause as Error).message}.`);
  }
  const flaw = bytes.length > MAX_BYTES ? `it has more than ${MAX_BYTES} bytes` : 'it is no text';
  if (bytes.length > MAX_BYTES || bytes.includes(0))
    throw configError(`${name}: ${flaw}; give a file of lines such as job_queue_size=100.`);
  return readProperties(bytes).map(({ key, value, line }) => ({
    key,
    text: value,
    place: `${name} line ${line}: ${printable(key)}`,
  }));
}

/** As much of a file as there is, up to a bound. */
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

/** A key of a file that is none may hold anything, and it is printed on a terminal. */
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
      `${place}: Invalid Environment Variable ${variable}: "${text}" needs it, and it is not set. Set it, or write its value here.`,
    );
  });
}

/** Those of the keys that are known; an empty one counts as not set. */
function settingsOf(env: Environment): Setting[] {
  return [...MMS_KEY_NAMES, ...Object.keys(KEYS_LEFT_ASIDE)].flatMap((key) => {
    const place = mmsVariable(key);
    const text = env[place]?.trim() ?? '';
    return text === '' ? [] : [{ key, text, place }];
  });
}

/** @throws SERVE_CONFIG */
function isOn({ text, place }: Setting): boolean {
  return text !== '' && told(place, text, () => readSwitch(text));
}

/** The options that the settings come to; `below`: those that yield to them. @throws SERVE_CONFIG */
function sourceOf(settings: readonly Setting[], below: readonly Setting[]): OptionSource {
  const values: Record<string, unknown> = {};
  const places: Record<string, string> = {};
  for (const key of MMS_KEY_NAMES) {
    const { mayBeEmpty }: MmsKey = MMS_KEYS[key];
    const setting = settings.findLast((one) => one.key === key && (mayBeEmpty === true || one.text !== ''));
    if (setting === undefined) continue;
    for (const [option, value] of Object.entries(valuesOf(key, setting)))
      [values[option], places[option]] = [value, setting.place];
  }
  if (settings.some(({ key }) => concernsTls(key))) {
    const tls = tlsListeners([...below, ...settings]);
    if (tls !== null) [values['tlsFor'], places['tlsFor']] = [tls.listeners, tls.place];
    else if (tlsListeners(below) !== null) values['tlsFor'] = []; // http was said in the place of https
  }
  return { values, where: (option) => places[option] ?? option, numbersAreMs: true };
}

function valuesOf(key: MmsKeyName, { text, place }: Setting): OptionValuesGiven {
  return told(place, text, () => MMS_KEYS[key].read(text));
}

/** @throws SERVE_CONFIG that says where it stands if it is not allowed */
function told<T>(place: string, text: string, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof NotAllowed)) throw thrown;
    throw notAllowed(place, text, thrown.message);
  }
}

function doubled(settings: readonly Setting[]): string[] {
  const seen = new Set<string>();
  return settings
    .filter(({ key }) => {
      const isAgain = seen.has(key);
      seen.add(key);
      return isAgain;
    })
    .map(({ place }) => `${place} stands there more than once; the last one counts`);
}

function leftAside(name: string, settings: readonly Setting[]): string[] {
  const places = settings
    .filter(({ key }) => Object.hasOwn(KEYS_LEFT_ASIDE, key))
    .map(({ place }) => place.replace(`${name} line `, 'line '));
  if (places.length === 0) return [];
  return [`${name}: what these keys say has no meaning here, and is left aside: ${places.join(', ')}`];
}

const KNOWN_KEYS = [...MMS_KEY_NAMES, ENVIRONMENT_SWITCH, ...Object.keys(KEYS_LEFT_ASIDE)];

function unknownText({ key, place }: Setting): string[] {
  if (KNOWN_KEYS.includes(key)) return [];
  const close = suggest(key, KNOWN_KEYS);
  return [`${place}: there is no such key${close === null ? '' : `; did you mean ${close}?`}`];
}

/** Variables of which somebody may believe that they count. */
function unheeded(name: string, variables: readonly Setting[]): string[] {
  if (variables.length === 0) return [];
  const named = variables.map(({ place }) => place).join(', ');
  return [`${name} does not say ${ENVIRONMENT_SWITCH}=true, so these variables are not read: ${named}`];
}
