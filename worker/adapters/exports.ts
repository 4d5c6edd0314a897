/** Reads and checks exports beside the app itself, which every kind of app may have. */

import { MAX_CONCURRENCY } from '../../protocol/wire/limits.js';
import { repeatOptions, type RepeatOptions } from '../api/repeat-options.js';

/** Returns the `config` export. @throws a TypeError if it is not an object */
export function configOf(exports: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const config = exports['config'] ?? {};
  if (typeof config === 'object' && !Array.isArray(config)) return config as Record<string, unknown>;
  throw new TypeError('export `config` must be an object, such as { runTimeout: "30s" }');
}

/** Splits `config` into the options that the front checks and those that say how calls may run. @throws a TypeError */
export function splitConfig(config: Readonly<Record<string, unknown>>): {
  readonly repeat: RepeatOptions;
  readonly concurrency: number;
  readonly modelOptions: Record<string, unknown>;
} {
  const { repeatable, attempts, concurrency = 1, ...modelOptions } = config;
  return {
    repeat: repeatOptions({ repeatable, attempts }, 'export `config`'),
    concurrency: checkedConcurrency(concurrency),
    modelOptions,
  };
}

function checkedConcurrency(given: unknown): number {
  if (Number.isInteger(given) && (given as number) >= 1 && (given as number) <= MAX_CONCURRENCY)
    return given as number;
  throw new TypeError(`export \`config\`: concurrency must be a whole number from 1 to ${MAX_CONCURRENCY}`);
}

/**
 * Checks an app's `init`, or the function of that role. @throws a TypeError if its body would not run when it is called
 */
export function assertNoGenerator(init: unknown, name = 'init'): void {
  if (!/Generator/.test(Object.prototype.toString.call(init))) return;
  throw new TypeError(
    `\`${name}\` is a generator, so its body would not run. Make it a plain or an async function`,
  );
}

/** Checks the export of this name. @throws a TypeError if it exists and is not a function */
export function assertFunctionOrNone(exports: Readonly<Record<string, unknown>>, name: string): void {
  const value = exports[name];
  if (value === undefined || typeof value === 'function') return;
  throw new TypeError(`export \`${name}\` is ${kindOf(value)}; make it a function or remove it`);
}

/** Names the kind of a value with an article, such as `an object`, for an error message. */
export function kindOf(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  return `${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`;
}

/** The app's `shutdown`, if it exports one. @throws a TypeError if it is not a function */
export function shutdownOf(exports: Readonly<Record<string, unknown>>): { shutdown?: () => unknown } {
  assertFunctionOrNone(exports, 'shutdown');
  const { shutdown } = exports;
  return typeof shutdown === 'function' ? { shutdown: (): unknown => shutdown.call(exports) } : {};
}
