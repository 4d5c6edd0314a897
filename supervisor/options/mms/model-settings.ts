/**
 * Reads `models` of TorchServe's config.properties: settings of single models of the store, in JSON, by name and version:
 * `{"noop": {"1.0": {"minWorkers": 1, "maxWorkers": 2, "batchSize": 4, "maxBatchDelay": 50, "responseTimeout": 60}}}`
 */
import { isObject } from '../read-objects.js';
import { MODEL_NAME_RULE, isModelName } from '../model-name.js';
import {
  checkedValue,
  notAllowed,
  parseOption,
  type ModelSetting,
  type ResolvedOptions,
} from '../resolve.js';
import type { OptionName } from '../table.js';
import { parseWhole } from '../units.js';
import { positiveSeconds } from './mms-keys.js';

/** The key of config.properties. */
export const MODELS_KEY = 'models';

/** `place`: source of the text, for errors. @throws SERVE_CONFIG */
export function readModelSettings(
  text: string,
  place: string,
): { settingOf: NonNullable<ResolvedOptions['settingOf']>; warnings: readonly string[] } {
  const all = new Map<string, ModelSetting>();
  const unknown = new Set<string>();
  for (const [name, versions] of entriesOf(parsed(text), place, EXAMPLE)) {
    for (const [version, given] of entriesOf(versions, `${place}: ${name}`, '{"1.0": {"batchSize": 4}}')) {
      for (const ref of [name, version])
        if (!isModelName(ref)) throw notAllowed(`${place}: ${name} ${version}`, ref, MODEL_NAME_RULE);
      const where = `${place}: ${name} ${version}`;
      const values = Object.fromEntries(entriesOf(given, where, '{"batchSize": 4}'));
      for (const key of Object.keys(values)) if (!KNOWN_KEYS.includes(key)) unknown.add(key);
      all.set(`${name}@${version}`, readSetting(values, where));
    }
  }
  return {
    settingOf: ({ name, version }) => all.get(`${name}@${version}`) ?? null,
    warnings:
      unknown.size === 0 ? [] : [`${place}: these settings have no effect here: ${[...unknown].join(', ')}`],
  };
}

const EXAMPLE = '{"noop": {"1.0": {"minWorkers": 1, "batchSize": 4}}}';

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function entriesOf(value: unknown, where: string, example: string): [string, unknown][] {
  if (!isObject(value)) throw notAllowed(where, value, `a JSON object, such as ${example}`);
  return Object.entries(value);
}

/** Options by their key; durations are turned into ms. */
const OPTIONS_OF_KEYS: Readonly<
  Record<string, readonly [option: OptionName, toMs?: (value: unknown) => number]>
> = {
  batchSize: ['batchSize'],
  maxBatchDelay: ['maxBatchDelay', (value) => parseWhole(value, 0, MOST_MS)],
  responseTimeout: ['runTimeout', (value) => positiveSeconds(String(value))],
  startupTimeout: ['initTimeout', (value) => positiveSeconds(String(value))],
};

const MOST_MS = 2 ** 31 - 1;
const MOST_WORKERS = 1024;

/** TorchServe writes the last two into its snapshots. */
const KNOWN_KEYS = [...Object.keys(OPTIONS_OF_KEYS), 'minWorkers', 'maxWorkers', 'marName', 'defaultVersion'];

function readSetting(given: Readonly<Record<string, unknown>>, where: string): ModelSetting {
  const options: Record<string, unknown> = {};
  for (const [key, [option, toMs = asItIs]] of Object.entries(OPTIONS_OF_KEYS)) {
    if (given[key] === undefined) continue;
    options[option] = checkedValue(`${where} ${key}`, given[key], toMs);
    parseOption(option, options[option], `${where} ${key}`);
  }
  const [min, max] = [countIn(given, 'minWorkers', where), countIn(given, 'maxWorkers', where)];
  if (min !== null && max !== null && max < min)
    throw notAllowed(`${where} maxWorkers`, max, `at least ${min}, as minWorkers`);
  const source = {
    values: options,
    where: (name: string) => `${where} ${name}`,
    numbersAreMs: true,
  } as const;
  return { source, min, max };
}

function asItIs(value: unknown): unknown {
  return value;
}

function countIn(given: Readonly<Record<string, unknown>>, key: string, where: string): number | null {
  if (given[key] === undefined) return null;
  return checkedValue(`${where} ${key}`, given[key], (value) => parseWhole(value, 0, MOST_WORKERS));
}
