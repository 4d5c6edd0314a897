/**
 * Reads Multi Model Server's `config.properties` as two sources of options.
 *
 * 1. Reads the lines of the file and replaces `$$VAR$$`.
 * 2. If the file enables them, reads the variables MMS_<KEY>, which take precedence even over the command line.
 * 3. Turns each key into options (`mms-keys.ts`), and warns of keys without effect.
 */
import { isUtf8 } from 'node:buffer';
import { closeSync, openSync, readSync } from 'node:fs';
import { parseLines, type Pair } from 'dot-properties';
import { configError } from '../../../protocol/errors.js';
import { checkedValue, type OptionSource } from '../resolve.js';
import type { OptionName } from '../table.js';
import { didYouMean } from '../../../protocol/text/sentences.js';
import type { TlsListener } from '../value-forms.js';
import { KEYS_LEFT_ASIDE, ENVIRONMENT_SWITCH, MMS_KEYS, MMS_KEY_NAMES, readSwitch } from './mms-keys.js';
import { MODELS_KEY, readModelSettings } from './model-settings.js';

/** A key with its value and source. */
interface Setting {
  readonly key: string;
  /** Trimmed. */
  readonly text: string;
  /** `config.properties line 3: job_queue_size`, or the name of a variable. */
  readonly place: string;
}

/**
 * Returns the sources `file` and `environment`, the MMS_<KEY> variables, which is empty unless the file enables them; and
 * `settingOf`, from the value of `models`, undefined if that is not set. @throws SERVE_CONFIG with file, line, key, value and
 * remedy
 */
export function readMmsConfig(
  { name, path }: { readonly name: string; readonly path: string },
  env: NodeJS.ProcessEnv,
) {
  const inFile = readSettings(name, path).map((setting) => ({ ...setting, text: expanded(setting, env) }));
  const variables = settingsOf(env);
  const isEnabled = inFile.some((setting) => setting.key === ENVIRONMENT_SWITCH && isOn(setting));
  const all = isEnabled ? [...inFile, ...variables] : inFile;
  const models = modelsIn(all);
  return {
    environment: sourceOf(isEnabled ? variables : [], inFile),
    file: sourceOf(inFile, []),
    settingOf: models?.settingOf,
    warnings: [
      ...(models?.warnings ?? []),
      ...repeated(inFile),
      ...withoutEffect(name, all),
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
  return readProperties(bytes, name);
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
function expanded({ text, place }: Setting, env: NodeJS.ProcessEnv): string {
  return text.replace(/\$\$(\w+)\$\$/g, (_, variable: string) => {
    const value = env[variable];
    if (value !== undefined) return value;
    throw configError(
      `${place}: Invalid Environment Variable ${variable}: "${text}" uses it, but it is not set. Set it, or write its value here.`,
    );
  });
}

/** The MMS_<KEY> variables of known keys; an empty one counts as not set. */
function settingsOf(env: NodeJS.ProcessEnv): Setting[] {
  return [...MMS_KEY_NAMES, MODELS_KEY, ...Object.keys(KEYS_LEFT_ASIDE)].flatMap((key) => {
    const place = `MMS_${key.toUpperCase()}`; // MMS_JOB_QUEUE_SIZE
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
    const { sets, mayBeEmpty, read } = MMS_KEYS[key];
    const setting = settings.findLast((one) => one.key === key && (mayBeEmpty === true || one.text !== ''));
    if (setting === undefined) continue;
    for (const [i, value] of checkedValue(setting.place, setting.text, read).entries()) {
      const option = sets[i] as OptionName;
      if (value !== undefined) [values[option], places[option]] = [value, setting.place];
    }
  }
  if (settings.some(({ key }) => concernsTls(key))) {
    const tls = tlsListeners([...below, ...settings]);
    if (tls !== null) [values['tlsFor'], places['tlsFor']] = [tls.listeners, tls.place];
  }
  return { values, where: (option) => places[option] ?? option, numbersAreMs: true };
}

const ADDRESSES: Readonly<Record<string, TlsListener>> = {
  inference_address: 'main',
  management_address: 'management',
  metrics_address: 'metrics',
};

const SECURE = /^https:/i;

const FILES: readonly string[] = ['certificate_file', 'private_key_file'];

/** Whether the key decides about TLS. */
function concernsTls(key: string): boolean {
  return Object.hasOwn(ADDRESSES, key) || FILES.includes(key);
}

/**
 * Returns the listeners that use TLS, exactly those whose addresses begin with https, and the source of the first of them;
 * null if no setting mentions TLS. A certificate without an https address is used by no listener.
 */
function tlsListeners(
  settings: readonly Setting[],
): { readonly listeners: readonly TlsListener[]; readonly place: string } | null {
  const given = Object.keys(ADDRESSES).flatMap((key) => lastOf(settings, key) ?? []);
  const secure = given.filter(({ text }) => SECURE.test(text));
  const files = FILES.flatMap((key) => lastOf(settings, key) ?? []);
  const isMentioned =
    files.length > 0 || settings.some(({ key, text }) => Object.hasOwn(ADDRESSES, key) && SECURE.test(text));
  const [first] = [...secure, ...files, ...given];
  if (!isMentioned || first === undefined) return null;
  return { listeners: secure.flatMap(({ key }) => ADDRESSES[key] ?? []), place: first.place };
}

/** The last of several settings of a key counts; one that is empty counts as not set. */
function lastOf(settings: readonly Setting[], key: string): Setting | undefined {
  return settings.findLast((one) => one.key === key && one.text !== '');
}

/** @throws SERVE_CONFIG */
function modelsIn(settings: readonly Setting[]): ReturnType<typeof readModelSettings> | null {
  const last = lastOf(settings, MODELS_KEY);
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

/**
 * Returns the settings of a file in their order; keys may repeat. Reads UTF-8, else Latin-1, the old encoding of Java for
 * these files.
 */
export function readProperties(bytes: Buffer, name: string): Setting[] {
  const text = (isUtf8(bytes) ? bytes.toString('utf8') : bytes.toString('latin1')).replace(/^\ufeff/, '');
  let line = 1;
  let at = 0;
  return parseLines(text, true)
    .filter((node): node is Required<Pair> => node.type === 'PAIR')
    .map(({ key, value, range: [start] }) => {
      line += text.slice(at, start).split(/\r\n|\r|\n/).length - 1;
      at = start;
      return { key, text: value.trim(), place: `${name} line ${line}: ${printable(key)}` };
    });
}
